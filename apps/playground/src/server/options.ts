/** The command line of `npm run playground`. */
import { parseArgs } from 'node:util';

export interface Options {
  /** `serve`: build and serve; `build`: write the folder and end; `dev`: serve the sources as they change. */
  readonly mode: 'serve' | 'build' | 'dev';
  readonly port: number;
  /** Folder that `build` writes. */
  readonly out: string;
}

export const HELP = `Opens the playground: a web page that trains a network on MNIST in the browser.

Usage: npm run playground -- [options]

  --port N      port on this machine (default 5173, or the next free one)
  --build [DIR] write the page as a folder that any web server can serve (default out/playground), and end
  --dev         for work on the page itself: serve its sources, reload when they change
  --help        print this

Nothing but this machine can reach the server. Threads need the headers that a folder's server must send:
Cross-Origin-Opener-Policy: same-origin, Cross-Origin-Embedder-Policy: require-corp.
`;

/** Bad arguments, told in one line. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';
}

/**
 * Reads the arguments after the program's name.
 *
 * @throws UsageError
 */
export function readOptions(args: readonly string[]): Options | 'help' {
  const spec = {
    port: { type: 'string' },
    build: { type: 'boolean' },
    dev: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  } as const;
  let parsed: ReturnType<typeof parseArgs<{ options: typeof spec; allowPositionals: true }>>;
  // `--build=DIR` is `--build DIR`.
  const split = args.flatMap((arg) => (arg.startsWith('--build=') ? ['--build', arg.slice(8)] : [arg]));
  try {
    parsed = parseArgs({ args: split, options: spec, strict: true, allowPositionals: true });
  } catch (error) {
    const [text] = (error as Error).message.split(/\.\s/);
    throw new UsageError(`${text?.replace(/\.$/, '')}; --help lists the options`);
  }
  const { values, positionals } = parsed;
  if (values.help) return 'help';
  if (positionals.length > (values.build ? 1 : 0)) {
    throw new UsageError(`'${positionals.at(-1)}' is not an option; --help lists them`);
  }
  if (values.build && values.dev) throw new UsageError('--build and --dev exclude each other');
  const text = values.port ?? '5173';
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port >= 0 && port <= 65535)) throw new UsageError(`--port is '${text}'; it must be an integer from 0 to 65535`);
  return {
    mode: values.build ? 'build' : values.dev ? 'dev' : 'serve',
    port,
    out: positionals[0] ?? 'out/playground',
  };
}

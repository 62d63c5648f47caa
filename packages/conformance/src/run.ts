/** runConformance: every case on one engine, with the outcome of each. */
import { type DType, setDynamicSizes, setEager, setEngine } from '@polygrad/core';
import { ArgumentError, checkNames, cpuEngine, type EngineCaps, type IEngine, shown } from '@polygrad/core/engine';
import type { CaseResult, ConformanceCase } from './case.ts';
import { CaseRunner, type Skip } from './case-runner.ts';
import { BothPlans } from './both-plans.ts';
import { defaultTolerances, type Tolerances } from './compare.ts';
import type { Target } from './target.ts';
import { packagedGoldens, readGoldens } from './goldens/file.ts';
import { pairwise } from './pairwise.ts';
import { allCases } from './suites/all.ts';

/** Options of `runConformance`. */
export interface ConformanceOptions {
  readonly engine: IEngine;
  readonly skip?: readonly Skip[];
  /** Replaces entries of the contract's tolerances; reported with the results. */
  readonly tolerances?: Partial<Tolerances>;
  /**
   * Bytes of `goldens/torch.bin.gz` of this package, results of another framework. Node finds the file by itself; elsewhere fetch it
   * and pass it here, or the suite "goldens" is skipped. null leaves it out.
   */
  readonly goldens?: Uint8Array | null;
  /** Everything; otherwise half of the golden cases run, each in one of its dtypes. Default false. */
  readonly long?: boolean;
  /**
   * Of every `sample` successive cases one is run, the same one each time; for engines that compile slowly. 'pairwise': a third, which visits every
   * operation by every check in every dtype, and every instance. Default 1: all.
   */
  readonly sample?: number | 'pairwise';
  /** `[k, n]`: the k-th of n parts (from 1) that together are everything, for engines on which everything takes hours. */
  readonly slice?: readonly [number, number];
  /**
   * Whether sizes share plans (`setDynamicSizes`). With 'always' each case runs twice, with plans of its own and with plans for classes of sizes.
   * What both read must be the same bits, but for floats of which sums are added in another order. Default 'automatic'.
   */
  readonly sizes?: 'automatic' | 'always' | 'never';
  /** Only cases whose name contains this text. */
  readonly filter?: string;
  readonly onResult?: (result: CaseResult) => void;
}

/** What became of all cases on an engine. */
export interface ConformanceReport {
  readonly engine: string;
  readonly device: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Cases that a `sample` or `slice` left out. */
  readonly leftOut: number;
  readonly results: readonly CaseResult[];
  /** With `sizes: 'always'`: cases of which a plan was bound to a size, and of these the cases with other bits than plans of their own gave. */
  readonly shared?: { readonly bound: number; readonly otherBits: number };
}

/**
 * Runs the suite on an engine.
 *
 * @param options engine under test, cases to skip with reasons, changed tolerances, a name filter, a listener
 * @returns counts and the outcome of every case; a failing case does not stop the run
 * @throws ArgumentError for what is no engine, other options, and what is no list of `skip`; RangeError for a wrong `sample` or `slice`
 * @example no-run: takes seconds, and the README's example runs
 * const report = await runConformance({ engine: createReferenceEngine(), filter: 'softplus float64 contiguous' });
 * report.failed; // 0
 */
export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  checkNames('conformance', options, 'engine skip tolerances goldens long? sample slice sizes filter onResult!');
  const { engine, skip = [], tolerances, filter, onResult, goldens = packagedGoldens() } = options;
  const { long = false, sample = 1, slice = [1, 1], sizes = 'automatic' } = options;
  if (typeof engine?.submit !== 'function')
    throw new ArgumentError(
      'conformance',
      `engine is ${shown(engine)}; give the engine itself, as createCpuEngine() makes it`,
    );
  for (const one of Array.isArray(skip) ? skip : [skip])
    if (!Array.isArray(one?.tests))
      throw new ArgumentError(
        'conformance',
        `skip holds ${shown(one)}; give a list, such as [{ tests: ['scatter'], reason: 'why' }]`,
      );
  if (sample !== 'pairwise' && (!Number.isInteger(sample) || sample < 1))
    throw new RangeError(
      `[conformance] sample is ${sample}; give a whole number of at least 1 (1: all cases), or 'pairwise'`,
    );
  if (!isSlice(slice))
    throw new RangeError(
      `[conformance] slice is ${slice.join('/')}; give two whole numbers, as in 2/8: the second of eight`,
    );
  const both = sizes === 'always' ? new BothPlans(asyncOnly(engine)) : null;
  await setEngine(both?.engine ?? asyncOnly(engine));
  setDynamicSizes(sizes);
  const target: Target = {
    holds: (dtype: DType) => engine.caps.dtypes.has(dtype) || cpuCaps()?.dtypes.has(dtype) === true,
    computesDouble: engine.caps.dtypes.has('float64'),
    flushesDenormals: engine.caps.flushesDenormals === true,
    tolerances: { ...defaultTolerances, ...tolerances },
    eagerly,
  };
  const runner = new CaseRunner(skip);
  const results: CaseResult[] = [];
  const all = allCases(target, goldens === null ? null : await readGoldens(goldens), long);
  const cases = filter ? all.filter(({ name }) => name.includes(filter)) : all;
  const pairs = sample === 'pairwise' ? pairwise(cases.map(({ name }) => name)) : null;
  for (const [i, item] of cases.entries()) {
    if (!inSlice(i, slice) || !(pairs?.has(i) ?? inSample(i, sample as number))) continue;
    const run = (one: ConformanceCase): Promise<CaseResult> => runner.run(one);
    const result = both === null ? await run(item) : await both.run(item, run);
    results.push(result);
    onResult?.(result);
  }
  setDynamicSizes('automatic');
  const tally = (outcome: CaseResult['outcome']): number => results.filter((r) => r.outcome === outcome).length;
  return {
    engine: engine.name,
    device: engine.device,
    passed: tally('passed'),
    failed: tally('failed'),
    skipped: tally('skipped'),
    leftOut: cases.length - results.length,
    results,
    ...(both === null ? {} : { shared: { bound: both.bound, otherBits: both.otherBits } }),
  };
}

/** Successive cases in one part of the suite: neighbours have kernels in common, which are compiled once. */
const blockOfSlice = 32;

/** True for two whole numbers, the first from 1 to the second. */
export function isSlice([k, n]: readonly number[]): boolean {
  return Number.isInteger(k) && Number.isInteger(n) && (k as number) >= 1 && (k as number) <= (n as number);
}

/** True for positions of the k-th of n parts: every n-th block. */
function inSlice(position: number, [k, n]: readonly [number, number]): boolean {
  return Math.floor(position / blockOfSlice) % n === k - 1;
}

/**
 * True for one of each `size` successive positions. Which one changes from block to block, so no layout or dtype is always left out. Blocks are
 * multiplied with the odd number next to 2^32 / golden ratio (Knuth, The Art of Computer Programming 3, 6.4).
 */
function inSample(position: number, size: number): boolean {
  const block = Math.floor(position / size);
  const hash = Math.imul(block + 1, 0x9e3779b1) >>> 0;
  return position % size === Math.floor((hash / 2 ** 32) * size);
}

/** The CPU engine, for dtypes that the engine does not hold; undefined if there is none. */
function cpuCaps(): EngineCaps | undefined {
  const cpu = cpuEngine();
  return cpu === null || 'then' in cpu ? undefined : cpu.caps;
}

async function eagerly<T>(run: () => Promise<T>): Promise<T> {
  setEager(true);
  try {
    return await run();
  } finally {
    setEager(false);
  }
}

/**
 * An engine without synchronous reads. The suite runs through it, which proves that nothing in the library needs one
 * (idea: TensorFlow.js's test_async_backends).
 */
function asyncOnly(engine: IEngine): IEngine {
  return new Proxy(engine, {
    get(target, key) {
      if (key === 'downloadSync') return undefined;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

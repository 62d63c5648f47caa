/**
 * calibrate: measures what each family of operations costs on two engines, at sizes from 100 to 10 million, and what transfers cost, and reads
 * thresholds off that. What was measured is kept in a store, by devices.
 */
import type { IEngine, TuningStore } from '../engine/engine.ts';
import { OutOfMemoryError } from '../engine/errors.ts';
import { poolOf, type PoolBuffer } from '../engine/pool.ts';
import { checkEngine, cpuEngine, getEngine } from '../engine/registry.ts';
import { EngineMissingError } from '../engine/errors.ts';
import { bufferNode } from '../graph/primitives.ts';
import { noGrad } from '../autodiff/custom-gradient.ts';
import { conv2d } from '../ops/convolution/convolution.ts';
import { add, mul } from '../ops/elementwise/arithmetic.ts';
import { take } from '../ops/indexing/indexing.ts';
import { sort } from '../ops/order/sorting.ts';
import { matmul } from '../ops/products/matmul.ts';
import { cumSum } from '../ops/reduction/cumulative.ts';
import { sum } from '../ops/reduction/reduction.ts';
import { type EngineState, prepare, run, stateOf } from '../runtime/run.ts';
import type { DType } from '../shape/dtype.ts';
import { checkFields, numberFrom } from '../shape/options.ts';
import { rowMajorStrides, type Shape, sizeOf } from '../shape/view.ts';
import { wrap } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';
import { defaultStore } from '../tuning/store.ts';
import type { CostCurve, EngineCosts, TransferCost } from './costs.ts';
import { type OperationFamily, operationFamilies, workOf } from './families.ts';
import { AdaptiveThresholds } from './thresholds.ts';

/** Options of `calibrate`. */
export interface CalibrateOptions {
  /** The device; default: the current engine. */
  readonly device?: IEngine;
  /** Where results are kept: by default files on Node, IndexedDB in browsers. null: nowhere. */
  readonly store?: TuningStore | null;
  /** Measure even if the store has results. Default false. */
  readonly force?: boolean;
  /** Milliseconds to measure for, about. Default 15000. */
  readonly budget?: number;
  /** A clock in milliseconds. Default `performance.now`. */
  readonly now?: () => number;
}

/** Elements of what is measured: 100, 316, 1000 ... 10 million. */
const sizes: readonly number[] = Array.from({ length: 11 }, (_, i) => Math.round(10 ** (2 + i / 2)));

/** Operations of the kernel that shows what one more costs. */
const fusedOperations = 16;

interface Input {
  readonly shape: Shape;
  readonly dtype: DType;
}

/** One measured piece of work for about so many elements. */
interface Work {
  readonly inputs: readonly Input[];
  readonly build: (inputs: readonly Tensor[]) => Tensor;
}

const float = (...shape: number[]): Input => ({ shape, dtype: 'float32' });
const side = (elements: number): number => Math.max(1, Math.round(Math.sqrt(elements)));

const works: Readonly<Record<OperationFamily | 'fused', (elements: number) => Work>> = {
  elementwise: (n) => ({ inputs: [float(n), float(n)], build: ([x, y]) => add(x!, y!) }),
  fused: (n) => ({
    inputs: [float(n), float(n)],
    build: ([x, y]) => {
      let z = x!;
      for (let i = 0; i < fusedOperations; i += 2) {
        const product = mul(z, y!);
        const next = add(product, x!);
        product.dispose();
        if (i > 0) z.dispose();
        z = next;
      }
      return z;
    },
  }),
  reduction: (n) => ({ inputs: [float(n)], build: ([x]) => sum(x!) }),
  product: (n) => ({ inputs: [float(side(n), side(n)), float(side(n), side(n))], build: ([x, y]) => matmul(x!, y!) }),
  convolution: (n) => {
    const extent = side(n / 8);
    return {
      inputs: [float(1, 8, extent, extent), float(8, 8, 3, 3)],
      build: ([x, w]) => conv2d(x!, w!, { padding: 1 }),
    };
  },
  indexing: (n) => ({
    inputs: [float(n), { shape: [n], dtype: 'int32' }],
    build: ([x, i]) => take(x!, i!, 0),
  }),
  sort: (n) => ({ inputs: [float(n)], build: ([x]) => sort(x!) }),
  scan: (n) => ({ inputs: [float(n)], build: ([x]) => cumSum(x!, 0) }),
};

/** Rounds at a size: at least, at most; milliseconds after which larger sizes of a family are not measured. */
const rounds = { least: 3, most: 200 };
const slowest = 400;
/**
 * Milliseconds of a round, about, and runs in it, at most: one after the other without waiting, as work comes that nobody reads at once. Short ones
 * have a chance to run undisturbed on a busy machine.
 */
const roundMs = 0.5;
const mostRepeats = 256;
/** Runs of the smallest work of a family before its first round counts, at most: by then JavaScript is compiled well. */
const warmRuns = 4000;

class Bench {
  readonly state: EngineState;
  readonly #now: () => number;
  readonly #work: Work;
  readonly #inputs: Tensor[] = [];
  #repeats = 1;
  /** Fewest milliseconds of a wait for nothing: a round ends with one. */
  #wait = Number.POSITIVE_INFINITY;
  /** Fewest milliseconds of a run. */
  best = Number.POSITIVE_INFINITY;

  constructor(engine: IEngine, work: Work, now: () => number) {
    this.state = stateOf(engine);
    this.#work = work;
    this.#now = now;
  }

  /** Makes the inputs: small numbers, and positions in no order. */
  begin(): void {
    for (const { shape, dtype } of this.#work.inputs) {
      const length = sizeOf(shape);
      const data = dtype === 'int32' ? new Int32Array(length) : new Float32Array(length);
      for (let i = 0; i < length; i++) {
        const drawn = Math.imul(i + 1, 0x9e3779b1) >>> 0;
        data[i] = dtype === 'int32' ? drawn % length : (drawn % 1024) / 1024;
      }
      const buffer = this.state.pool.alloc(data.byteLength);
      this.state.engine.upload({ buffer: buffer.memory, offset: 0, bytes: data.byteLength }, data);
      const storage = { buffer, view: { strides: rowMajorStrides(shape), offset: 0 } };
      this.#inputs.push(wrap(bufferNode(storage, shape, dtype)));
    }
  }

  /** What one run is, as its family counts it. */
  size(): number {
    return this.#once((node) => {
      let work = 0;
      const stack = [node];
      for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
        if (at.storage !== null) continue;
        work = Math.max(work, workOf(at));
        stack.push(...at.src);
      }
      return work;
    });
  }

  #once<T>(use: (node: Tensor['node']) => T): T {
    const result = noGrad(() => this.#work.build(this.#inputs));
    try {
      return use(result.node);
    } finally {
      result.dispose();
    }
  }

  /** Compiles what it runs. */
  async prepare(): Promise<void> {
    const missing = this.#once((node) => prepare(this.state, [node], this.state.partial));
    await missing;
    await this.state.engine.ready?.();
  }

  async round(): Promise<void> {
    const start = this.#now();
    for (let i = 0; i < this.#repeats; i++) {
      const done = this.#once((node) => run(this.state, [node], this.state.partial));
      if (typeof done !== 'boolean') await done;
    }
    await this.state.engine.idle();
    const end = this.#now();
    if (this.#repeats === 1) {
      await this.state.engine.idle();
      this.#wait = Math.min(this.#wait, this.#now() - end);
    }
    this.best = Math.min(this.best, (end - start - Math.min(this.#wait, (end - start) / 2)) / this.#repeats);
  }

  /** From now on it counts, with as many runs in a round as fit into so many milliseconds. */
  count(milliseconds: number): void {
    this.#repeats = Math.max(1, Math.min(mostRepeats, Math.floor(milliseconds / this.best)));
    this.best = Number.POSITIVE_INFINITY;
  }

  end(): void {
    for (const input of this.#inputs.splice(0)) input.dispose();
  }
}

/** Fewest milliseconds of a copy of so many bytes, up and down. */
async function copies(engine: IEngine, bytes: number, now: () => number): Promise<readonly [number, number]> {
  const pool = poolOf(engine);
  const buffer: PoolBuffer = pool.alloc(bytes);
  const binding = { buffer: buffer.memory, offset: 0, bytes };
  const data = new Uint8Array(bytes);
  let [up, down] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  try {
    for (let i = 0; i < 5; i++) {
      let start = now();
      engine.upload(binding, data);
      await engine.idle();
      up = Math.min(up, now() - start);
      start = now();
      if (engine.downloadSync !== undefined) engine.downloadSync(binding, data);
      else await engine.download(binding, data);
      down = Math.min(down, now() - start);
    }
  } finally {
    buffer.release();
  }
  return [up, down];
}

async function transfersOf(
  engine: IEngine,
  now: () => number,
): Promise<{ upload: TransferCost; download: TransferCost }> {
  const [few, many] = [1024, 4 << 20];
  const [small, large] = [await copies(engine, few, now), await copies(engine, many, now)];
  const cost = (way: 0 | 1): TransferCost => ({
    latency: small[way],
    perByte: Math.max(0, large[way] - small[way]) / (many - few),
  });
  return { upload: cost(0), download: cost(1) };
}

/** Times both engines at the sizes of a family, in turns. */
async function curvesOf(
  engines: readonly IEngine[],
  family: OperationFamily | 'fused',
  budget: number,
  now: () => number,
): Promise<CostCurve[]> {
  const curves = engines.map((): [number, number][] => []);
  const isOut = engines.map(() => false);
  const each = budget / sizes.length;
  for (const elements of sizes) {
    const work = works[family](elements);
    const benches = engines.map((engine) => new Bench(engine, work, now));
    const open = benches.filter((_, i) => !isOut[i]);
    if (open.length === 0) break;
    try {
      for (const bench of open) bench.begin();
      for (const bench of open) await bench.prepare();
      const begun = now();
      const warm = elements === sizes[0] ? warmRuns : 1;
      for (let i = 0; i < warm && (i === 0 || now() - begun < budget / 4); i++)
        for (const bench of open) await bench.round();
      for (const bench of open) bench.count(Math.min(roundMs, each / rounds.least));
      for (const bench of open) await bench.round();
      for (const bench of open) bench.count(Math.min(roundMs, each / rounds.least));
      const start = now();
      for (let i = 0; i < rounds.most && (i < rounds.least || now() - start < each); i++)
        for (const bench of open) await bench.round();
      for (const [i, bench] of benches.entries()) {
        if (isOut[i]) continue;
        const size = bench.size();
        const last = curves[i]!.at(-1);
        if (last === undefined || size > last[0]) curves[i]!.push([size, bench.best]);
        if (bench.best > slowest) isOut[i] = true;
      }
    } catch (error) {
      // Larger ones fit no better.
      if (!(error instanceof OutOfMemoryError) || curves.some((curve) => curve.length === 0)) throw error;
      isOut.fill(true);
    } finally {
      for (const bench of open) bench.end();
      for (const { state } of open) if (state.pool.lost === null) state.pool.trim(0);
    }
  }
  return curves;
}

/** Milliseconds that an operation more adds for an element, by the longest kernels measured alone and with others. */
function fusedCost(alone: CostCurve, fused: CostCurve): number {
  const last = fused.at(-1)!;
  const same = alone.find(([size]) => size === last[0]) ?? alone.at(-1)!;
  return Math.max(0, last[1] / last[0] - same[1] / same[0]) / (fusedOperations - 1);
}

/** Under which results of two engines are kept. */
function keyOf(cpu: IEngine, device: IEngine): string {
  const nameOf = ({ name, device, caps }: IEngine): string => `${name} ${device} ${caps.parallelism}`;
  return `placement 2 ${nameOf(cpu)} ${nameOf(device)}`;
}

/**
 * Measures from which size a device is faster than the CPU engine, for each family of operations, and what transfers cost; or takes what an
 * earlier call has stored for the same devices. Thresholds are where the two curves cross first and 10 %; infinity where they never do. What is
 * measured is work that follows other work, not the wait for a result.
 *
 * Nothing else should run meanwhile. Work that takes longer than 400 ms is not measured at larger sizes.
 *
 * @returns thresholds with measured costs, for `ExecutionContext`
 * @throws EngineMissingError where there is no CPU engine, or no other; ArgumentError for options that do not fit; and what engines throw
 * @example no-run: it takes some seconds
 * import { calibrate, ExecutionContext, setEngine } from '@polygrad/core';
 * import '@polygrad/backend-cpu';
 * import '@polygrad/backend-webgpu';
 * await setEngine('webgpu');
 * const thresholds = await calibrate();
 * console.log(thresholds.get('product'));
 * await new ExecutionContext({ thresholds }).activate();
 */
export async function calibrate(options: CalibrateOptions = {}): Promise<AdaptiveThresholds> {
  checkFields('calibrate', options, {
    device: [(x) => typeof (x as IEngine | null)?.submit === 'function', 'an engine'],
    store: [(x) => x === null || typeof (x as TuningStore).load === 'function', 'a store, or null'],
    force: [(x) => typeof x === 'boolean', 'true or false'],
    budget: numberFrom(0),
    now: [(x) => typeof x === 'function', 'a clock'],
  });
  const { device = getEngine(), store = defaultStore(), force = false, budget = 15_000 } = options;
  const now = options.now ?? (() => performance.now());
  checkEngine('calibrate', device);
  const cpu = await cpuEngine();
  if (cpu === null || cpu === device)
    throw new EngineMissingError(
      'calibrate',
      cpu === null
        ? 'no cpu engine is there: the package @polygrad/backend-cpu brings one'
        : 'there is nothing to compare the cpu engine with; call setEngine() first, or name a device: calibrate({ device })',
    );
  const key = keyOf(cpu, device);
  const stored = force ? null : await store?.load(key);
  const known = stored == null ? null : AdaptiveThresholds.parse(stored);
  if (known !== null) return known;
  const engines = [cpu, device];
  const each = budget / (operationFamilies.length + 1);
  const families = engines.map((): Partial<Record<OperationFamily, CostCurve>> => ({}));
  for (const family of operationFamilies) {
    const curves = await curvesOf(engines, family, each, now);
    for (const [i, curve] of curves.entries()) families[i]![family] = curve;
  }
  const fused = await curvesOf(engines, 'fused', each, now);
  const costs: EngineCosts[] = [];
  for (const [i, engine] of engines.entries())
    costs.push({
      families: families[i] as EngineCosts['families'],
      fused: fusedCost(families[i]!.elementwise!, fused[i]!),
      ...(await transfersOf(engine, now)),
    });
  const thresholds = new AdaptiveThresholds({}, { cpu: costs[0]!, device: costs[1]! });
  await store?.save(key, thresholds.stringify());
  return thresholds;
}

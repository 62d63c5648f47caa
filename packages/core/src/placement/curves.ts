/**
 * Measures what each family of operations costs on some engines, at sizes from 100 to 10 million.
 *
 * Small work is measured in passes over all sizes. So a short disturbance, or JavaScript that is not optimised yet, makes no size look
 * slow; the minimum counts. Points that contradict their neighbours are measured again. Large work is measured one size after the other, because
 * its data fills the memory.
 */
import { noGrad } from '../autodiff/custom-gradient.ts';
import type { IEngine } from '../engine/engine.ts';
import { OutOfMemoryError } from '../engine/errors.ts';
import { bufferNode } from '../graph/primitives.ts';
import { conv2d } from '../ops/convolution/convolution.ts';
import { add, mul } from '../ops/elementwise/arithmetic.ts';
import { take } from '../ops/indexing/indexing.ts';
import { sort } from '../ops/order/sorting.ts';
import { matmul } from '../ops/products/matmul.ts';
import { cumSum } from '../ops/reduction/cumulative.ts';
import { sum } from '../ops/reduction/reduction.ts';
import { prepare } from '../runtime/runtime.ts';
import { run, stateOf } from '../runtime/run.ts';
import type { EngineState } from '../runtime/state.ts';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { rowMajorStrides, type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { wrap } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';
import { type CostCurve, type OperationFamily, operationFamilies, workOf } from './costs.ts';

/** Element counts that are measured: 100, 316, 1000 ... 10 million. */
const sizes: readonly number[] = Array.from({ length: 11 }, (_, i) => Math.round(10 ** (2 + i / 2)));

/** Operations of the kernel that measures the cost of one more. */
const fusedOperations = 16;

interface Input {
  readonly shape: Shape;
  readonly dtype: DType;
}

/** One measured piece of work for about `elements` elements. */
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

/** Most elements of work measured in passes. */
const mostTogether = 100_000;
/** Least and most rounds that count. */
const rounds = { least: 3, most: 200 };
/** If work takes longer than this many milliseconds, larger sizes of its family are not measured. */
const slowest = 400;
/**
 * About how many milliseconds a round takes. A round is some runs without waiting between them, like work that is not read at
 * once. Short rounds have a chance to run undisturbed on a busy machine.
 */
const roundMs = 0.5;
/** Most runs in a round. */
const mostRepeats = 256;
/** Rounds count after this fraction of the time, when JavaScript is well optimised, and after at least `warmPasses` passes. */
const warmShare = 0.25;
const warmPasses = 2;
/** How often points that contradict their neighbours are measured again. */
const secondLooks = 4;
/** A smaller size contradicts a larger one if it takes longer by this factor. */
const tolerance = 1.02;

class Bench {
  readonly state: EngineState;
  readonly #now: () => number;
  readonly #work: Work;
  readonly #inputs: Tensor[] = [];
  #repeats = 1;
  #rounds = 0;
  /** Milliseconds of all rounds that counted. */
  #spent = 0;
  /** Least milliseconds of an empty wait: a round ends with one. */
  #wait = Number.POSITIVE_INFINITY;
  /** Least milliseconds of a run. */
  best = Number.POSITIVE_INFINITY;

  constructor(engine: IEngine, work: Work, now: () => number) {
    this.state = stateOf(engine);
    this.#work = work;
    this.#now = now;
  }

  /** Makes the inputs: small numbers, and positions in random order. */
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

  /** The size of one run, as its family counts it. */
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

  /** Compiles the kernels. */
  async prepare(): Promise<void> {
    const missing = this.#once((node) => prepare(this.state, [node], this.state.partial));
    await missing;
    await this.state.engine.ready?.();
  }

  async #run(times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      const done = this.#once((node) => run(this.state, [node], this.state.partial));
      if (typeof done !== 'boolean') await done;
    }
  }

  async round(): Promise<void> {
    // Warms the caches up again, which other work has used meanwhile.
    if (this.#repeats > 1) await this.#run(1);
    const start = this.#now();
    await this.#run(this.#repeats);
    await this.state.engine.idle();
    const end = this.#now();
    if (this.#repeats === 1) {
      await this.state.engine.idle();
      this.#wait = Math.min(this.#wait, this.#now() - end);
    }
    this.#rounds++;
    this.#spent += end - start;
    this.best = Math.min(this.best, (end - start - Math.min(this.#wait, (end - start) / 2)) / this.#repeats);
  }

  /** Starts counting, with as many runs per round as fit into `milliseconds`. */
  count(milliseconds: number): void {
    this.#repeats = Math.max(1, Math.min(mostRepeats, Math.floor(milliseconds / this.best)));
    this.best = Number.POSITIVE_INFINITY;
    this.#rounds = 0;
    this.#spent = 0;
  }

  /** True if it was measured for that long, or often enough. */
  isEnough(milliseconds: number): boolean {
    return this.#rounds >= rounds.least && (this.#rounds >= rounds.most || this.#spent >= milliseconds);
  }

  end(): void {
    for (const input of this.#inputs.splice(0)) input.dispose();
  }
}

/** A family, or the kernels that measure the cost of one more operation. */
export type Measured = OperationFamily | 'fused';

const measured: readonly Measured[] = [...operationFamilies, 'fused'];

/** One size of a family; null for engines that are no longer measured at this size. */
interface Point {
  readonly family: Measured;
  readonly benches: readonly (Bench | null)[];
}

const benchesOf = (points: readonly Point[]): Bench[] =>
  points.flatMap(({ benches }) => benches.filter((bench) => bench !== null));

/** Runs all benches once; the engine that goes first alternates. */
async function pass(points: readonly Point[], count: number, isOpen: (bench: Bench) => boolean): Promise<boolean> {
  let any = false;
  for (const { benches } of points)
    for (let i = 0; i < benches.length; i++) {
      const bench = benches[(i + count) % benches.length]!;
      if (bench === null || !isOpen(bench)) continue;
      await bench.round();
      any = true;
    }
  return any;
}

class Measurement {
  readonly #engines: readonly IEngine[];
  readonly #now: () => number;
  /** Engines that are too slow, or have no memory, for larger sizes. */
  readonly #out = new Map<Measured, boolean[]>();
  readonly curves: ReadonlyMap<Measured, [number, number][][]>;

  constructor(engines: readonly IEngine[], now: () => number) {
    this.#engines = engines;
    this.#now = now;
    this.curves = new Map(measured.map((family) => [family, engines.map(() => [])]));
    for (const family of measured)
      this.#out.set(
        family,
        engines.map(() => false),
      );
  }

  /** Makes data and kernels, and runs them once. */
  async #begin(family: Measured, elements: number): Promise<Point> {
    const out = this.#out.get(family)!;
    const work = works[family](elements);
    const benches = this.#engines.map((engine, i) => (out[i] ? null : new Bench(engine, work, this.#now)));
    const point = { family, benches };
    try {
      for (const bench of benches) bench?.begin();
      for (const bench of benches) await bench?.prepare();
      for (const [i, bench] of benches.entries()) {
        await bench?.round();
        if (bench !== null && bench.best > slowest) out[i] = true;
      }
      return point;
    } catch (error) {
      for (const bench of benches) bench?.end();
      // Larger sizes will not fit either.
      if (!(error instanceof OutOfMemoryError) || elements === sizes[0]) throw error;
      out.fill(true);
      return { family, benches: benches.map(() => null) };
    }
  }

  #keep({ family, benches }: Point): void {
    for (const [i, bench] of benches.entries()) {
      if (bench === null) continue;
      const curve = this.curves.get(family)![i]!;
      const size = bench.size();
      const last = curve.at(-1);
      if (last === undefined || size > last[0]) curve.push([size, bench.best]);
    }
  }

  #end(points: readonly Point[]): void {
    for (const bench of benchesOf(points)) bench.end();
    for (const engine of this.#engines) {
      const { pool } = stateOf(engine);
      if (pool.lost === null) pool.trim(0);
    }
  }

  /** Small sizes of all families, in passes. */
  async small(budget: number): Promise<void> {
    const points: Point[] = [];
    try {
      for (const elements of sizes)
        if (elements <= mostTogether) for (const family of measured) points.push(await this.#begin(family, elements));
      const each = budget / Math.max(1, benchesOf(points).length);
      const roundOf = Math.min(roundMs, each / rounds.least);
      const begun = this.#now();
      let count = 0;
      for (; count < warmPasses || (count < rounds.most && this.#now() - begun < budget * warmShare); count++) {
        for (const bench of benchesOf(points)) bench.count(roundOf);
        await pass(points, count, () => true);
      }
      for (const bench of benchesOf(points)) bench.count(roundOf);
      const share = each * (1 - warmShare);
      while (await pass(points, count++, (bench) => !bench.isEnough(share)));
      for (let look = 0; look < secondLooks; look++) {
        const doubtful = measured.flatMap((family) => contradictions(points.filter((p) => p.family === family)));
        if (doubtful.length === 0) break;
        for (let i = 0; i < rounds.least || this.#now() - begun < budget * (1 + look / secondLooks); i++) {
          if (i >= rounds.most) break;
          await pass(doubtful, i, () => true);
        }
      }
      for (const point of points) this.#keep(point);
    } finally {
      this.#end(points);
    }
  }

  /** Large sizes of a family, one after the other. */
  async large(family: Measured, budget: number): Promise<void> {
    const large = sizes.filter((elements) => elements > mostTogether);
    for (const elements of large) {
      if (this.#out.get(family)!.every((isOut) => isOut)) return;
      const each = budget / large.length / this.#engines.length;
      const point = await this.#begin(family, elements);
      try {
        for (const bench of benchesOf([point])) bench.count(Math.min(roundMs, each / rounds.least));
        for (let i = 0; await pass([point], i, (bench) => !bench.isEnough(each)); i++);
        this.#keep(point);
      } finally {
        this.#end([point]);
      }
    }
  }
}

/**
 * Sizes of a family, ascending, whose figures cannot all be right: a smaller one takes longer than the next, or another engine is faster
 * at it than at both neighbours. Errors only ever make figures too large.
 */
function contradictions(points: readonly Point[]): Point[] {
  const bestOf = (point: Point | undefined, i: number): number => point?.benches[i]?.best ?? Number.NaN;
  const winner = (point: Point | undefined): number => Math.sign(bestOf(point, 0) - bestOf(point, 1));
  return points.filter((point, at) => {
    const [before, after] = [points[at - 1], points[at + 1]];
    if (point.benches.some((_, i) => bestOf(point, i) > tolerance * bestOf(after, i))) return true;
    const sides = [winner(before), winner(point), winner(after)];
    return sides[0] === sides[2] && sides[1] !== sides[0];
  });
}

/** Times engines at the sizes of all families, alternately: a curve for each engine. */
export async function measureCurves(
  engines: readonly IEngine[],
  budget: number,
  now: () => number,
): Promise<ReadonlyMap<Measured, readonly CostCurve[]>> {
  const measurement = new Measurement(engines, now);
  await measurement.small(budget / 2);
  for (const family of measured) await measurement.large(family, budget / 2 / measured.length);
  return measurement.curves;
}

/** Milliseconds per element that one more operation adds, from the longest kernels with and without others. */
export function fusedCost(alone: CostCurve, fused: CostCurve): number {
  const last = fused.at(-1)!;
  const same = alone.find(([size]) => size === last[0]) ?? alone.at(-1)!;
  return Math.max(0, last[1] / last[0] - same[1] / same[0]) / (fusedOperations - 1);
}

/**
 * How fast two engines are at the same work: small graphs, planned and run as a flush runs them, on both engines in turns.
 *
 * Nothing here is the current engine's: nodes have no handles, so no flush of the program sees them, and other work goes on.
 */
import type { IEngine } from '../engine/engine.ts';
import { bufferNode, makeNode } from '../graph/primitives.ts';
import { type Node, release, retain } from '../graph/node.ts';
import { registerCommon } from '../primitives/common.ts';
import { matmulNode } from '../ops/products/matrices.ts';
import { prepare } from '../runtime/runtime.ts';
import { run, stateOf } from '../runtime/run.ts';
import type { EngineState } from '../runtime/state.ts';
import { rowMajorStrides, sizeOf } from '@polygrad/compiler/shape/view';

/** What is measured: a product of matrices, elementwise work that memory bounds, and a chain of small kernels. */
export type ComparedWork = 'products' | 'elementwise' | 'small';

/** How many times as fast the first engine is as the second. */
export interface EngineComparison {
  /** Over all kinds of work (their geometric mean). */
  readonly ratio: number;
  readonly works: Readonly<Record<ComparedWork, number>>;
}

/** Options of `compareEngines`. */
export interface CompareOptions {
  /** Milliseconds after which no further turn is begun. Default 600. */
  readonly budget?: number;
  /** A clock in milliseconds. Default `performance.now`. */
  readonly now?: () => number;
  /** Ends the comparison at the next opportunity. */
  readonly signal?: AbortSignal;
}

type Shape2 = readonly [number, number];

interface Work {
  readonly inputs: readonly Shape2[];
  readonly build: (inputs: readonly Node[]) => Node;
}

const works: Readonly<Record<ComparedWork, Work>> = {
  products: {
    inputs: [
      [320, 320],
      [320, 320],
    ],
    build: ([a, b]) => matmulNode('matmul', a!, b!),
  },
  elementwise: {
    inputs: [
      [1024, 1536],
      [1024, 1536],
      [1024, 1536],
    ],
    build: ([x, y, z]) => makeNode('maximum', [makeNode('add', [makeNode('mul', [x!, y!], null), z!], null), y!], null),
  },
  small: {
    inputs: [
      [64, 64],
      [64, 64],
    ],
    build: ([x, w]) => {
      let y = x!;
      for (let i = 0; i < 12; i++) y = makeNode('maximum', [matmulNode('matmul', y, w!), x!], null);
      return y;
    },
  },
};
const names = Object.keys(works) as ComparedWork[];

/** Most and fewest turns of each kind of work; about how many milliseconds a turn takes, and the most runs in one. */
const turns = { most: 9, least: 3, milliseconds: 4, runs: 64 };

/** One work on one engine. */
interface Bench {
  readonly state: EngineState;
  readonly inputs: readonly Node[];
  readonly build: Work['build'];
  runs: number;
}

function benchOf(engine: IEngine, { inputs, build }: Work): Bench {
  const state = stateOf(engine);
  const leaf = (shape: Shape2): Node => {
    const bytes = 4 * sizeOf(shape);
    const buffer = state.pool.alloc(bytes);
    const node = bufferNode({ buffer, view: { strides: rowMajorStrides(shape), offset: 0 } }, shape, 'float32');
    retain(node);
    // A number whose products and sums stay finite: 1/128.
    engine.submit([{ kind: 'fill', to: { buffer: buffer.memory, offset: 0, bytes }, pattern: 0x3c000000 }]);
    return node;
  };
  return { state, inputs: inputs.map(leaf), build, runs: 1 };
}

function withResult({ inputs, build }: Bench, use: (node: Node) => void): void {
  const node = build(inputs);
  retain(node);
  try {
    use(node);
  } finally {
    release(node);
  }
}

/**
 * Milliseconds after which idle threads of an engine sleep. Before that they spin on processors that the other engine's threads
 * need: on two processors machine code was measured at 0.6 times the speed of WebAssembly where both are equally fast.
 */
const asleep = 4;

/** Milliseconds of one run, in a round of several, when the other engine's threads sleep. */
async function round(bench: Bench, now: () => number): Promise<number> {
  const { state } = bench;
  await new Promise((resolve) => setTimeout(resolve, asleep));
  const start = now();
  for (let i = 0; i < bench.runs; i++) withResult(bench, (node) => run(state, [node], state.partial));
  await state.engine.idle();
  return (now() - start) / bench.runs;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low, high] = [sorted[(sorted.length - 1) >> 1]!, sorted[middle]!];
  return (low + high) / 2;
}

/**
 * Measures how many times as fast an engine is as another one, at a product of matrices, elementwise work and small kernels of
 * float32. They take turns, so that what else the machine does disturbs both alike; the medians of the turns' ratios count. Kernels are
 * compiled before anything is measured.
 *
 * @param engine an engine that is not lost, with room for 32 MiB
 * @param other the one to compare it with
 * @returns more than 1 where the first is faster
 * @throws whatever an engine throws, and the signal's reason
 * @example
 * import { compareEngines } from '@polygrad/core/engine';
 * import { createNullEngine } from '@polygrad/testing';
 * let clock = 0;
 * const [a, b] = [createNullEngine(), createNullEngine()];
 * const { ratio } = await compareEngines(a, b, { now: () => clock++ });
 * console.log(ratio); //=> 1
 */
export async function compareEngines(
  engine: IEngine,
  other: IEngine,
  options: CompareOptions = {},
): Promise<EngineComparison> {
  const { budget = 600, now = () => performance.now(), signal } = options;
  const pairs: (readonly [ComparedWork, Bench, Bench])[] = [];
  // The program may not have made a tensor yet.
  registerCommon();
  try {
    for (const name of names) pairs.push([name, benchOf(engine, works[name]), benchOf(other, works[name])]);
    const benches = pairs.flatMap(([, a, b]) => [a, b]);
    for (const bench of benches) withResult(bench, (node) => prepare(bench.state, [node], bench.state.partial));
    for (const { engine: each } of [stateOf(engine), stateOf(other)]) await each.ready?.();
    for (const bench of benches) {
      signal?.throwIfAborted();
      await round(bench, now); // touches memory for the first time
      const time = await round(bench, now);
      bench.runs = Math.max(1, Math.min(turns.runs, Math.round(turns.milliseconds / Math.max(1e-3, time))));
    }
    const ratios = pairs.map((): number[] => []);
    const start = now();
    for (let turn = 0; turn < turns.most && (turn < turns.least || now() - start < budget); turn++) {
      for (const [i, [, a, b]] of pairs.entries()) {
        signal?.throwIfAborted();
        // The engine that begins alternates, so that neither always finds the caches as the other left them.
        const first = turn % 2 === 0 ? await round(a, now) : 0;
        const second = await round(b, now);
        const mine = turn % 2 === 0 ? first : await round(a, now);
        ratios[i]!.push(Math.max(1e-6, second) / Math.max(1e-6, mine));
      }
    }
    const medians = ratios.map(median);
    const ratio = Math.exp(medians.reduce((sum, x) => sum + Math.log(x), 0) / medians.length);
    const each = Object.fromEntries(names.map((name, i) => [name, medians[i]])) as Record<ComparedWork, number>;
    return { ratio, works: each };
  } finally {
    for (const [, a, b] of pairs) for (const { inputs } of [a, b]) inputs.forEach(release);
    for (const { pool } of [stateOf(engine), stateOf(other)]) if (pool.lost === null) pool.trim(0);
  }
}

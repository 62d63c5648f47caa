/**
 * `tune`: measures tiles on the device that runs them, and keeps the fastest.
 */
import { questionOf } from '@polygrad/compiler/contraction/choice';
import { findContraction } from '@polygrad/compiler/contraction/contraction';
import type { IEngine, TuningStore } from '../engine/engine.ts';
import { checkEngine, getEngine } from '../engine/registry.ts';
import { Exprs } from '@polygrad/compiler/ir/expr';
import { clearPlans } from '../runtime/runtime.ts';
import { checkList } from '@polygrad/compiler/shape/axes';
import { type DType, dtypeInfo, isFloat } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { type Seen, type SeenNest, choicesOf, storeKey } from './choices.ts';
import { type Measured, measureTiles } from './measure.ts';

/** Options of `tune`. */
export interface TuneOptions {
  /** Products to tune besides what the engine has run since it started. */
  readonly products?: readonly ProductShape[];
  /** Where results are kept between runs; nowhere unless given. `defaultStore()` is a good choice. */
  readonly store?: TuningStore;
  /** Milliseconds after which no further candidate of a class is begun. Default 2000. */
  readonly budget?: number;
  /** Measure what is known already, too. Default false. */
  readonly again?: boolean;
  /** Called after each class. */
  readonly onResult?: (result: TuneResult) => void;
  /** A clock in milliseconds. Default `performance.now`. */
  readonly now?: () => number;
}

/** What was found for one class of contractions, or of programs of attention. */
export interface TuneResult {
  /**
   * dtype, rounded rows x columns x length of the sum x batch, layouts. Of attention which program, dtype, rounded heads x queries x keys, widths of keys and
   * values.
   */
  readonly key: string;
  /** The tile that is used from now on, in one word. */
  readonly tile: string;
  /** All candidates, the one that is used first. */
  readonly measured: readonly Measured[];
}

/**
 * Measures the candidates for each class of matrix products, convolutions and attention that the engine has run: tiles of threads,
 * and the device's library where there is one. From then on these are lowered with the fastest.
 *
 * Every candidate sums in the accumulating dtype, so results stay within the tolerances of the numeric contract; the order in
 * which they add, and with it the last bits, may differ from one tile to another. Do not tune between runs that must give the
 * same bits. Engines without groups of threads (`cpu`) and without a library for products need no tuning: nothing is measured and
 * the list is empty. Other work submitted meanwhile disturbs the figures.
 *
 * @param engine an engine; the current one unless given
 * @returns what was measured, one entry for each class that was new
 * @throws ArgumentError for products whose sizes are no positive integers
 * @example
 * import { createReferenceEngine } from '@polygrad/testing';
 * import { memoryStore, setEngine, tensor, tune } from '@polygrad/core';
 * await setEngine(createReferenceEngine({ simt: true }));
 * const x = tensor(new Float32Array(256), { shape: [16, 16] });
 * await x.matmul(x.transpose()).data();
 * const results = await tune(undefined, { store: memoryStore(), budget: 0 });
 * console.log(results.map((r) => r.key)); //=> [ 'float32 16x16x16x1 k.k 1' ]
 */
export async function tune(engine: IEngine = getEngine(), options: TuneOptions = {}): Promise<TuneResult[]> {
  checkNames('tune', options, 'products store budget# again? onResult! now!');
  checkEngine('tune', engine);
  const { products = [], store, budget = 2000, again = false, onResult, now = () => performance.now() } = options;
  checkList('tune', 'products', products, '[{ m: 64, n: 64, k: 64 }]');
  const given = products.map(productOf);
  if (!engine.caps.simt && engine.library === undefined) return [];
  const choices = choicesOf(engine);
  const key = storeKey(engine);
  let changed = false;
  if (again) choices.clear();
  else if (store !== undefined) {
    const text = await store.load(key);
    if (text !== null) changed = choices.read(text) > 0;
  }
  const wanted = new Map<string, Seen>(choices.wanted());
  for (const seen of given) {
    const c = findContraction(seen.kernel, seen.e);
    const name = c === null ? undefined : questionOf(c, engine.caps, engine.library)?.key;
    if (name !== undefined && choices.find(name) === undefined) wanted.set(name, seen);
  }
  const results: TuneResult[] = [];
  try {
    for (const [name, seen] of wanted) {
      const measured = await measureTiles(engine, seen, { budget, now });
      const [best] = measured;
      if (best === undefined) continue;
      choices.set(name, best.tile);
      changed = true;
      const result = { key: name, tile: best.tile, measured };
      results.push(result);
      onResult?.(result);
    }
  } finally {
    // Plans were made with other tiles.
    if (changed) clearPlans(engine);
    if (results.length > 0) await store?.save(key, choices.write());
  }
  return results;
}

/** Products of matrices as the planner would describe them, for tuning sizes that have not been used yet. */

/** A product of m x k by k x n matrices, `batch` of them (default 1), either of them given transposed. */
export interface ProductShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch?: number;
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
  /** float32 unless given; a dtype of 32 or 64 bits. */
  readonly dtype?: DType;
}

export function productOf(shape: ProductShape): SeenNest {
  const { m, n, k, batch = 1, transposeA = false, transposeB = false, dtype = 'float32' } = shape;
  for (const [name, size] of Object.entries({ m, n, k, batch })) {
    if (!Number.isInteger(size) || size < 1)
      throw new ArgumentError('tune', say`${name} must be an integer of at least 1: got ${size}`);
  }
  if (dtypeInfo[dtype].bytes < 4 || (!isFloat(dtype) && dtype.endsWith('64')))
    throw new ArgumentError('tune', say`products of ${dtype} are not tuned: give float32, float64, int32 or uint32`);
  const e = new Exprs();
  const [a, b, y] = [
    e.param(0, dtype, 'read', batch * m * k),
    e.param(1, dtype, 'read', batch * k * n),
    e.param(2, dtype, 'write', batch * m * n),
  ] as const;
  const [z, i, j, step] = [e.range(batch), e.range(m), e.range(n), e.range(k)] as const;
  const at = (...terms: readonly (readonly [typeof z, number])[]) =>
    terms.map(([r, stride]) => e.mul(r, stride)).reduce((p, q) => e.add(p, q));
  const x = e.load(a, transposeA ? at([z, m * k], [step, m], [i, 1]) : at([z, m * k], [i, k], [step, 1]));
  const w = e.load(b, transposeB ? at([z, k * n], [j, k], [step, 1]) : at([z, k * n], [step, n], [j, 1]));
  const sum = e.reduce('sum', e.mul(x, w), [step]);
  const store = e.store(y, at([z, m * n], [i, n], [j, 1]), sum);
  const kernel = {
    name: `product_${m}x${n}x${k}`,
    params: [a, b, y],
    scalars: [],
    stores: [{ store, ranges: [z, i, j] }],
  };
  return { kernel, e };
}

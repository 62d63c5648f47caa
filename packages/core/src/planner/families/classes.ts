/**
 * Classes of sizes: their bounds, the class of a size, the capacity of its plan, and forms that gain nothing from sharing.
 *
 * In: the sizes of a form (sizes.ts) and its captured graph. Out: numbers. families.ts makes and keeps the plans.
 */
import type { EngineCaps } from '../../engine/engine.ts';
import type { Node } from '../../graph/node.ts';
import { dtypeInfo, isFloat } from '@polygrad/compiler/shape/dtype';
import { sizeOf } from '@polygrad/compiler/shape/view';
import type { CapturedGraph } from '../capture/captured-graph.ts';
import { independentOf, numbersAt, type Sizes, sizeSpan, type Sums, valuesOf, withSums } from './sizes.ts';

/** The sizes that share a plan. */
export interface SizeClass {
  readonly low: number;
  readonly high: number;
}

/** Lower bounds of classes; beyond the last one, every power of two: strides of temporaries are those of the greatest size of a class. */
const leastOfOne = [2, 8, 32, 128] as const;
/** The same where several sizes change: temporaries grow by the product of all. */
export const leastAmong = [2, 8, 32] as const;
/** The same where temporaries are small: making another plan takes longer than the wider class loses. */
const leastOfLittle = [2, 8, 512] as const;
/** Bytes of all nodes at the greatest size of a class; a plan keeps a small part of them at once. */
const littleBytes: number = 2 ** 28;

/** Lower bounds of the classes of some sizes. Threads share a group's work by tiles that the least size must fill, so their classes are narrow. */
export function classesOf(
  sizes: Sizes,
  captured: CapturedGraph,
  { simt, maxBufferBytes }: EngineCaps,
): readonly number[] {
  if (independentOf(sizes) > 1) return leastAmong;
  if (simt || hasLargeFactor(sizes, captured)) return leastOfOne;
  const greatest = leastOfLittle[leastOfLittle.length - 1]! - 1;
  // A buffer too large at the greatest size may fit in a narrower class.
  return bytesWith(greatest, sizes, captured) > Math.min(littleBytes, maxBufferBytes) ? leastOfOne : leastOfLittle;
}

/** Bytes of a factor of fixed size that is too large for the near caches. How it is best read depends on the number of rows. */
const largeFactor: number = 2 ** 21;

/** True for a product with such a factor: it takes so long that narrow classes pay off. */
function hasLargeFactor({ axes }: Sizes, { count, nodes }: CapturedGraph): boolean {
  const isLarge = ({ index, shape, dtype }: Node): boolean =>
    axes[index] === null && sizeOf(shape) * dtypeInfo[dtype].bytes >= largeFactor;
  return (nodes.slice(0, count) as Node[]).some((n) => !n.storage && n.op === 'dotGeneral' && n.src.some(isLarge));
}

/** Bytes of all sized nodes at a given size. */
function bytesWith(n: number, { sample, axes, terms, sums }: Sizes, captured: CapturedGraph): number {
  const values = valuesOf(
    terms,
    withSums(sums, () => n),
  );
  let bytes = 0;
  for (const [i, shape] of sample.shapes.entries()) {
    const of = axes[i];
    if (of != null) bytes += sizeOf(numbersAt(shape, of, values)) * dtypeInfo[captured.nodes[i]!.dtype].bytes;
  }
  return bytes;
}

/** The class of a size, given the lower bounds. */
export function classFrom(least: readonly number[], n: number): SizeClass {
  const next = least.findIndex((low) => low > n);
  if (next > 0) return { low: least[next - 1]!, high: least[next]! - 1 };
  const low = 1 << (31 - Math.clz32(n));
  return { low, high: 2 * low - 1 };
}

/** The classes of some sizes, given the lower bounds; those of sums follow from the others. */
export function classesFrom(least: readonly number[], n: readonly number[], sums: Sums): readonly SizeClass[] {
  const lows = withSums(sums, (size) => classFrom(least, n[size]!).low);
  const highs = withSums(sums, (size) => classFrom(least, n[size]!).high);
  return n.map((_, size) => ({ low: lows[size]!, high: highs[size]! }));
}

/** The classes of some sizes as a text key. */
export const nameOf = (n: readonly number[], least: readonly number[], sums: Sums): string =>
  n.map((x, size) => (sums[size] === null ? classFrom(least, x).low : '')).join();

/** With more bytes at the greatest size of a class, or more multiplications, a plan for one size gains more than a second plan costs. */
const quickBytes: number = 2 ** 23;
const quickProducts: number = 2 ** 26;

/** True if both sizes are of the wide class, and its plan takes as long for them as plans of their own: little is computed. */
export function servesBoth(sizes: Sizes, captured: CapturedGraph, caps: EngineCaps): boolean {
  const least = classesOf(sizes, captured, caps);
  const [, low, above] = leastOfLittle;
  if (least !== leastOfLittle || [sizes.n, sizes.before].some(([n]) => n! < low || n! >= above)) return false;
  return bytesWith(above - 1, sizes, captured) <= quickBytes && productsOf(captured) <= quickProducts;
}

/** About how many multiplications products and convolutions take: each loop is in two of the three operands. */
function productsOf({ count, nodes }: CapturedGraph): number {
  let products = 0;
  for (const n of nodes.slice(0, count) as Node[])
    if (!n.storage && (n.op === 'dotGeneral' || n.op === 'conv'))
      products += Math.sqrt([n, ...n.src].reduce((product, { shape }) => product * sizeOf(shape), 1));
  return products;
}

/** From this many multiplications on, a plan per size costs less than its better tiles save. */
const manyProducts: number = 2 ** 23;

/** The narrowest vectors of processors. */
const fewestLanes = 4;

/**
 * True for large products and convolutions that have no loop of fixed length to vectorise: products in which every extent
 * is a size. Also convolutions whose result has only sized axes, as a weight gradient that layers with other channels share.
 */
export function lacksFixed(sizes: Sizes, { count, nodes }: CapturedGraph, classes: readonly SizeClass[]): boolean {
  const { sample, axes, terms } = sizes;
  const high = classes.map((c) => c.high);
  const values = valuesOf(terms, high);
  const isSized = ({ index, shape }: Node, others: number): boolean =>
    axes[index]?.every((size, axis) => size !== null || shape[axis]! <= others) ?? false;
  const numbersOf = ({ index, shape }: Node): number =>
    sizeOf(axes[index] == null ? shape : numbersAt(sample.shapes[index]!, axes[index], values));
  return (nodes.slice(0, count) as Node[]).some((n) => {
    if (n.storage || !isFloat(n.dtype)) return false;
    if (n.op === 'dotGeneral')
      return Math.max(...high) ** 3 >= manyProducts && [n, ...n.src].every((x) => isSized(x, 1));
    if (n.op !== 'conv' || !isSized(n, fewestLanes - 1)) return false;
    // Each loop is in two of the three operands; loops of a window only partly.
    return Math.sqrt([n, ...n.src].reduce((product, x) => product * numbersOf(x), 1)) >= manyProducts;
  });
}

function isPrime(x: number): boolean {
  for (let d = 2; d * d <= x; d++) if (x % d === 0) return false;
  return true;
}

/**
 * Primes of at least the greatest sizes. They divide no number of the sample except sizes, no factor, and no neighbour of such numbers.
 */
export function capacitiesFor(classes: readonly SizeClass[], sizes: Sizes, captured: CapturedGraph): readonly number[] {
  const { sample, holes, factors, axes } = sizes;
  const { key, shapes } = sample;
  const fixed = new Set<number>();
  let hole = 0;
  for (let i = 0; i < shapes.length; i++) {
    // Node numbers of sources are not numbers of the plan.
    const [from, to] = sizeSpan(captured, sample, i);
    for (let at = from; at < to; at++) fixed.add(at === holes[hole] ? factors[hole++]! : key[at]!);
  }
  for (const [i, shape] of shapes.entries())
    for (const [axis, x] of shape.entries()) fixed.add(axes[i]?.[axis]?.factor ?? x);
  fixed.delete(0);
  const chosen: number[] = [];
  for (const { high } of classes) {
    let p = high;
    const isUnrelated = (other: number): boolean => p !== other && (p + 1) % other !== 0 && (other + 1) % p !== 0;
    while (!isPrime(p) || !chosen.every(isUnrelated) || [...fixed].some((x) => x % p === 0)) p++;
    chosen.push(p);
  }
  return chosen;
}

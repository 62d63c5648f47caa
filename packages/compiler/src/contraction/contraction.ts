/**
 * Recognises a contraction in a kernel's loop nest: its two factors, and the role of every loop. In: a LoopKernel. Out: `Contraction`.
 *
 * Neighbouring loops are merged before. So a product of two matrices has one range of each role, whatever the ranks of the
 * tensors were.
 */
import { mergeRanges } from '../codegen/loops/optimize.ts';
import type { CodegenCaps } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import { FreeRanges, ownRanges, productOf, type Range, sizeLimit, typicalOf } from '../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel } from '../ir/ir.ts';
import { lowOf, nodesOf } from '../ir/node.ts';
import { type DType, dtypeInfo, isFloat } from '../shape/dtype.ts';
import { isFixed } from './access.ts';

/** One factor of the product, with the loops that only it has. */
export interface Factor {
  readonly value: KNode;
  readonly own: readonly Range[];
}

export interface Contraction {
  readonly kernel: LoopKernel;
  readonly reduce: KNodeOf<'REDUCE'>;
  readonly factors: readonly [Factor, Factor];
  /** Loops that both factors have. */
  readonly batch: readonly Range[];
  readonly k: readonly Range[];
  /** The indices at which the epilogue accesses memory. */
  readonly indices: readonly KNode[];
  readonly free: FreeRanges;
  /** What is summed of an element of each factor, where that is not their product (pairs.ts). */
  readonly pair?: (e: Exprs, x: KNode, y: KNode) => KNode;
}

/** True for a loop of fixed length, or one that ends at a size given at dispatch, which is at least 1. */
function isWhole(r: Range): boolean {
  if (r.arg.extent === 0) return false;
  const limit = sizeLimit(r);
  return limit === null ? isFixed(r) : lowOf(limit) >= 1;
}

/** The only sum of products in a kernel whose stores all have the same loops; null if the kernel has another form. */
export function findContraction(kernel: LoopKernel, e: Exprs): Contraction | null {
  const merged = mergeRanges(kernel, e);
  const sum = onlySum(merged);
  if (sum === null) return null;
  const product = sum.reduce.src[0];
  return product?.op === 'MUL' ? contractionOf(merged, sum, product.src as readonly [KNode, KNode]) : null;
}

/** The contraction of a merged kernel around a sum of two factors; null where a loop belongs to neither, or ends in an unknown way. */
export function contractionOf(
  merged: LoopKernel,
  { reduce, indices }: OnlySum,
  [x, y]: readonly [KNode, KNode],
): Contraction | null {
  const free = new FreeRanges();
  const ofX = new Set(free.of(x));
  const ofY = new Set(free.of(y));
  const loops = merged.stores[0]?.ranges ?? [];
  if (merged.stores.some((s) => s.ranges.length !== loops.length || s.ranges.some((r) => !loops.includes(r))))
    return null;
  const k = ownRanges(reduce);
  if (!loops.every(isWhole) || !k.every((r) => isWhole(r) && ofX.has(r) && ofY.has(r))) return null;
  const batch = loops.filter((r) => ofX.has(r) && ofY.has(r));
  const ownX = loops.filter((r) => ofX.has(r) && !ofY.has(r));
  const ownY = loops.filter((r) => ofY.has(r) && !ofX.has(r));
  if (batch.length + ownX.length + ownY.length !== loops.length) return null;
  return {
    kernel: merged,
    reduce,
    factors: [
      { value: x, own: ownX },
      { value: y, own: ownY },
    ],
    batch,
    k,
    indices,
    free,
  };
}

interface OnlySum {
  readonly reduce: KNodeOf<'REDUCE'>;
  readonly indices: KNode[];
}

/** The REDUCE of a kernel if it has exactly one and that is a sum, and the indices of all accesses outside it. */
export function onlySum(kernel: LoopKernel): OnlySum | null {
  const indices: KNode[] = [];
  let reduce: KNodeOf<'REDUCE'> | null = null;
  const outside = nodesOf(
    kernel.stores.map((s) => s.store),
    (n) => (n.op === 'REDUCE' ? [] : n.src),
  );
  for (const n of outside) {
    if (n.op === 'STORE' || n.op === 'LOAD') indices.push(n.src[1]!);
    if (n.op === 'STAGE' || (n.op === 'REDUCE' && (reduce !== null || n.arg.op !== 'sum'))) return null;
    if (n.op === 'REDUCE') reduce = n;
  }
  return reduce === null || hasReduce(reduce.src[0]!) ? null : { reduce, indices };
}

function hasReduce(root: KNode): boolean {
  return [...nodesOf([root])].some((n) => n.op === 'REDUCE' || n.op === 'STAGE');
}

/** The contractions that are worth tiles, on engines of either kind. */

/** Sums with less work are left to the plain loop nest. */
const smallest = 4096;

/** Products of sizes in between. */
export function productsOf({ kernel, k }: Contraction): number {
  return productOf([...k, ...(kernel.stores[0]?.ranges ?? [])], typicalOf);
}

/** CPU tiles are for floats; groups of threads handle 32-bit integers as well. */
export function computes(dtype: DType, { simt }: CodegenCaps): boolean {
  return isFloat(dtype) || (simt && dtypeInfo[dtype].bytes >= 4);
}

/** The contraction of a kernel, if tiles may be worth it. `pays`: whether it has enough products. */
export function worthwhile(
  kernel: LoopKernel,
  e: Exprs,
  caps: CodegenCaps,
  pays: (c: Contraction) => boolean = (c) => productsOf(c) >= smallest,
): Contraction | null {
  const c = findContraction(kernel, e);
  return c !== null && computes(c.reduce.dtype, caps) && pays(c) ? c : null;
}

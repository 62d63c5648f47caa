/**
 * A contraction as tiles see it: the two factors, and every loop with its role.
 *
 * Found in the loop nest itself after neighbouring loops were merged, so a product of two matrices has one range of each
 * role whatever the ranks of the tensors were.
 */
import { mergeRanges } from '../codegen/loops/optimize.ts';
import type { CodegenCaps } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import { FreeRanges, type Range, ownRanges, sizeOf } from '../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel } from '../ir/ir.ts';
import { nodesOf } from '../ir/traverse.ts';
import { type DType, dtypeInfo, isFloat } from '../shape/dtype.ts';

/** One factor of the product with the loops that only it has. */
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
  /** Where the epilogue reads and writes memory. */
  readonly indices: readonly KNode[];
  readonly free: FreeRanges;
}

/** The one sum of a product in a kernel whose stores all run over the same loops; null if the kernel is not of that form. */
export function findContraction(kernel: LoopKernel, e: Exprs): Contraction | null {
  const merged = mergeRanges(kernel, e);
  const sum = onlySum(merged);
  if (sum === null) return null;
  const { reduce, indices } = sum;
  const product = reduce.src[0];
  if (product?.op !== 'MUL') return null;
  const free = new FreeRanges();
  const [x, y] = product.src as readonly [KNode, KNode];
  const ofX = new Set(free.of(x));
  const ofY = new Set(free.of(y));
  const loops = merged.stores[0]?.ranges ?? [];
  if (merged.stores.some((s) => s.ranges.length !== loops.length || s.ranges.some((r) => !loops.includes(r))))
    return null;
  const k = ownRanges(reduce);
  const plain = (r: Range): boolean => r.src.length === 0 && r.arg.extent > 0;
  if (!loops.every(plain) || !k.every((r) => plain(r) && ofX.has(r) && ofY.has(r))) return null;
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

/** The REDUCE of a kernel if it has exactly one and that is a sum, and the indices of all accesses outside it. */
function onlySum(kernel: LoopKernel): { reduce: KNodeOf<'REDUCE'>; indices: KNode[] } | null {
  const indices: KNode[] = [];
  let reduce: KNodeOf<'REDUCE'> | null = null;
  const outside = nodesOf(
    kernel.stores.map((s) => s.store),
    (n) => (n.op === 'REDUCE' ? [] : n.src),
  );
  for (const n of outside) {
    if (n.op === 'STORE' || n.op === 'LOAD') indices.push(n.src[1] as KNode);
    if (n.op === 'STAGE' || (n.op === 'REDUCE' && (reduce !== null || n.arg.op !== 'sum'))) return null;
    if (n.op === 'REDUCE') reduce = n;
  }
  return reduce === null || hasReduce(reduce.src[0] as KNode) ? null : { reduce, indices };
}

function hasReduce(root: KNode): boolean {
  return [...nodesOf([root])].some((n) => n.op === 'REDUCE' || n.op === 'STAGE');
}

/** The contractions that are worth tiles, on engines of either kind. */

/** Sums of fewer products than this are left to the plain loop nest. */
const smallest = 4096;

/** Tiles of CPUs are for floats; groups of threads do integers of 32 bits as well. */
function computes(dtype: DType, { simt }: CodegenCaps): boolean {
  return isFloat(dtype) || (simt && dtypeInfo[dtype].bytes >= 4);
}

/** The contraction of a kernel, if tiles may be worth it. */
export function worthwhile(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): Contraction | null {
  const c = findContraction(kernel, e);
  if (c === null || !computes(c.reduce.dtype, caps)) return null;
  return sizeOf(c.k) * sizeOf(c.kernel.stores[0]?.ranges ?? []) < smallest ? null : c;
}

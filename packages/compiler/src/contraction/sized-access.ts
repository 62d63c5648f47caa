/**
 * How a factor reads memory whose strides are numbers times sizes, as tensors have whose axes end at sizes. A rare form: plans for several sizes load it,
 * and without it such a factor is copied first.
 */
import { type FreeRanges, type Range, type SizedStride, sizedStrideOf, typicalStride } from '../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../ir/ir.ts';
import { linearOf } from '../ir/simplify/integers.ts';
import type { LinearAccess } from './access.ts';

/** The access of a factor that is a plain load from a tensor, whose index is a sum of ranges times numbers and sizes; else null. */
export function sizedAccess({ src: [memory, index] }: KNodeOf<'LOAD'>, free: FreeRanges): LinearAccess | null {
  if (!isSumOfStrides(index, free)) return null;
  const strides = new Map<Range, number>();
  const sized = new Map<Range, SizedStride>();
  for (const r of free.of(index)) {
    const stride = sizedStrideOf(free, index, r);
    if (stride === null) return null;
    const { number, sizes } = stride;
    strides.set(r, sizes.length === 0 ? number : Math.sign(number) * Math.max(2, Math.abs(typicalStride(stride))));
    if (sizes.length > 0) sized.set(r, stride);
  }
  return { memory, offset: linearOf(index).offset, strides, sized };
}

/** True if an index has ranges times numbers and sizes as its terms, and perhaps a number. */
function isSumOfStrides(index: KNode, free: FreeRanges): boolean {
  return linearOf(index).terms.every((term) => {
    if (term.op !== 'MUL') return term.op === 'RANGE';
    const inner = term.src.find((x) => free.of(x).length > 0);
    return inner !== undefined && linearOf(inner).offset === 0 && isSumOfStrides(inner, free);
  });
}

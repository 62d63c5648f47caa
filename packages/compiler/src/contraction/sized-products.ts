/**
 * What products need of which a size is only given at dispatch: columns that end at it, and factors whose strides are numbers times
 * sizes. A rare form: plans for several sizes load it. Without it only loops of fixed length are columns, and such factors are copied
 * first. It imports nothing that only engines without threads in groups have: pages with others load it too.
 */
import { leastVector, oneVector } from '../codegen/costs/cpu.ts';
import type { Exprs } from '../ir/expr.ts';
import {
  divisorOf,
  type FreeRanges,
  type Range,
  type SizedStride,
  sizedStrideOf,
  stretchesOf,
  typicalStride,
} from '../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../ir/ir.ts';
import { assumeBounds, lowOf } from '../ir/node.ts';
import { linearOf } from '../ir/simplify/integers.ts';
import type { LinearAccess } from './access.ts';
import type { SizedColumns } from './choose.ts';
import type { Segment } from './tiles.ts';

// How a factor reads memory, as tensors lie whose axes end at sizes.

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

// Columns: whole tiles, then vectors by themselves, or narrower ones where a size fills none. The last of each is moved back to end
// at the end.

/**
 * Bytes of a vector by itself, at most: each of its products needs an element of its own in all lanes. In 64 bytes that takes 0.27 ns, in 32
 * bytes 0.16, and what is left is often no more.
 */
const mostBySelf = 32;

/**
 * Columns up to `end`, `narrow` of them at least. What whole tiles leave takes another of them where it is more than all of a tile but
 * `single` columns, else vectors of that many. A size that fills no tile or no vector takes none of these. What no size needs is left out.
 */
function segmentsOf(e: Exprs, extent: number, end: KNode, width: number, single: number, narrow: number): Segment[] {
  const step = divisorOf(end);
  const segment = (width: number, most: number, begin: KNode | undefined, tiles: KNode): Segment => {
    const count = Math.ceil(most / width);
    assumeBounds(tiles, 0, count);
    return { start: 0, last: (count - 1) * width, width, count, from: 0, to: width, begin, end, tiles };
  };
  const from = (least: number, count: KNode): KNode =>
    lowOf(end) >= least ? count : e.where(e.lt(end, least), 0, count);
  const rounded = e.add(end, step % width === 0 ? 0 : single - 1);
  const whole = from(width, e.idiv(rounded, width));
  const segments = [segment(width, extent, undefined, whole)];
  if (step % width === 0) return segments;
  if (single < width) {
    const begin = e.mul(whole, width);
    const rest = from(single, e.idiv(e.sub(rounded, begin), single));
    segments.push(segment(single, lowOf(end) >= width ? width - single : width, begin, rest));
  }
  if (narrow < single && step % single !== 0)
    segments.push(segment(narrow, single - 1, undefined, e.where(e.lt(end, single), stretchesOf(e, end, narrow), 0)));
  return segments;
}

export const sizedColumns: SizedColumns = {
  // A nest more for what fills no tile. WebAssembly lost as much in products that could take a fixed loop too.
  slower: 1.1,
  // As many as there are for certain, if vectors of that width exist.
  narrow(least, lanes, elementBytes, { fittingBytes }) {
    let narrow = lanes;
    while (fittingBytes !== undefined && narrow > least && narrow * elementBytes > leastVector) narrow /= 2;
    return narrow;
  },
  // Vectors for themselves at the end count for more.
  computed({ vectors, lanes }, width) {
    const all = Math.ceil(width / lanes);
    return ((all + (oneVector - 1) * (all % vectors)) * lanes) / width;
  },
  // The last rows get no tiles of another shape.
  cover(e, rows, column, narrow, { vectors, lanes }, bytes, facts) {
    const common = { sumLanes: facts.sums ? facts.lanes : 1, rows };
    const single = Math.min(lanes, mostBySelf / bytes);
    const widths = [vectors * lanes, single, Math.min(narrow, single)] as const;
    const segments = segmentsOf(e, column.arg.extent, column.src[0]!, ...widths);
    const whole = segments.map((columns) => ({ ...common, columns, lanes: Math.min(lanes, columns.width) }));
    return { whole, beside: [], last: [] };
  },
};

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
  typicalStride,
} from '../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../ir/ir.ts';
import { linearOf } from '../ir/simplify/integers.ts';
import type { LinearAccess } from './access.ts';
import type { SizedColumns } from './choose.ts';
import type { Segment, TileShape } from './tiles.ts';

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

// Columns: whole tiles, then single vectors, then narrower ones, the last of which is moved back to end at the end.

/**
 * Columns up to `end`, `narrow` of them at least. Each kind of tiles takes what the ones before leave, maybe nothing. Narrower ones are
 * left out where the size is a multiple.
 */
function segmentsOf(e: Exprs, extent: number, end: KNode, narrow: number, { vectors, lanes }: TileShape): Segment[] {
  const widths = [...new Set([vectors * lanes, lanes, narrow])];
  const multiple = widths.findIndex((width) => divisorOf(end) % width === 0);
  const used = multiple < 0 ? widths : widths.slice(0, multiple + 1);
  let begin: KNode | undefined;
  return used.map((width, i): Segment => {
    const isLast = i === used.length - 1;
    const most = (i === 0 ? extent : used[i - 1]! - 1) / width;
    const to = isLast ? end : e.mul(e.idiv(end, width), width);
    const count = isLast ? Math.ceil(most) : Math.floor(most);
    const segment = { start: 0, last: (count - 1) * width, width, count, from: 0, to: width, begin, end: to };
    begin = to;
    return segment;
  });
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
  cover(e, rows, column, narrow, shape, { sums, lanes }) {
    const common = { sumLanes: sums ? lanes : 1, rows };
    const segments = segmentsOf(e, column.arg.extent, column.src[0]!, Math.min(narrow, shape.lanes), shape);
    const whole = segments.map((columns) => ({ ...common, columns, lanes: Math.min(shape.lanes, columns.width) }));
    return { whole, beside: [], last: [] };
  },
};

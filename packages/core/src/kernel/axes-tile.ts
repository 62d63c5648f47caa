/**
 * Tiles for transposing kernels: loops cut so that strided reads use whole cache lines.
 *
 * A kernel that writes along j and reads along i touches another line with every element. Taking j in blocks of one line,
 * with i between the blocks and the elements, every line read serves as many elements as it holds before it is left.
 */
import { cutAt } from './axes-segments.ts';
import { NestWork } from './axes-work.ts';
import type { Exprs } from './expr.ts';
import { assumeBounds } from './node.ts';
import type { Range } from './free-ranges.ts';
import type { KNode, LoopStore } from './ir.ts';
import { type Replacement, Rewriter } from './rewrite.ts';
import { nodesOf } from './traverse.ts';

/** Elements of a block: a cache line of 4-byte numbers. */
const blockSize = 16;
/** Extents from which a block pays. */
const least = { along: 64, across: 8 };

/** Cuts off what fills no block, so that the others are of one size, known when the program is written. */
export function cutTransposes(stores: readonly LoopStore[], e: Exprs): readonly LoopStore[] {
  const found = transposedRanges(stores);
  if (found === null) return stores;
  const { along } = found;
  const rest = along.arg.extent % blockSize;
  return rest === 0 ? stores : cutAt(stores, along, [along.arg.extent - rest], e);
}

/** The stores of a nest with its loops tiled where that helps; reductions are left alone. */
export function tileTransposes(stores: readonly LoopStore[], e: Exprs): readonly LoopStore[] {
  const found = transposedRanges(stores);
  if (found === null) return stores;
  const { along, across } = found;
  const list = stores[0]?.ranges ?? [];

  const n = along.arg.extent;
  const block = e.range(Math.ceil(n / blockSize));
  const start = e.mul(block, blockSize);
  const limit = n % blockSize === 0 ? undefined : e.min(e.sub(n, start), blockSize);
  const element = e.range(blockSize, 'loop', limit);
  const value = e.add(start, element);
  assumeBounds(value, 0, n - 1);
  const rewriter = new Rewriter(e, new Map<Range, Replacement>([[along, { value, ranges: [] }]]));
  const ranges = [...list.filter((r) => r !== along && r !== across), block, across, element];
  return stores.map(({ store }) => ({ store: rewriter.store({ store, ranges: [] }).store, ranges }));
}

/** The range a nest writes along and the one it reads along, where those differ and blocks pay. */
function transposedRanges(stores: readonly LoopStore[]): { readonly along: Range; readonly across: Range } | null {
  const work = new NestWork(stores);
  const list = stores[0]?.ranges ?? [];
  if (
    work.binders.length > 0 ||
    stores.some((s) => s.ranges.length !== list.length || s.ranges.some((r, i) => r !== list[i]))
  )
    return null;
  const along = list.find((r) => stores.every(({ store }) => work.strideOf(store.src[1] as KNode, r) === 1));
  if (along === undefined || along.arg.extent < least.along || along.src.length > 0) return null;
  const across = findAcross(stores, list, along, work);
  return across === null ? null : { along, across };
}

/** The range along which loads that jump along `along` read consecutive elements, if there is one. */
function findAcross(stores: readonly LoopStore[], list: readonly Range[], along: Range, work: NestWork): Range | null {
  for (const n of nodesOf(stores.map((s) => s.store))) {
    if (n.op !== 'LOAD') continue;
    const index = n.src[1] as KNode;
    const stride = work.strideOf(index, along);
    if (stride === null || Math.abs(stride) < blockSize) continue;
    const across = list.find((r) => r !== along && r.arg.extent >= least.across && work.strideOf(index, r) === 1);
    if (across !== undefined) return across;
  }
  return null;
}

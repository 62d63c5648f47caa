/**
 * Transposes for vectors as long as a cache line of 64 bytes, in place of the tiles of tile.ts; pages do not load this.
 *
 * A vector holds the same column of four squares side by side. So 16 rows are read, four elements of each at a time, and a whole line is written. Tiles go on along
 * the rows that are read: these are streams then, and lines written whole may lie anywhere. No lines need be copied first, whatever sets they share.
 *
 * The last tile begins inside of the one before if a loop is no multiple. A loop of nine is three squares of four; a ninth column by
 * itself would read all lines a second time. Where rows are a size that may be less than a square they have a nest for that. Loops are
 * cut where conditions change, for rows with conditions are no squares. Weights of 512 channels took 2.0 ms, and take 1.2; images with
 * padding, four at a time, 0.9 and 0.5.
 */
import { leastSegment, mostSegments, side } from '../costs/cpu.ts';
import { lineBytes } from '../costs/caches.ts';
import type { CodegenCaps } from '../lowering.ts';
import { assumeBounds, nodesOf } from '../../ir/node.ts';
import { countOf, isMultiple, isSized, lengthOf, type Range, sizeLimit, stretchesOf } from '../../ir/free-ranges.ts';
import type { Exprs } from '../../ir/expr.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { findCuts } from './cuts.ts';
import { bytesOf, tiledTransposes, transposedRanges } from './tile.ts';
import { cut, cutShorter, type LoopNest } from './transforms.ts';
import { workOf } from './work.ts';

/** Elements of a line. */
const line = lineBytes / 4;
/** Lines of a row of results from which on tiles go on along the rows that are read. */
const fewestLines = 4;

/** Most elements from one that is read of a row to the next: of a convolution with steps of two. */
const mostStep = 2;

/** The nests of a transpose, tiled; null for other nests, and for those whose loops are no multiples where elements may not be stored twice. */
export function wideTransposes(nest: LoopNest, caps: CodegenCaps): readonly LoopNest[] | null {
  const found = caps.vectorBytes === lineBytes ? transposedRanges(nest, side, mostStep) : null;
  if (found === null) return null;
  const { stores } = nest;
  const { along, across } = found;
  const work = workOf(nest);
  const loads = [...nodesOf(stores.map(({ store }) => store))].filter((n) => n.op === 'LOAD');
  // Squares in registers are of elements of four bytes.
  if ([...loads, ...stores.map(({ store }) => store.src[0])].some((n) => bytesOf(n) !== 4)) return null;
  // A result may take the memory of an operand that is read in the same order.
  const strides = loads.map(({ src: [, index] }) =>
    work.free.has(index!, along) ? work.typicalStrideOf(index!, along) : 0,
  );
  const twice =
    strides.every((stride) => stride !== null && stride !== 1) &&
    stores.every(({ store }) => work.strideOf(store.src[1], along) === 1);
  let lanes = line;
  while (lanes > Math.max(side, countOf(along).least)) lanes /= 2;
  const fits = (r: Range, by: number): boolean => isMultiple(r, by) || (twice && countOf(r).least >= by);
  if (!fits(along, lanes)) return null;
  if (!fits(across, side)) {
    if (!twice || !isSized(across)) return null;
    const [long, ...short] = cutShorter(nest, across, side).parts();
    const { along: columns, across: rows } = transposedRanges(long!, side, mostStep)!;
    return [inSquares(long!, columns, rows, lanes), ...short];
  }
  for (const r of twice ? (work.common() ?? []) : []) {
    const at = segmentsOf(nest, r);
    if (at.length > 0)
      return cut(nest, r, at, true)
        .parts()
        .flatMap((part) => tiledTransposes(part, caps));
  }
  return [inSquares(nest, along, across, lanes)];
}

/** The nest in tiles, of a square in height and a vector in width. */
function inSquares(nest: LoopNest, along: Range, across: Range, lanes: number): LoopNest {
  const { e, stores } = nest;
  const [columns, rows] = [inTiles(e, along, lanes, 'loop'), inTiles(e, across, side, 'unroll')];
  const rewriter = new Rewriter(e, new Map([columns.change, rows.change]));
  const outer = (stores[0]?.ranges ?? []).filter((r) => r !== along && r !== across);
  // Short rows of results share lines.
  const tiles = along.arg.extent < fewestLines * line ? [rows.tile, columns.tile] : [columns.tile, rows.tile];
  const ranges = [...outer, ...tiles, rows.inside, columns.inside];
  const tiled = stores.map(({ store }) => ({ store: rewriter.store({ store, ranges: [] }).store, ranges }));
  return nest.wrote(tiled, 'tile', [across, along], [side, lanes]);
}

/** Where a loop is cut, if it pays: iterations at which a condition changes. */
function segmentsOf(nest: LoopNest, r: Range): readonly number[] {
  if (r.arg.extent < leastSegment || r.src.length > 0) return [];
  const cuts = findCuts(nest.stores, r, workOf(nest));
  const lengths = [...cuts, r.arg.extent].map((x, i) => x - (cuts[i - 1] ?? 0));
  return cuts.length >= mostSegments || Math.max(...lengths) < leastSegment ? [] : cuts;
}

interface Tiles {
  readonly tile: Range;
  readonly inside: Range;
  /** Their expression in place of the loop. */
  readonly change: readonly [Range, Replacement];
}

/** A loop as tiles; the last one ends with the loop. */
function inTiles(e: Exprs, r: Range, by: number, kind: 'loop' | 'unroll'): Tiles {
  const { extent } = r.arg;
  const limit = sizeLimit(r);
  const tile = e.range(Math.ceil(extent / by), 'loop', limit === null ? undefined : stretchesOf(e, limit, by));
  const inside = e.range(by, kind);
  const first = e.mul(tile, by);
  const value = e.add(isMultiple(r, by) ? first : e.min(first, e.sub(lengthOf(e, r), by)), inside);
  assumeBounds(value, 0, extent - 1);
  return { tile, inside, change: [r, { value, ranges: [] }] };
}

/**
 * Tiles for transposing kernels: loops cut so that strided reads use whole cache lines, in squares that registers transpose.
 *
 * A kernel that writes along j and reads along i touches another line with every element. Here both loops go in blocks of one
 * line, and inside those in squares with as many elements a side as a vector has lanes. When unrolled, the elements of a square
 * read along i are a few vectors, which the emitter transposes with shuffles (ir/windows.ts). Consecutive blocks are along j, so
 * that lines are written in order: in C with the same instructions 2 to 5 times as fast as blocks along i. Which rows are read may
 * be known only at run time, as for columns gathered from a transposed matrix.
 *
 * Rows that are read may be a multiple of 2048 bytes apart. Then all lines of a block share one or two cache sets and evict
 * each other. There larger blocks are first copied to group memory, transposed, reading every line at once.
 */
import { side, squares, larger, leastTransposed, crowdedRows, nearRows } from '../costs/cpu.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import type { CodegenCaps } from '../lowering.ts';
import { type NestWork, workOf } from './work.ts';
import type { Exprs } from '../../ir/expr.ts';
import { assumeBounds, nodesOf } from '../../ir/node.ts';
import { endsAlone, isMultiple, type Range, sizeLimit, sizeOf } from '../../ir/free-ranges.ts';
import type { KNode } from '../../ir/ir.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { cutRest, innermost, type LoopNest } from './transforms.ts';

/** The nest with its loops tiled where that helps, in the target's own way where it has one. */
export function tiledTransposes(nest: LoopNest, caps: CodegenCaps): readonly LoopNest[] {
  return caps.lowering.transposes?.(nest, caps) ?? cutTransposes(nest).map(tileTransposes);
}

/** Cuts off what fills no square, so that all squares are whole. */
function cutTransposes(nest: LoopNest): readonly LoopNest[] {
  const found = transposedRanges(nest);
  const ragged = found === null ? undefined : [found.along, found.across].find((r) => !isWhole(r, found));
  if (found === null || ragged === undefined) return [nest];
  return cutRest(innermost(nest, ragged), ragged, sideOf(ragged, found), true).parts().flatMap(cutTransposes);
}

/** Iterations of a loop in one square. */
function sideOf(r: Range, { along, crowded }: Transposed): number {
  return r === along && crowded.size > 0 ? side * squares : side;
}

/** True if a loop is whole squares. */
function isWhole(r: Range, found: Transposed): boolean {
  return isMultiple(r, sideOf(r, found));
}

/** The nest with its loops tiled; reductions stay as they are. */
function tileTransposes(nest: LoopNest): LoopNest {
  const found = transposedRanges(nest);
  if (found === null) return nest;
  const { along, across, crowded } = found;
  const { e, stores } = nest;
  const copied = crowded.size > 0;
  if (!isWhole(along, found) || !isWhole(across, found)) return nest;
  const wide = stores.some(({ store }) => bytesOf(store.src[0] as KNode) > 4);
  // Squares of 8-byte numbers, of which a vector has two, would need twice the registers, and copies of them twice the memory.
  const rows = copied
    ? new Blocks(across, wide ? (squares * larger) / 2 : squares * larger, [side], e)
    : new Blocks(across, squares, [wide ? side / 2 : side], e);
  const columns = new Blocks(along, squares, copied ? [squares, side] : [side], e);
  const [down, right] = [rows.open(copied ? 'loop' : 'unroll'), columns.open(copied ? 'unroll' : 'loop')];
  const rewriter = new Rewriter(e, new Map([down.change, right.change]));
  for (const load of crowded) {
    const [i, j] = [rows.open('unroll'), columns.open('loop')];
    const stage = e.stage('shared', new Rewriter(e, new Map([i.change, j.change])).node(load), interleaved(i, j));
    const index = interleaved(down, right).reduce((sum: KNode, r) => e.add(e.mul(sum, r.arg.extent), r), e.i32(0));
    rewriter.set(load, e.load(stage, index));
  }
  const outer = (stores[0]?.ranges ?? []).filter((r) => r !== along && r !== across);
  const ranges = copied
    ? [...outer, rows.block, columns.block, ...down.ranges, ...right.ranges]
    : [...outer, rows.block, columns.block, down.ranges[0], right.ranges[0], down.ranges[1], right.ranges[1]];
  const tiled = stores.map(({ store }) => ({
    store: rewriter.store({ store, ranges: [] }).store,
    ranges: ranges as Range[],
  }));
  return nest.wrote(tiled, copied ? 'stage' : 'tile', [across, along], [rows.most * side, columns.most * side]);
}

/** Loops in the order in which a copy is filled: four rows of a block at a time, and for these all columns. */
function interleaved({ ranges: i }: Opened, { ranges: j }: Opened): Range[] {
  return [...j.slice(0, -1), ...i, ...j.slice(-1)];
}

interface Opened {
  /** From the outermost to the innermost. */
  readonly ranges: readonly Range[];
  /** Their expression in place of the range. */
  readonly change: readonly [Range, Replacement];
}

/** A loop in blocks of equal parts, with nested loops of these sizes; the last block may have fewer parts. */
class Blocks {
  readonly block: Range;
  readonly #range: Range;
  readonly #count: number;
  /** The number of parts, if the range ends at a size. */
  readonly #end: KNode | null;
  readonly most: number;
  readonly #sizes: readonly number[];
  readonly #e: Exprs;

  constructor(range: Range, most: number, sizes: readonly number[], e: Exprs) {
    this.#range = range;
    const size = sizes.reduce((n, x) => n * x, 1);
    const limit = sizeLimit(range);
    this.#count = range.arg.extent / size;
    this.#end = limit && e.idiv(limit, size);
    this.most = Math.min(most, this.#count);
    this.#sizes = sizes;
    this.#e = e;
    const blocks = this.#end === null ? undefined : e.idiv(e.add(this.#end, this.most - 1), this.most);
    this.block = e.range(Math.ceil(this.#count / this.most), 'loop', blocks);
  }

  /** New loops through a block; `kind` is that of the outermost loop within a part. */
  open(kind: 'unroll' | 'loop'): Opened {
    const e = this.#e;
    const start = e.mul(this.block, this.most);
    const whole = this.#end === null && this.#count % this.most === 0;
    const limit = whole ? undefined : e.min(e.sub(this.#end ?? e.i32(this.#count), start), this.most);
    if (limit !== undefined) assumeBounds(limit, 1, this.most);
    const part = e.range(this.most, 'loop', limit);
    const inner = this.#sizes.map((n, i) => e.range(n, i === 0 ? kind : 'loop'));
    const value = inner.reduce((sum: KNode, r) => e.add(e.mul(sum, r.arg.extent), r), e.add(start, part));
    assumeBounds(value, 0, this.#range.arg.extent - 1);
    return { ranges: [part, ...inner], change: [this.#range, { value, ranges: [] }] };
  }
}

export function bytesOf(n: KNode): number {
  return dtypeInfo[n.dtype as DType].bytes;
}

export interface Transposed {
  /** The range that is written contiguously, and the one along which the strided loads are contiguous. */
  readonly along: Range;
  readonly across: Range;
  /** Loads whose rows share cache sets. */
  readonly crowded: ReadonlySet<KNode>;
}

/** What a nest transposes, if tiles pay: loops of results with `least` elements. `step`: the most elements from one that is read of a row to the next. */
export function transposedRanges(
  nest: LoopNest,
  least: number = leastTransposed.along,
  step: number = 1,
): Transposed | null {
  const work = workOf(nest);
  const along = work.unitRange();
  if (work.binders.length > 0 || along === undefined || along.arg.extent < least || !endsAlone(along)) return null;
  const list = work.common() ?? [];
  if (sizeOf(list) < leastTransposed.elements) return null;
  let across: Range | undefined;
  const crowded = new Set<KNode>();
  for (const n of nodesOf(nest.stores.map((s) => s.store))) {
    if (n.op !== 'LOAD') continue;
    const index = n.src[1];
    const stride = work.typicalStrideOf(index, along);
    if (stride === null ? !isLookedUp(index, along, work) : Math.abs(stride) < side) continue;
    const isRow = (r: Range): boolean => {
      const apart = Math.abs(work.strideOf(index, r) ?? 0);
      return r !== along && r.arg.extent >= leastTransposed.across && apart >= 1 && apart <= step;
    };
    const found = list.find(isRow);
    if (found === undefined || !endsAlone(found) || (across !== undefined && across !== found)) continue;
    across = found;
    if (isCrowded((work.strideOf(index, along) ?? Number.NaN) * bytesOf(n)) && along.arg.extent >= side * squares)
      crowded.add(n);
  }
  return across === undefined ? null : { along, across, crowded };
}

/** True if an index depends on a range through a value read from memory: gathered rows. */
function isLookedUp(index: KNode, r: Range, work: NestWork): boolean {
  for (const n of nodesOf([index])) if (n.op === 'LOAD' && work.free.has(n, r)) return true;
  return false;
}

/** True if rows this many bytes apart use few cache sets, which hold few lines each. */
function isCrowded(stride: number): boolean {
  const rest = Math.abs(stride) % crowdedRows;
  return Math.min(rest, crowdedRows - rest) <= nearRows;
}

/** Contractions for engines with groups of threads, by a given tile (choose.ts has them): the dispatches, and their loop nests. */
import { longestWindow, mostSteps } from '../../codegen/costs/gpu.ts';
import { storesWhere } from '../../codegen/loops/transforms.ts';
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import type { Exprs } from '../../ir/expr.ts';
import {
  divisorOf,
  iterationsOf,
  isSized,
  lengthOf,
  type Range,
  sizeLimit,
  sizeOf,
  stretchesOf,
} from '../../ir/free-ranges.ts';
import type { KNode, LoopStore, RangeKind } from '../../ir/ir.ts';
import { assumeBounds } from '../../ir/node.ts';
import { type Replacement, Rewriter, step } from '../../ir/rewrite.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { Operand, representative } from '../access.ts';
import { Assembly } from '../assembly.ts';
import { workspaceFor } from '../workspace.ts';
import type { Contraction, Factor } from '../contraction.ts';
import { stageDomain } from '../staging.ts';
import {
  blockOf,
  blocksAlong,
  decodeInto,
  flatProblem,
  lineProblem,
  nameOf,
  type Problem,
  type Side,
  type SimtTile,
  threadsOf,
} from './problem.ts';

/** The problem as tiles of this kind see it. */
export function problemFor(c: Contraction, tile: SimtTile): Problem {
  return tile.kind === 'group' ? flatProblem(c) : lineProblem(c, tile.lanes);
}

/** True if the tile can compute the problem on the engine. */
export function tileFits(tile: SimtTile, problem: Problem, dtype: DType, caps: CodegenCaps): boolean {
  const { rows, columns, depth, depthStep } = problem;
  if (threadsOf(tile) > caps.maxGroup || tile.lanes > columns.least) return false;
  if (tile.parts > depth) return false;
  const bytes = Math.max(4, dtypeInfo[dtype].bytes);
  const block = blockOf(tile);
  switch (tile.kind) {
    case 'group':
      return (block.rows + block.columns) * tile.depth * bytes <= caps.sharedBytes;
    case 'dot':
      return depthStep % tile.depth === 0 && block.rows * block.columns * threadsOf(tile) * bytes <= caps.sharedBytes;
    case 'thread':
      return rows.extent > 0;
    default:
      return tile.kind satisfies never;
  }
}

/** Lowers a contraction by a tile that fits. */
export function lowerSimt(c: Contraction, e: Exprs, caps: CodegenCaps, tile: SimtTile): Lowered {
  const assembly = new Assembly(c.kernel, e, caps);
  const found = problemFor(c, tile);
  const problem = tile.copied ? withCopies(c, e, assembly, found, caps) : found;
  const part = tile.parts > 1 ? e.range(tile.parts) : null;
  const order = [...problem.outer, ...problem.rows.ranges, ...problem.columns.ranges];
  const memory = part === null ? null : workspaceFor(c, e, assembly, order, part);
  const stores = memory === null ? c.kernel.stores : [memory.store];
  assembly.add('', simtNest(e, { problem, tile, stores, reduce: c.reduce, part }), [
    step('tile', order, [], [nameOf(tile)]),
  ]);
  memory?.finish();
  return assembly.result();
}

/** True for factors that read better along a range once they are copied. */
export function gainsByCopy(c: Contraction, { factor, ranges }: Side, vectors: boolean, caps: CodegenCaps): boolean {
  const operand = new Operand(factor.value, c.k, c.free, caps);
  const last = ranges[ranges.length - 1];
  if (operand.access === null) return true;
  return vectors && last !== undefined && operand.strideOf(last) !== 1;
}

/** The problem with factors copied over their domains, columns contiguous, where that reads better. */
function withCopies(c: Contraction, e: Exprs, assembly: Assembly, problem: Problem, caps: CodegenCaps): Problem {
  const copy = (side: Side, vectors: boolean): Side => {
    if (!gainsByCopy(c, side, vectors, caps)) return side;
    const operand = new Operand(side.factor.value, c.k, c.free, caps);
    const last = vectors ? operand.axisOf(side.ranges[side.ranges.length - 1]!) : null;
    const axes = last === null ? operand.axes : [...operand.axes.filter((a) => a !== last), last];
    if (axes.some((a) => representative(a) === undefined)) return side;
    const { memory, offset, strides } = stageDomain(assembly, e, side.factor.value, axes);
    let index: KNode = e.i32(offset);
    for (const [r, stride] of strides) index = e.add(index, e.mul(r, stride));
    const factor: Factor = { value: e.load(memory, index), own: side.factor.own };
    return { ...side, factor };
  };
  return {
    ...problem,
    rows: copy(problem.rows, false),
    columns: copy(problem.columns, problem.columns.ranges.length > 0),
  };
}

// Loop nests of contractions for groups of threads: every range split, ordered and given its kind.
//
// As on CPUs they are ordinary loop nests: registers, vectors, epilogues, group memory and barriers come from
// codegen/linearize/. No thread leaves early. A tile that reaches past an edge is moved back: some results are computed twice, to the same
// bits, and stored once.

export interface SimtNest {
  readonly problem: Problem;
  readonly tile: SimtTile;
  readonly stores: readonly LoopStore[];
  readonly reduce: KNode;
  /** The part of the sum, where it is split. */
  readonly part: Range | null;
}

/** A position along a side or an outer loop, with the condition for its results to be stored (null: always). */
interface Place {
  readonly at: KNode;
  readonly kept: KNode | null;
}

/** A part of the sum. */
interface Chunk {
  readonly most: number;
  readonly length: KNode;
  readonly whole: boolean;
}

/** What a group needs of a side: `size` elements from `start` on, of which threads take `together`. */
interface Panel {
  readonly start: KNode;
  readonly size: number;
  readonly together: number;
}

/** The stores of the nest. */
function simtNest(e: Exprs, nest: SimtNest): LoopStore[] {
  return new SimtTiles(e, nest).stores();
}

class SimtTiles {
  readonly #e: Exprs;
  readonly #nest: SimtNest;
  readonly #grid: Range[] = [];
  readonly #tile: Range[] = [];
  readonly #part: KNode;
  /** Threads of the group that are not along the sum. */
  readonly #local: Range | null;

  constructor(e: Exprs, nest: SimtNest) {
    this.#e = e;
    this.#nest = nest;
    this.#part = nest.part === null ? e.i32(0) : this.#open(nest.part.arg.extent, 'grid', this.#grid);
    this.#local = nest.tile.kind === 'dot' ? null : e.range(threadsOf(nest.tile), 'local');
  }

  stores(): LoopStore[] {
    const e = this.#e;
    const { problem, tile, stores, reduce, part } = this.#nest;
    const { rows, columns, outer } = problem;
    const [across, down, around] = tile.kind === 'dot' ? [1, 1, 1] : tile.threads;
    const block = blockOf(tile);
    const local = this.#local ?? e.i32(0);
    const [tx, ty] = [e.irem(local, across), e.irem(e.idiv(local, across), down)];
    const tz = e.idiv(local, across * down);

    const total = iterationsOf(e, outer);
    const group = e.mul(this.#blocks(outer, around), around);
    const rowBlock = this.#blockStart(rows, block.rows);
    const columnBlock = this.#blockStart(columns, block.columns);

    const changes = new Map<Range, Replacement>();
    if (part !== null) changes.set(part, { value: this.#part, ranges: [] });
    const place = this.#inside(e.add(group, tz), outer, divisorOf(total) % around === 0, null);
    decodeInto(changes, e, outer, place.at);
    const factorChanges = new Map(changes);

    const i = this.#open(tile.rows, 'unroll', this.#tile);
    const row = this.#element(rows, rowBlock, block.rows, e.add(e.mul(ty, tile.rows), i), null);
    const v = this.#open(tile.vectors, 'unroll', this.#tile);
    const first = e.mul(e.add(e.mul(v, across), tx), tile.lanes);
    const lane = tile.lanes === 1 ? null : this.#open(tile.lanes, 'vector', this.#tile);
    const column = this.#element(columns, columnBlock, block.columns, first, lane);

    decodeInto(changes, e, rows.ranges, row.at);
    decodeInto(changes, e, columns.ranges, column.at);
    let sum: KNode;
    if (tile.kind === 'group') {
      const { value, ranges } = this.#staged(factorChanges, rowBlock.start, columnBlock.start, row.at, column.at);
      sum = e.reduce('sum', value, ranges);
    } else {
      const { ranges, inside } = tile.kind === 'dot' ? this.#alongSum(changes) : this.#loopsOfSum(changes);
      const factors = new Rewriter(e, changes);
      const [x, y] = [rows, columns].map(({ factor }) => factors.node(factor.value)) as [KNode, KNode];
      sum = e.reduce('sum', this.#orZero(e.mul(x, y), inside), ranges);
    }
    const rewriter = new Rewriter(e, changes);
    rewriter.set(reduce, sum);
    const kept = [place, row, column].reduce<KNode | null>(
      (all, { kept: one }) => (one === null ? all : all === null ? one : e.and(all, one)),
      null,
    );
    const ranges = [...this.#grid, ...(this.#local === null ? [] : [this.#local]), ...this.#tile];
    return storesWhere(e, stores, rewriter, kept, ranges);
  }

  /** A new range, added to a list, or the number 0. */
  #open(extent: number, kind: RangeKind, list: Range[], limit?: KNode): KNode {
    if (extent === 1) return this.#e.i32(0);
    const r = this.#e.range(extent, kind, limit);
    list.push(r);
    return r;
  }

  /** Groups along loops, with `size` elements each. */
  #blocks(ranges: readonly Range[], size: number): KNode {
    const { extent, limit } = blocksAlong(this.#e, ranges, size);
    return this.#open(extent, 'grid', this.#grid, limit);
  }

  /** First element of the group along a side: the nominal one, and the real one after a block at the edge was moved back. */
  #blockStart({ ranges, least }: Side, size: number): { readonly nominal: KNode; readonly start: KNode } {
    const e = this.#e;
    const nominal = e.mul(this.#blocks(ranges, size), size);
    const count = iterationsOf(this.#e, ranges);
    const movedBack = this.#nest.tile.kind === 'group' && least >= size && divisorOf(count) % size !== 0;
    return { nominal, start: movedBack ? e.min(nominal, e.sub(count, size)) : nominal };
  }

  /** Position `within` of the block, the first of `lanes` neighbours of which `lane` is one. */
  #element(
    { extent, ranges }: Side,
    { nominal, start }: { readonly nominal: KNode; readonly start: KNode },
    size: number,
    within: KNode,
    lane: KNode | null,
  ): Place {
    const e = this.#e;
    if (start !== nominal) {
      const at = e.add(e.add(start, within), lane ?? e.i32(0));
      assumeBounds(at, 0, extent - 1);
      return { at, kept: e.le(nominal, at) };
    }
    return this.#inside(e.add(nominal, within), ranges, divisorOf(iterationsOf(this.#e, ranges)) % size === 0, lane);
  }

  /** An index, or `lanes` neighbours from it, moved back into range; `kept` says if no other thread stores it. */
  #inside(nominal: KNode, ranges: readonly Range[], exact: boolean, lane: KNode | null): Place {
    const e = this.#e;
    const extent = sizeOf(ranges);
    const count = iterationsOf(this.#e, ranges);
    const lanes = lane === null ? 1 : this.#nest.tile.lanes;
    if (exact) {
      const at = e.add(nominal, lane ?? e.i32(0));
      assumeBounds(at, 0, extent - 1);
      return { at, kept: null };
    }
    const first = e.min(nominal, e.sub(count, lanes));
    assumeBounds(first, 0, extent - lanes);
    const at = e.add(first, lane ?? e.i32(0));
    // Vectors are moved only as a whole.
    return { at, kept: divisorOf(count) % lanes === 0 ? e.lt(nominal, count) : e.le(nominal, at) };
  }

  /** The value, or zero past the end of the sum. */
  #orZero(value: KNode, inside: KNode | null): KNode {
    if (inside === null) return value;
    const e = this.#e;
    const dtype = value.dtype as DType;
    return e.where(inside, value, e.constant(dtype, 0));
  }

  /** Steps of one part of the sum, a multiple of `unit` except in the last part; and whether all parts are full. */
  #chunk(unit: number): Chunk {
    const e = this.#e;
    const { problem, part } = this.#nest;
    const parts = part?.arg.extent ?? 1;
    const all = iterationsOf(this.#e, problem.k);
    return {
      most: Math.ceil(problem.depth / parts / unit) * unit,
      length: e.mul(stretchesOf(e, all, parts * unit), unit),
      whole: divisorOf(all) % (parts * unit) === 0,
    };
  }

  // --- threads that read memory themselves

  /** The nested loops of the sum, the outermost cut where the sum is split. */
  #loopsOfSum(changes: Map<Range, Replacement>): { ranges: Range[]; inside: null } {
    const e = this.#e;
    const { problem, part } = this.#nest;
    const cut = part === null ? -1 : splitAt(problem.k);
    let unrolled = 1;
    // Innermost first.
    const ranges = problem.k
      .map((_, i) => problem.k.length - 1 - i)
      .map((at) => {
        const r = problem.k[at]!;
        const { extent } = r.arg;
        if (at !== cut) {
          const inFull = extent <= longestWindow && unrolled * extent <= mostSteps && !isSized(r);
          if (inFull) unrolled *= extent;
          const loop = e.range(extent, inFull ? 'unroll' : 'reduce', sizeLimit(r) ?? undefined);
          changes.set(r, { value: loop, ranges: [] });
          return loop;
        }
        const parts = part!.arg.extent;
        const length = lengthOf(e, r);
        const chunk = stretchesOf(e, length, parts);
        const first = e.mul(this.#part, chunk);
        const limit = e.max(0, e.min(e.sub(length, first), chunk));
        const whole = extent % parts === 0 && !isSized(r);
        const loop = e.range(Math.ceil(extent / parts), 'reduce', whole ? undefined : limit);
        const value = e.add(first, loop);
        assumeBounds(value, 0, extent - 1);
        changes.set(r, { value, ranges: [] });
        return [loop];
      });
    return { ranges: ranges.reverse().flat(), inside: null };
  }

  /** The sum spread over the threads of the group. */
  #alongSum(changes: Map<Range, Replacement>): { ranges: Range[]; inside: KNode | null } {
    const e = this.#e;
    const { problem, tile } = this.#nest;
    const threads = threadsOf(tile);
    const chunk = this.#chunk(tile.depth);
    const together = threads * tile.depth;
    const limit = problem.k.some(isSized) ? stretchesOf(e, chunk.length, together) : undefined;
    const turns = e.range(Math.ceil(chunk.most / together), 'reduce', limit);
    const ranges = [turns, e.range(threads, 'local')] as [Range, Range, Range?];
    const [turn, local] = ranges;
    const vector = tile.depth === 1 ? e.i32(0) : e.range(tile.depth, 'vector');
    if (vector.op === 'RANGE') ranges.push(vector);
    const step = e.mul(e.add(e.mul(turn, threads), local), tile.depth);
    const first = e.mul(this.#part, chunk.length);
    const all = iterationsOf(this.#e, problem.k);
    const end = e.min(chunk.length, e.sub(all, first));
    const exact = divisorOf(chunk.length) % together === 0 && chunk.whole;
    const nominal = e.add(first, step);
    // The chunk and the whole sum are multiples of a vector, so each vector is inside or outside as a whole.
    const start = exact ? nominal : e.min(nominal, e.sub(all, tile.depth));
    assumeBounds(start, 0, problem.depth - tile.depth);
    decodeInto(changes, e, problem.k, e.add(start, vector));
    return { ranges: ranges as Range[], inside: exact ? null : e.lt(step, end) };
  }

  // --- tiles in group memory

  /** The sum over panels in group memory; `row` and `column` count from the block starts in the first two parameters. */
  #staged(
    changes: ReadonlyMap<Range, Replacement>,
    rowStart: KNode,
    columnStart: KNode,
    row: KNode,
    column: KNode,
  ): { value: KNode; ranges: Range[] } {
    const e = this.#e;
    const { problem, tile } = this.#nest;
    const block = blockOf(tile);
    const chunk = this.#chunk(tile.depth);
    const steps = problem.k.some(isSized) ? e.idiv(chunk.length, tile.depth) : undefined;
    const [step, inner] = [e.range(chunk.most / tile.depth, 'reduce', steps), e.range(tile.depth, 'reduce')];
    const first = e.add(e.mul(this.#part, chunk.length), e.mul(step, tile.depth));
    const exact = chunk.whole;
    const rows = this.#panel(
      problem.rows,
      { start: rowStart, size: block.rows, together: tile.rows },
      first,
      exact,
      changes,
    );
    const columns = this.#panel(
      problem.columns,
      { start: columnStart, size: block.columns, together: tile.lanes },
      first,
      exact,
      changes,
    );
    const value = e.mul(rows(e.sub(row, rowStart), inner), columns(e.sub(column, columnStart), inner));
    return { value, ranges: [step, inner] };
  }

  /**
   * The part of a factor that the group needs for `depth` steps from `first` on, in group memory. Returns how an element is read.
   * Threads read memory in the factor's memory order. If that is along the sum, each line of the panel is rotated by
   * its number. So threads that read a column of it use different banks.
   */
  #panel(
    side: Side,
    { start, size, together }: Panel,
    first: KNode,
    exact: boolean,
    changes: ReadonlyMap<Range, Replacement>,
  ): (element: KNode, inner: KNode) => KNode {
    const e = this.#e;
    const { problem, tile } = this.#nest;
    const threads = threadsOf(tile);
    const { depth } = tile;
    const turned = side.alongSum && !side.consecutive;
    const inSide = side.least >= size;
    const all = iterationsOf(this.#e, problem.k);
    const lanes =
      !turned && side.consecutive && inSide && (size * depth) % (threads * tile.lanes) === 0 ? tile.lanes : 1;
    const turns = Math.ceil((size * depth) / (threads * lanes));
    const own = [e.range(turns, turns <= 4 ? 'unroll' : 'serial'), e.range(threads, 'local')] as Range[];
    const vector = lanes === 1 ? e.i32(0) : e.range(lanes, 'vector');
    if (vector.op === 'RANGE') own.push(vector);
    const [turn, local] = own as [Range, Range];
    let flat: KNode = e.add(e.mul(turn, threads), local);
    const whole = turns * threads * lanes === size * depth;
    if (!whole) flat = e.min(flat, size * depth - 1);
    const position = e.add(e.mul(flat, lanes), vector);
    const mask = (x: KNode): KNode => e.irem(x, e.i32(depth));
    const spin = (element: KNode): KNode => e.idiv(element, together);
    const element = turned ? e.idiv(position, depth) : e.irem(position, size);
    const inner = turned ? mask(e.add(e.sub(position, spin(element)), depth * size)) : e.idiv(position, size);
    const along = e.add(start, element);
    const at = inSide ? along : e.min(along, e.sub(iterationsOf(this.#e, side.ranges), 1));
    const nominal = e.add(first, inner);
    const k = exact ? nominal : e.min(nominal, e.sub(all, 1));
    const inside = new Map(changes);
    decodeInto(inside, e, side.ranges, at);
    decodeInto(inside, e, problem.k, k);
    const value = new Rewriter(e, inside).node(side.factor.value);
    const panel = e.stage('shared', this.#orZero(value, exact ? null : e.lt(nominal, all)), own);
    return (wanted, step) =>
      e.load(
        panel,
        turned ? e.add(e.mul(wanted, depth), mask(e.add(step, spin(wanted)))) : e.add(e.mul(step, size), wanted),
      );
  }
}

/** The loop of the sum that is cut into parts: the outermost long one. */
export function splitAt(k: readonly Range[]): number {
  const longest = k.reduce((n, r) => Math.max(n, r.arg.extent), 0);
  return k.findIndex((r) => r.arg.extent * 4 >= longest);
}

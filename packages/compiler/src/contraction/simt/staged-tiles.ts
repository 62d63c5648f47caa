/**
 * The nest of a block of results whose factors are staged in group memory: what a group computes, and which parts of the factors it needs.
 *
 * It is a plain nest with a sum; codegen/linearize/stages.ts writes that sum. No block is moved back at an edge: elements outside are zero, and are
 * not stored. A layout says which thread multiplies what: matrix-tiles.ts, thread-tiles.ts.
 */
import type { Panel, StagedNest } from '../../codegen/linearize/stages.ts';
import { storesWhere } from '../../codegen/loops/transforms.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import type { Exprs } from '../../ir/expr.ts';
import { divisorOf, iterationsOf, type Range, stretchesOf } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import { assumeBounds, nodesOf } from '../../ir/node.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import type { Contraction } from '../contraction.ts';
import { blocksAlong, decodeInto, type Problem, readAlongSum, type Side } from './problem.ts';

/** A block of results of one group, and how it is computed. */
export interface StagedBlock {
  /** Dtype of the factors in group memory. */
  readonly dtype: DType;
  readonly rows: number;
  readonly columns: number;
  /** Steps of the sum per stage, and stages in group memory at a time. */
  readonly depth: number;
  readonly stages: number;
  /** Parts of the sum, added up by a second dispatch. */
  readonly parts: number;
}

/** Which results of a block each thread has. */
export interface Layout {
  readonly threads: number;
  /** Columns stored as one vector, if the number of columns is a multiple of it. */
  readonly vector: number;
  /** Results of a thread: the last range is of kind 'vector' if `inVectors`. */
  inTile(e: Exprs, inVectors: boolean): readonly Range[];
  /** Row and column of a result in the block; of a vector the column of its first element. */
  place(e: Exprs, thread: KNode, inTile: readonly Range[], inVectors: boolean): readonly [row: KNode, column: KNode];
  multiply(inVectors: boolean): StagedNest['multiply'];
}

/** A block and who computes what of it. */
export interface StagedWay {
  readonly block: StagedBlock;
  readonly layout: Layout;
}

/** A contraction, and its factors as they are multiplied, rows first. */
export interface StagedFactors {
  readonly problem: Problem;
  readonly values: readonly [KNode, KNode];
}

/** A position, clamped to the last one in range, and whether it was in range; null: it always is. */
interface Place {
  readonly at: KNode;
  readonly inside: KNode | null;
}

/** The nest of a block. */
export class StagedTiles {
  readonly nest: StagedNest;
  readonly #e: Exprs;
  readonly #problem: Problem;
  readonly #block: StagedBlock;
  readonly #layout: Layout;
  readonly #inVectors: boolean;
  readonly #values: readonly [KNode, KNode];
  readonly #grid: Range[] = [];
  readonly #outer = new Map<Range, Replacement>();
  readonly #starts: readonly [rows: KNode, columns: KNode];
  /** First step of the group's part of the sum, and the number of steps in all. */
  readonly #first: KNode;
  readonly #all: KNode;

  constructor(
    e: Exprs,
    { problem, values }: StagedFactors,
    { block, layout }: StagedWay,
    part: Range | null,
    caps: CodegenCaps,
  ) {
    this.#e = e;
    this.#problem = problem;
    this.#block = block;
    this.#layout = layout;
    this.#values = values;
    const { rows, columns, outer, k } = problem;
    const parts = part?.arg.extent ?? 1;
    const partAt = this.#open(parts);
    if (part !== null) this.#outer.set(part, { value: partAt, ranges: [] });
    decodeInto(this.#outer, e, outer, this.#blocks(outer, 1));
    this.#starts = [this.#blocks(rows.ranges, block.rows), this.#blocks(columns.ranges, block.columns)];
    this.#all = iterationsOf(this.#e, k);
    const stagesOfPart = stretchesOf(e, this.#all, parts * block.depth);
    this.#first = e.mul(partAt, stagesOfPart);
    this.#inVectors = layout.vector > 1 && divisorOf(iterationsOf(this.#e, columns.ranges)) % layout.vector === 0;
    const most = Math.ceil(problem.depth / parts / block.depth);
    assumeBounds(stagesOfPart, 1, most);
    this.nest = {
      dtype: block.dtype,
      depth: block.depth,
      steps: stagesOfPart,
      stages: block.stages,
      rows: this.#panel(rows, 0, block.rows, most, caps),
      columns: this.#panel(columns, 1, block.columns, most, caps),
      sum: e.range(most, 'reduce', k.length > 0 && stagesOfPart.op !== 'CONST' ? stagesOfPart : undefined),
      local: e.range(layout.threads, 'local'),
      inTile: layout.inTile(e, this.#inVectors),
      multiply: layout.multiply(this.#inVectors),
    };
  }

  /** The stores, over the loops of the block, with a plain sum. */
  stores(c: Contraction, stores: Contraction['kernel']['stores']): ReturnType<typeof storesWhere> {
    const e = this.#e;
    const { rows, columns, k } = this.#problem;
    const { local, inTile, sum } = this.nest;
    const [rowOf, columnOf] = this.#layout.place(e, local, inTile, this.#inVectors);
    const lane = this.#inVectors ? inTile[inTile.length - 1]! : null;
    const row = this.#place(rows, e.add(e.mul(this.#starts[0], this.#block.rows), rowOf), this.#block.rows, null);
    const first = e.add(e.mul(this.#starts[1], this.#block.columns), columnOf);
    const column = this.#place(columns, first, this.#block.columns, lane);
    const changes = new Map(this.#outer);
    decodeInto(changes, e, rows.ranges, row.at);
    decodeInto(changes, e, columns.ranges, column.at);
    // The sum as it would be written without matrix instructions.
    const inner = e.range(this.#block.depth, 'reduce');
    const nominal = e.add(e.mul(e.add(this.#first, sum), this.#block.depth), inner);
    const isWhole = this.#isWhole();
    const at = isWhole ? nominal : e.min(nominal, e.sub(this.#all, 1));
    const inSum = new Map(changes);
    decodeInto(inSum, e, k, at);
    const factors = new Rewriter(e, inSum);
    const product = e.mul(factors.node(rows.factor.value), factors.node(columns.factor.value));
    const value = isWhole ? product : e.where(e.lt(nominal, this.#all), product, e.constant(product.dtype as DType, 0));
    const rewriter = new Rewriter(e, changes);
    rewriter.set(c.reduce, e.reduce('sum', value, [sum, inner]));
    const kept =
      row.inside === null ? column.inside : column.inside === null ? row.inside : e.and(row.inside, column.inside);
    return storesWhere(e, stores, rewriter, kept, [...this.#grid, local, ...inTile]);
  }

  #open(extent: number, limit?: KNode): KNode {
    if (extent === 1) return this.#e.i32(0);
    const r = this.#e.range(extent, 'grid', limit);
    this.#grid.push(r);
    return r;
  }

  /** Blocks along loops, with `size` elements each. */
  #blocks(ranges: readonly Range[], size: number): KNode {
    const { extent, limit } = blocksAlong(this.#e, ranges, size);
    return this.#open(extent, limit);
  }

  #isWhole(): boolean {
    return divisorOf(this.#all) % (this.#block.parts * this.#block.depth) === 0;
  }

  /** An element of a side, or neighbours of which `lane` is one. */
  #place({ ranges, extent }: Side, nominal: KNode, size: number, lane: Range | null): Place {
    const e = this.#e;
    const count = iterationsOf(this.#e, ranges);
    const together = lane?.arg.extent ?? 1;
    const isWhole = divisorOf(count) % size === 0;
    const first = isWhole ? nominal : e.min(nominal, e.sub(count, together));
    const at = lane === null ? first : e.add(first, lane);
    assumeBounds(at, 0, extent - 1);
    return { at, inside: isWhole ? null : e.lt(nominal, count) };
  }

  /** A panel of a factor: in units of 16 bytes where memory allows, else element by element in memory order. */
  #panel(side: Side, number: 0 | 1, size: number, most: number, caps: CodegenCaps): Panel {
    const { bytes } = dtypeInfo[this.#block.dtype];
    const alongSum = readAlongSum(side, this.#problem.k);
    const wide = this.#panelOf(side, number, size, alongSum, 16 / bytes, most);
    if (wide !== null && isUnit(wide, 16 / bytes)) return this.#copied(wide, caps);
    const single = this.#panelOf(side, number, size, alongSum, 1, most)!;
    return bytes >= 4 ? this.#copied(single, caps) : single;
  }

  /** The panel as an asynchronous copy, where the target has them and nothing is computed of its elements. */
  #copied(panel: Panel, caps: CodegenCaps): Panel {
    const found = caps.copies === true ? loadOf(this.#e, panel.value) : null;
    if (found === null) return panel;
    const { load, open } = found;
    const inside = panel.inside === null ? open : open === null ? panel.inside : this.#e.and(panel.inside, open);
    return { ...panel, value: load, inside, copied: true };
  }

  /** Null where units would reach beyond an edge. */
  #panelOf(side: Side, number: 0 | 1, size: number, alongSum: boolean, width: number, most: number): Panel | null {
    const e = this.#e;
    const { depth } = this.#block;
    const { k } = this.#problem;
    const count = iterationsOf(this.#e, side.ranges);
    const [lines, line] = alongSum ? [size, depth] : [depth, size];
    const unitsOf = alongSum ? this.#all : count;
    if (divisorOf(unitsOf) % width !== 0) return null;
    const ranges = { step: e.range(most), line: e.range(lines), unit: e.range(line / width) };
    const lane = width === 1 ? null : e.range(width, 'vector');
    /** The `index`-th stretch of `width` elements, and the element in it. */
    const stretch = (
      index: KNode,
      total: KNode,
      isWhole: boolean,
      highest: number,
      by: number,
      of: Range | null,
    ): Place => {
      const units = e.idiv(total, by);
      const at = e.add(e.mul(isWhole ? index : e.min(index, e.sub(units, 1)), by), of ?? e.i32(0));
      assumeBounds(at, 0, highest - 1);
      return { at, inside: isWhole ? null : e.lt(index, units) };
    };
    const wholeSide = divisorOf(count) % size === 0;
    const [bySum, bySide] = alongSum ? [width, 1] : [1, width];
    const stage = e.mul(e.add(this.#first, ranges.step), depth / bySum);
    const kAt = stretch(
      e.add(stage, alongSum ? ranges.unit : ranges.line),
      this.#all,
      this.#isWhole(),
      this.#problem.depth,
      bySum,
      alongSum ? lane : null,
    );
    const sideAt = stretch(
      e.add(e.mul(this.#starts[number], size / bySide), alongSum ? ranges.line : ranges.unit),
      count,
      wholeSide,
      side.extent,
      bySide,
      alongSum ? null : lane,
    );
    const changes = new Map(this.#outer);
    this.#decode(changes, number, side.ranges, sideAt.at);
    this.#decode(changes, number, k, kAt.at);
    const value = new Rewriter(e, changes).node(this.#values[number]);
    const inside =
      kAt.inside === null ? sideAt.inside : sideAt.inside === null ? kAt.inside : e.and(kAt.inside, sideAt.inside);
    return { value, inside, ...ranges, lane, alongSum, copied: false };
  }

  /**
   * Expresses loops by one index. Where a factor is a plain load that reads all of them contiguously, the innermost loop
   * represents all, so that neighbours stay neighbours.
   */
  #decode(changes: Map<Range, Replacement>, number: 0 | 1, ranges: readonly Range[], at: KNode): void {
    const e = this.#e;
    const value = this.#values[number];
    if (isPlain(value) && ranges.length > 1) {
      const { terms, coefs } = linearOf(value.src[1]!);
      const strides = ranges.map((r) => (r.src.length > 0 ? Number.NaN : (coefs[terms.indexOf(r)] ?? Number.NaN)));
      const inOrder = strides.every((s, i) => i === 0 || strides[i - 1] === s * ranges[i]!.arg.extent);
      const alone = terms.every((t) => t.op === 'RANGE');
      if (inOrder && alone && strides.every((s) => s > 0)) {
        for (const [i, r] of ranges.entries())
          changes.set(r, { value: i === ranges.length - 1 ? at : e.i32(0), ranges: [] });
        return;
      }
    }
    decodeInto(changes, e, ranges, at);
  }
}

/** True for an unconditional load from a tensor that is only read. */
function isPlain(value: KNode): value is KNodeOf<'LOAD'> {
  const memory = value.src[0];
  return value.op === 'LOAD' && value.src.length === 2 && memory?.op === 'PARAM' && memory.arg.access === 'read';
}

/** A plain load with zero where its conditions do not hold; null for other values. */
function loadOf(e: Exprs, value: KNode): { readonly load: KNode; readonly open: KNode | null } | null {
  const conditions: KNode[] = [];
  const isZero = (x: KNode | undefined): boolean => x?.op === 'CONST' && Object.is(x.arg.value, 0);
  let load = value;
  for (;;) {
    if (load.op === 'WHERE') {
      const [condition, x, y] = load.src;
      if (isZero(y)) conditions.push(condition);
      else if (isZero(x)) conditions.push(e.not(condition));
      else return null;
      load = isZero(y) ? x : y;
      continue;
    }
    if (load.op !== 'LOAD') return null;
    const [memory, index, gate, other] = load.src;
    if (gate !== undefined && (other === undefined || isZero(other))) {
      conditions.push(gate);
      load = e.load(memory, index);
    }
    if (!isPlain(load)) return null;
    return { load, open: conditions.length === 0 ? null : conditions.reduce((x, y) => e.and(x, y)) };
  }
}

/** True if the elements of a unit are adjacent and aligned in memory, whatever is computed of them. */
function isUnit({ value, lane }: Panel, width: number): boolean {
  if (lane === null) return false;
  const around = nodesOf([value], (n) => (n.op === 'LOAD' ? n.src.slice(2) : n.src));
  if (around.has(lane)) return false;
  return [...around].every((n) => {
    if (n.op !== 'LOAD') return true;
    const { terms, coefs, offset } = linearOf(n.src[1]);
    const own = terms.indexOf(lane);
    if (terms.some((t, i) => i !== own && nodesOf([t]).has(lane))) return false;
    if (own < 0) return true;
    return coefs[own] === 1 && offset % width === 0 && coefs.every((x, i) => i === own || x % width === 0);
  });
}

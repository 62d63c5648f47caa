/**
 * Contractions by tiles of matrices (`caps.matrix`): which are, in what blocks, and what a group needs of their factors.
 *
 * Factors of 16 bits are multiplied as they are and summed in float32. float32 is, rounded to TF32, where the target lists such a tile. All else
 * is left to choose.ts. The nest is a plain one with a sum in it; codegen/linearize/matrix.ts writes that sum as products of tiles. No block is
 * moved back at an edge: what lies outside is zero, and is not stored.
 */
import { enoughGroups, mostParts, partings, thin } from '../../codegen/costs/gpu.ts';
import { byMatrices, type MatrixNest, type MatrixPanel } from '../../codegen/linearize/matrix.ts';
import { storesWhere } from '../../codegen/loops/transforms.ts';
import type { CodegenCaps, Lowered, LoweredDispatch } from '../../codegen/lowering.ts';
import type { Exprs } from '../../ir/expr.ts';
import { divisorOf, endOf, type Range, sizeOf, stretchesOf } from '../../ir/free-ranges.ts';
import type { KNode, Program } from '../../ir/ir.ts';
import { type MatrixForm, matrixThreads, stepsOf } from '../../ir/matrix.ts';
import { assumeBounds, nodesOf } from '../../ir/node.ts';
import { programOf } from '../../ir/program.ts';
import { type Replacement, Rewriter, step } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import { Assembly, viaMemory } from '../assembly.ts';
import {
  byLibrary,
  type Contraction,
  type ContractionTemplate,
  hasSizes,
  type Way,
  worthwhile,
} from '../contraction.ts';
import { questionOf } from '../choice.ts';
import { byThreads, candidateTiles } from './choose.ts';
import { lowerSimt } from './gemm.ts';
import { decodeInto, flatProblem, matrixName, nameOf, type Problem, type Side } from './problem.ts';

/** A block of results of a group, and how it is computed. */
export interface MatrixBlock {
  readonly form: MatrixForm;
  readonly rows: number;
  readonly columns: number;
  /** Steps of the sum in a stage; stages in group memory at a time. */
  readonly depth: number;
  readonly stages: number;
  /** Parts of the sum, added up by a second dispatch. */
  readonly parts: number;
}

/** Bytes of a line of a stage along the sum. */
const depthBytes = 64;
/** Most stages in group memory, with copies beside other work, and without. */
const mostStages = { copied: 4, stored: 2 };
/** Bytes of group memory from which on stages are no longer worth it: two groups should fit where there are 128 KiB. */
const enoughBytes = 64 * 1024;

/** The value in a narrower dtype, where it is one that was cast; null where it is not. */
function uncast(e: Exprs, value: KNode, dtype: MatrixForm['dtype']): KNode | null {
  if (value.dtype === dtype) return value;
  if (value.op === 'CAST') return value.src[0].dtype === dtype ? value.src[0] : null;
  // Zero, what padding is made of, is in all of them.
  if (value.op === 'CONST') return value.arg.value === 0 ? e.constant(dtype, value.arg.value) : null;
  if (value.op !== 'WHERE') return null;
  const [x, y] = [uncast(e, value.src[1], dtype), uncast(e, value.src[2], dtype)];
  return x === null || y === null ? null : e.where(value.src[0], x, y);
}

/** The factors as a tile takes them, rows first, and the tile. */
function formOf(
  { rows, columns }: Problem,
  c: Contraction,
  e: Exprs,
  caps: CodegenCaps,
): { readonly form: MatrixForm; readonly values: readonly [KNode, KNode] } | null {
  if (c.reduce.dtype !== 'float32') return null;
  // Of two tiles for a dtype the longer one does more with an instruction.
  const forms = [...(caps.matrix ?? [])].sort((x, y) => stepsOf(y.tile) - stepsOf(x.tile));
  for (const form of forms) {
    const x = uncast(e, rows.factor.value, form.dtype);
    const y = uncast(e, columns.factor.value, form.dtype);
    if (x !== null && y !== null) return { form, values: [x, y] };
  }
  return null;
}

function up(n: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, n)));
}

/** Rows and columns that a set of 32 threads has of a block. */
function shareOf({ rows, columns }: MatrixBlock): readonly [number, number] {
  return [rows >= 128 ? 64 : rows >= 64 ? 32 : 16, columns >= 64 ? 32 : columns >= 32 ? 16 : 8];
}

function threadsOfBlock(block: MatrixBlock): number {
  const [rows, columns] = shareOf(block);
  return (block.rows / rows) * (block.columns / columns) * matrixThreads;
}

/** A block in one word, for stores and reports, but for the parts of its sum. */
function nameOfBlock({ form, rows, columns, depth, stages }: MatrixBlock): string {
  return `${matrixName}${form.tile}:${rows}x${columns}x${depth}:${stages}`;
}

/** Bytes of group memory of so many stages. */
function bytesOf({ rows, columns, depth, form }: MatrixBlock, stages: number): number {
  const { bytes } = dtypeInfo[form.dtype];
  return stages * (rows + columns) * (depth * bytes + 16);
}

function groupsOf({ rows, columns }: MatrixBlock, problem: Problem): number {
  const along = (side: Side, size: number): number => Math.ceil(side.extent / size);
  return along(problem.rows, rows) * along(problem.columns, columns) * sizeOf(problem.outer);
}

/** A block of so many rows and columns with the stages there is room for and its sum in parts; null where it does not fit. */
function blockOf(
  problem: Problem,
  form: MatrixForm,
  caps: CodegenCaps,
  rows: number,
  columns: number,
): MatrixBlock | null {
  const depth = depthBytes / dtypeInfo[form.dtype].bytes;
  const block = { form, rows, columns, depth, stages: 2, parts: 1 };
  if (bytesOf(block, 2) > caps.sharedBytes || threadsOfBlock(block) > caps.maxGroup) return null;
  const most = caps.copies === true ? mostStages.copied : mostStages.stored;
  const room = Math.min(caps.sharedBytes, enoughBytes);
  while (block.stages < most && bytesOf(block, block.stages + 1) <= room) block.stages++;
  return { ...block, parts: partsOf(groupsOf(block, problem), problem.depth, depth) };
}

/** The block for a problem, by its shape; null where tiles of matrices do not pay or do not fit. */
function blockFor(problem: Problem, form: MatrixForm, caps: CodegenCaps): MatrixBlock | null {
  const { depth: steps } = problem;
  if (Math.min(problem.rows.extent, problem.columns.extent) <= thin || steps < stepsOf(form.tile)) return null;
  const clamp = (n: number): number => Math.min(128, Math.max(16, up(n)));
  let [rows, columns] = [clamp(problem.rows.extent), clamp(problem.columns.extent)];
  const longParts = Math.max(1, Math.floor(steps / partings[1].group));
  for (;;) {
    const block = blockOf(problem, form, caps, rows, columns);
    const isEnough = block !== null && groupsOf(block, problem) * longParts >= enoughGroups;
    if (isEnough || rows * columns <= 256) return block;
    if (rows >= columns) rows /= 2;
    else columns /= 2;
  }
}

/** Blocks worth measuring, that of the shape first. */
function blocksFor(problem: Problem, form: MatrixForm, caps: CodegenCaps): MatrixBlock[] {
  const first = blockFor(problem, form, caps);
  if (first === null) return [];
  const sizes: readonly (readonly [number, number])[] = [[128, 128], [128, 64], [64, 128], [64, 64], [64, 32], [32, 64], [32, 32]]; // biome-ignore format: pairs
  const useful = sizes.filter(
    ([r, c]) => r < 2 * Math.max(16, problem.rows.extent) && c < 2 * Math.max(16, problem.columns.extent),
  );
  const others = useful.flatMap(([r, c]) => {
    const block = blockOf(problem, form, caps, r, c);
    if (block === null) return [];
    // Fewer stages leave room for another group.
    return block.stages > 2 ? [block, { ...block, stages: block.stages - 1 }] : [block];
  });
  return [...new Map([first, ...others].map((b) => [nameOfBlock(b), b])).values()];
}

/** Parts of a long sum where there are few groups; none is empty. */
function partsOf(groups: number, steps: number, unit: number): number {
  const parts = partings.map((p) =>
    groups * 2 > p.groups ? 1 : Math.min(mostParts, Math.floor(steps / p.group), Math.ceil(p.groups / groups)),
  );
  const most = Math.max(1, ...parts);
  const chunk = Math.ceil(steps / most / unit) * unit;
  return Math.ceil(steps / chunk);
}

/** A contraction as tiles of matrices take it. */
interface MatrixProblem {
  readonly problem: Problem;
  readonly form: MatrixForm;
  readonly values: readonly [KNode, KNode];
  /** That of the shape first. */
  readonly blocks: readonly MatrixBlock[];
}

/** Null where the target has no tiles for a contraction, or they do not pay. */
function matrixProblem(c: Contraction, e: Exprs, caps: CodegenCaps): MatrixProblem | null {
  const problem = flatProblem(c);
  const found = formOf(problem, c, e, caps);
  if (found === null) return null;
  const blocks = blocksFor(problem, found.form, caps);
  return blocks.length === 0 ? null : { problem, ...found, blocks };
}

/**
 * Lowers a kernel around a contraction by tiles of matrices where the target has some for it, or by a library where that was measured faster;
 * else as `others` do.
 */
export function matrixContraction(others: ContractionTemplate): ContractionTemplate {
  return (kernel, e, caps, choices) => {
    const c = caps.matrix === undefined ? null : worthwhile(kernel, e, caps);
    const found = c && matrixProblem(c, e, caps);
    return c && found ? chosenWay(c, found, e, caps, choices) : others(kernel, e, caps, choices);
  };
}

/** The block that was measured fastest, or what else was, or the first block. */
function chosenWay(
  c: Contraction,
  found: MatrixProblem,
  e: Exprs,
  caps: CodegenCaps,
  choices: Parameters<ContractionTemplate>[3],
): Lowered | null {
  const question = questionOf(c, caps, choices?.library);
  const key = `${found.form.dtype} ${found.form.tile} ${question?.key}`;
  if (!hasSizes(c)) choices?.note(key, c.kernel, e);
  const chosen = choices?.find(key);
  if (chosen === byLibrary && question?.product)
    return choices?.library?.programs.lower(c, e, caps, question.product) ?? null;
  // Measured with other extents of the same class: it need not fit.
  const block = found.blocks.find((b) => nameOfBlock(b) === chosen);
  if (block === undefined && chosen !== undefined && !chosen.startsWith(matrixName))
    return byThreads(c, e, caps, chosen);
  return lowerBlock(c, e, caps, found, block ?? found.blocks[0]!);
}

/** Ways worth measuring: blocks of tiles of matrices, and the first of the others. */
export function matrixWays(c: Contraction, e: Exprs, caps: CodegenCaps): Way[] {
  const found = caps.matrix === undefined ? null : matrixProblem(c, e, caps);
  const tiles = candidateTiles(c, caps).map((tile): Way => [nameOf(tile), () => lowerSimt(c, e, caps, tile)]);
  if (found === null) return tiles;
  const blocks = found.blocks.map((b): Way => [nameOfBlock(b), () => lowerBlock(c, e, caps, found, b)]);
  return [...blocks, ...tiles.slice(0, 1)];
}

function lowerBlock(
  c: Contraction,
  e: Exprs,
  caps: CodegenCaps,
  { problem, values }: MatrixProblem,
  block: MatrixBlock,
): Lowered {
  const assembly = new Assembly(c.kernel, e, caps);
  const part = block.parts > 1 ? e.range(block.parts) : null;
  const order = [...problem.outer, ...problem.rows.ranges, ...problem.columns.ranges];
  const memory = part === null ? null : viaMemory(c, e, assembly, order, part);
  const stores = memory === null ? c.kernel.stores : [memory.store];
  const tiles = new MatrixTiles(e, problem, block, values, part, caps);
  const name = `${nameOfBlock(block)}${block.parts > 1 ? `/${block.parts}` : ''}`;
  assembly.add('', tiles.stores(c, stores), [step('tile', order, [], [name])], undefined, byMatrices(tiles.nest));
  memory?.finish();
  const { dispatches, temps } = assembly.result();
  const [first, ...rest] = dispatches as [LoweredDispatch, ...LoweredDispatch[]];
  return { dispatches: [{ ...first, program: counted(first.program, problem, block) }, ...rest], temps };
}

/** With the cost of a group: what its products and copies are, beside what is counted of its text. */
function counted(program: Program, { depth }: Problem, { rows, columns, parts, form }: MatrixBlock): Program {
  const steps = Math.ceil(depth / parts);
  const { flops, bytes } = program.cost;
  const brought = (rows + columns) * steps * dtypeInfo[form.dtype].bytes;
  return programOf({ ...program, cost: { flops: flops + 2 * rows * columns * steps, bytes: bytes + brought } });
}

/** A position that may lie outside, moved to the last one there is, and whether it was inside; null: it always is. */
interface Place {
  readonly at: KNode;
  readonly inside: KNode | null;
}

/** The nest of a block. */
class MatrixTiles {
  readonly nest: MatrixNest;
  readonly #e: Exprs;
  readonly #problem: Problem;
  readonly #block: MatrixBlock;
  readonly #values: readonly [KNode, KNode];
  readonly #grid: Range[] = [];
  readonly #outer = new Map<Range, Replacement>();
  readonly #starts: readonly [rows: KNode, columns: KNode];
  /** The first step of the sum of the group, and how many steps the sum has in all. */
  readonly #first: KNode;
  readonly #all: KNode;

  constructor(
    e: Exprs,
    problem: Problem,
    block: MatrixBlock,
    values: readonly [KNode, KNode],
    part: Range | null,
    caps: CodegenCaps,
  ) {
    this.#e = e;
    this.#problem = problem;
    this.#block = block;
    this.#values = values;
    const { rows, columns, outer, k } = problem;
    const parts = part?.arg.extent ?? 1;
    const partAt = this.#open(parts);
    if (part !== null) this.#outer.set(part, { value: partAt, ranges: [] });
    decodeInto(this.#outer, e, outer, this.#blocks(outer, 1));
    this.#starts = [this.#blocks(rows.ranges, block.rows), this.#blocks(columns.ranges, block.columns)];
    this.#all = this.#countOf(k);
    const stagesOfPart = stretchesOf(e, this.#all, parts * block.depth);
    this.#first = e.mul(partAt, stagesOfPart);
    const [down, across] = shareOf(block);
    const even = divisorOf(this.#countOf(columns.ranges)) % 2 === 0;
    const tiles = [down / 16, across / 8] as const;
    const most = Math.ceil(problem.depth / parts / block.depth);
    assumeBounds(stagesOfPart, 1, most);
    this.nest = {
      form: block.form,
      depth: block.depth,
      steps: stagesOfPart,
      stages: block.stages,
      across: block.columns / across,
      tiles,
      rows: this.#panel(rows, 0, block.rows, most, caps),
      columns: this.#panel(columns, 1, block.columns, most, caps),
      sum: e.range(most, 'reduce', k.length > 0 && stagesOfPart.op !== 'CONST' ? stagesOfPart : undefined),
      local: e.range(threadsOfBlock(block), 'local'),
      inTile: [
        e.range(tiles[0], 'unroll'),
        e.range(tiles[1], 'unroll'),
        e.range(2, 'unroll'),
        e.range(2, even ? 'vector' : 'unroll'),
      ],
    };
  }

  /** The stores, over the loops of the block, with a plain sum. */
  stores(c: Contraction, stores: Contraction['kernel']['stores']): ReturnType<typeof storesWhere> {
    const e = this.#e;
    const { rows, columns, k } = this.#problem;
    const { local, inTile, sum, across } = this.nest;
    const [i, j, half, pair] = inTile;
    const [down, right] = shareOf(this.#block);
    const [set, lane] = [e.idiv(local, matrixThreads), e.irem(local, matrixThreads)];
    const rowOf = e.add(e.add(e.mul(e.idiv(set, across), down), e.mul(i, 16)), e.add(e.idiv(lane, 4), e.mul(half, 8)));
    const columnOf = e.add(e.add(e.mul(e.irem(set, across), right), e.mul(j, 8)), e.mul(e.irem(lane, 4), 2));
    const isVector = pair.arg.kind === 'vector';
    const row = this.#place(rows, e.add(e.mul(this.#starts[0], this.#block.rows), rowOf), this.#block.rows, null);
    const first = e.add(e.mul(this.#starts[1], this.#block.columns), columnOf);
    const column = this.#place(
      columns,
      isVector ? first : e.add(first, pair),
      this.#block.columns,
      isVector ? pair : null,
    );
    const changes = new Map(this.#outer);
    decodeInto(changes, e, rows.ranges, row.at);
    decodeInto(changes, e, columns.ranges, column.at);
    // The sum as it would be written without tiles of matrices.
    const inner = e.range(this.#block.depth, 'reduce');
    const nominal = e.add(e.mul(e.add(this.#first, sum), this.#block.depth), inner);
    const isWhole = this.#isWhole();
    const at = isWhole ? nominal : e.min(nominal, e.sub(this.#all, 1));
    const inSum = new Map(changes);
    decodeInto(inSum, e, k, at);
    const factors = new Rewriter(e, inSum);
    const product = e.mul(factors.node(rows.factor.value), factors.node(columns.factor.value));
    const value = isWhole ? product : e.where(e.lt(nominal, this.#all), product, e.f32(0));
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

  #countOf(ranges: readonly Range[]): KNode {
    return endOf(this.#e, ranges) ?? this.#e.i32(sizeOf(ranges));
  }

  /** Blocks along loops, `size` elements each. */
  #blocks(ranges: readonly Range[], size: number): KNode {
    const end = endOf(this.#e, ranges);
    const limit = end === null ? undefined : stretchesOf(this.#e, end, size);
    return this.#open(Math.ceil(sizeOf(ranges) / size), limit);
  }

  #isWhole(): boolean {
    return divisorOf(this.#all) % (this.#block.parts * this.#block.depth) === 0;
  }

  /** An element of a side, or two neighbours of which `lane` is one. */
  #place({ ranges, extent }: Side, nominal: KNode, size: number, lane: KNode | null): Place {
    const e = this.#e;
    const count = this.#countOf(ranges);
    const together = lane === null ? 1 : 2;
    const isWhole = divisorOf(count) % size === 0;
    const first = isWhole ? nominal : e.min(nominal, e.sub(count, together));
    const at = lane === null ? first : e.add(first, lane);
    assumeBounds(at, 0, extent - 1);
    return { at, inside: isWhole ? null : e.lt(nominal, count) };
  }

  /** A panel of a factor: in units of 16 bytes where memory has such, else element by element in the order of memory. */
  #panel(side: Side, number: 0 | 1, size: number, most: number, caps: CodegenCaps): MatrixPanel {
    const wide = 16 / dtypeInfo[this.#block.form.dtype].bytes;
    const alongSum = side.alongSum || !side.consecutive;
    const inUnits = this.#panelOf(side, number, size, alongSum, wide, most);
    if (inUnits !== null && isUnit(inUnits, wide)) {
      const copied = caps.copies === true && isPlain(inUnits.value);
      return { ...inUnits, copied };
    }
    return this.#panelOf(side, number, size, alongSum, 1, most)!;
  }

  /** Null where units would reach beyond an edge. */
  #panelOf(
    side: Side,
    number: 0 | 1,
    size: number,
    alongSum: boolean,
    width: number,
    most: number,
  ): MatrixPanel | null {
    const e = this.#e;
    const { depth } = this.#block;
    const { k } = this.#problem;
    const count = this.#countOf(side.ranges);
    const [lines, line] = alongSum ? [size, depth] : [depth, size];
    const unitsOf = alongSum ? this.#all : count;
    if (divisorOf(unitsOf) % width !== 0) return null;
    const ranges = { step: e.range(most), line: e.range(lines), unit: e.range(line / width) };
    const lane = width === 1 ? null : e.range(width, 'vector');
    /** The `index`-th stretch of `width` elements, and which of its elements. */
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
   * Loops in terms of one index. Where a factor is a plain load that goes through all of them in order, as through one loop, the innermost stands
   * for all, so that neighbours stay neighbours.
   */
  #decode(changes: Map<Range, Replacement>, number: 0 | 1, ranges: readonly Range[], at: KNode): void {
    const e = this.#e;
    const value = this.#values[number];
    if (isPlain(value) && ranges.length > 1) {
      const { terms, coefs } = linearOf(value.src[1] as KNode);
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

/** True for a load from a tensor that is only read, without conditions. */
function isPlain(value: KNode): boolean {
  const memory = value.src[0];
  return value.op === 'LOAD' && value.src.length === 2 && memory?.op === 'PARAM' && memory.arg.access === 'read';
}

/** True if the elements of a unit lie side by side in memory at a multiple of their number, whatever is computed of them. */
function isUnit({ value, lane }: MatrixPanel, width: number): boolean {
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

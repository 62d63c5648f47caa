/**
 * Contractions by tiles of matrices (`caps.matrix`): which are, and in what blocks. The nest of a block is in matrix-tiles.ts.
 *
 * Factors of 16 bits are multiplied as they are and summed in float32. float32 is, rounded to TF32, where the target lists such a tile. All else
 * is left to choose.ts.
 */
import { enoughGroups, mostParts, partings, thin } from '../../codegen/costs/gpu.ts';
import { byMatrices } from '../../codegen/linearize/matrix.ts';
import type { CodegenCaps, Lowered, LoweredDispatch } from '../../codegen/lowering.ts';
import type { Exprs } from '../../ir/expr.ts';
import { sizeOf } from '../../ir/free-ranges.ts';
import type { KNode, Program } from '../../ir/ir.ts';
import { type MatrixForm, stepsOf } from '../../ir/matrix.ts';
import { programOf } from '../../ir/program.ts';
import { step } from '../../ir/rewrite.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import { Assembly } from '../assembly.ts';
import { viaMemory } from '../through-memory.ts';
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
import { flatProblem, matrixName, nameOf, type Problem, type Side } from './problem.ts';
import { type MatrixBlock, MatrixTiles, threadsOfBlock } from './matrix-tiles.ts';

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

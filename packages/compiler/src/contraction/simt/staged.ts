/**
 * Contractions whose factors are staged in group memory: by matrix instructions where the target has them for the dtype, else by
 * threads with a few rows and columns each. Problems that gain from neither are left to choose.ts.
 */
import { inStages } from '../../codegen/linearize/stages.ts';
import type { CodegenCaps, Lowered, LoweredDispatch, Way } from '../../codegen/lowering.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { Program } from '../../ir/ir.ts';
import { programOf } from '../../ir/program.ts';
import { step } from '../../ir/rewrite.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { Assembly } from '../assembly.ts';
import { workspaceFor } from '../workspace.ts';
import { questionOf } from '../choice.ts';
import { type Contraction, worthwhile } from '../contraction.ts';
import { byLibrary, type ContractionTemplate } from '../template.ts';
import { blocksFor } from './blocks.ts';
import { byThreads, candidateTiles } from './choose.ts';
import { lowerSimt } from './gemm.ts';
import { formOf, matrixBlocks } from './matrix-blocks.ts';
import { matrixLayout } from './matrix-tiles.ts';
import { flatProblem, isStagedName, matrixName, nameOf, type Problem, stagedName } from './problem.ts';
import { type StagedBlock, type StagedFactors, StagedTiles, type StagedWay } from './staged-tiles.ts';
import { threadBlocks } from './thread-blocks.ts';
import { threadLayout } from './thread-tiles.ts';

/** A block with its name, which leaves out the parts of the sum: they depend on the extents. */
interface Named extends StagedWay {
  readonly name: string;
}

/** A contraction with staged factors. */
interface Staged extends StagedFactors {
  /** What else distinguishes measurements. */
  readonly kind: string;
  /** The default for the shape first. */
  readonly blocks: readonly Named[];
}

/** Null where blocks do not pay. */
function stagedProblem(c: Contraction, e: Exprs, caps: CodegenCaps): Staged | null {
  if (caps.sharedIsMemory === true) return null;
  const problem = flatProblem(c);
  const found = formOf(problem, c, e, caps);
  const sizeOfBlock = ({ rows, columns, depth }: StagedBlock): string => `${rows}x${columns}x${depth}`;
  if (found !== null) {
    const { form, values } = found;
    const blocks = blocksFor(problem, caps, matrixBlocks(problem, form, caps)).map((block): Named => {
      const name = `${matrixName}${form.tile}:${sizeOfBlock(block)}:${block.stages}`;
      return { name, block, layout: matrixLayout(block) };
    });
    return blocks.length === 0
      ? null
      : { problem, values, kind: `${form.dtype} ${form.tile} `, blocks: unique(blocks) };
  }
  const blocks = blocksFor(problem, caps, threadBlocks(problem, c.reduce.dtype as DType, caps)).map((block): Named => {
    const name = `${stagedName}${sizeOfBlock(block)}:${block.own.join('x')}:${block.stages}`;
    return { name, block, layout: threadLayout(block, problem, caps) };
  });
  const values = [problem.rows.factor.value, problem.columns.factor.value] as const;
  return blocks.length === 0 ? null : { problem, values, kind: '', blocks: unique(blocks) };
}

function unique(blocks: readonly Named[]): Named[] {
  const first = new Map<string, Named>();
  for (const b of blocks) if (!first.has(b.name)) first.set(b.name, b);
  return [...first.values()];
}

/** Lowers a kernel around a contraction in stages where that pays, or as measured; else as `others` do. */
export function stagedContraction(others: ContractionTemplate): ContractionTemplate {
  return (kernel, e, caps, choices) => {
    const c = worthwhile(kernel, e, caps);
    const found = c && stagedProblem(c, e, caps);
    return c && found ? chosenWay(c, found, e, caps, choices) : others(kernel, e, caps, choices);
  };
}

/** The fastest measured block or other way; the first block if nothing was measured. */
function chosenWay(
  c: Contraction,
  found: Staged,
  e: Exprs,
  caps: CodegenCaps,
  choices: Parameters<ContractionTemplate>[3],
): Lowered | null {
  const question = questionOf(c, caps, choices?.library);
  const key = `${found.kind}${question?.key}`;
  choices?.note(key, c.kernel, e);
  const chosen = choices?.find(key);
  if (chosen === byLibrary && question?.product)
    return choices?.library?.programs.lower(c, e, caps, question.product) ?? null;
  // The measurement may have had other extents of the same class, so the block may not fit.
  const block = found.blocks.find(({ name }) => name === chosen);
  if (block === undefined && chosen !== undefined && !isStagedName(chosen)) return byThreads(c, e, caps, chosen);
  return lowerBlock(c, e, caps, found, block ?? found.blocks[0]!);
}

/** Ways worth measuring: staged blocks, and the others; of blocks by matrix instructions only the first. */
export function stagedWays(c: Contraction, e: Exprs, caps: CodegenCaps): Way[] {
  const found = stagedProblem(c, e, caps);
  const tiles = candidateTiles(c, caps).map((tile): Way => [nameOf(tile), () => lowerSimt(c, e, caps, tile)]);
  if (found === null) return tiles;
  const blocks = found.blocks.map((b): Way => [b.name, () => lowerBlock(c, e, caps, found, b)]);
  return [...blocks, ...(found.kind === '' ? tiles : tiles.slice(0, 1))];
}

function lowerBlock(c: Contraction, e: Exprs, caps: CodegenCaps, staged: Staged, way: Named): Lowered {
  const { problem } = staged;
  const { name, block } = way;
  const assembly = new Assembly(c.kernel, e, caps);
  const part = block.parts > 1 ? e.range(block.parts) : null;
  const order = [...problem.outer, ...problem.rows.ranges, ...problem.columns.ranges];
  const memory = part === null ? null : workspaceFor(c, e, assembly, order, part);
  const stores = memory === null ? c.kernel.stores : [memory.store];
  const tiles = new StagedTiles(e, staged, way, part, caps);
  const whole = `${name}${block.parts > 1 ? `/${block.parts}` : ''}`;
  assembly.add('', tiles.stores(c, stores), [step('tile', order, [], [whole])], undefined, inStages(tiles.nest));
  memory?.finish();
  const { dispatches, temps } = assembly.result();
  const [first, ...rest] = dispatches as [LoweredDispatch, ...LoweredDispatch[]];
  return { dispatches: [{ ...first, program: counted(first.program, problem, block) }, ...rest], temps };
}

/** Adds the cost of a group: its products and copies, which are not in the program's text. */
function counted(program: Program, { depth }: Problem, { rows, columns, parts, dtype }: StagedBlock): Program {
  const steps = Math.ceil(depth / parts);
  const { flops, bytes } = program.cost;
  const brought = (rows + columns) * steps * dtypeInfo[dtype].bytes;
  return programOf({ ...program, cost: { flops: flops + 2 * rows * columns * steps, bytes: bytes + brought } });
}

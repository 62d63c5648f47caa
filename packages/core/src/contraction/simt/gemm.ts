/**
 * Contractions for engines with groups of threads, by a given tile (choose.ts has them).
 */
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import { step } from '../../ir/rewrite.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { Operand, representative } from '../access.ts';
import { Assembly, viaMemory } from '../assembly.ts';
import type { Contraction, Factor } from '../contraction.ts';
import { simtNest } from './nest.ts';
import { flatProblem, lineProblem, type Problem, type Side } from './problem.ts';
import { blockOf, type SimtTile, threadsOf, nameOf } from './tile.ts';
import { stageDomain } from '../staging.ts';

/** The problem as tiles of a kind see it. */
export function problemFor(c: Contraction, tile: SimtTile): Problem {
  return tile.kind === 'group' ? flatProblem(c) : lineProblem(c, tile.lanes);
}

/** True if the tile can do the problem on the engine. */
export function tileFits(tile: SimtTile, problem: Problem, dtype: DType, caps: CodegenCaps): boolean {
  const { rows, columns, depth } = problem;
  if (threadsOf(tile) > caps.maxGroup || tile.lanes > columns.extent) return false;
  if (tile.parts > depth) return false;
  const bytes = Math.max(4, dtypeInfo[dtype].bytes);
  const block = blockOf(tile);
  switch (tile.kind) {
    case 'group':
      return (block.rows + block.columns) * tile.depth * bytes <= caps.sharedBytes;
    case 'dot':
      return depth % tile.depth === 0 && block.rows * block.columns * threadsOf(tile) * bytes <= caps.sharedBytes;
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
  const problem = tile.copied ? withCopies(c, e, assembly, found) : found;
  const part = tile.parts > 1 ? e.range(tile.parts) : null;
  const order = [...problem.outer, ...problem.rows.ranges, ...problem.columns.ranges];
  const memory = part === null ? null : viaMemory(c, e, assembly, order, part);
  const stores = memory === null ? c.kernel.stores : [memory.store];
  assembly.add(
    '',
    simtNest(e, { problem, tile, stores, reduce: c.reduce, part }),
    step('tile', order, [], [nameOf(tile)]),
  );
  memory?.finish();
  return assembly.result();
}

/** True for factors that a copy makes better to read along a range. */
export function gainsByCopy(c: Contraction, { factor, ranges }: Side, vectors: boolean): boolean {
  const operand = new Operand(factor.value, c.k, c.free);
  const last = ranges[ranges.length - 1];
  if (operand.access === null) return true;
  return vectors && last !== undefined && operand.strideOf(last) !== 1;
}

/** The problem with factors copied over their domains, columns side by side, where that is better to read. */
function withCopies(c: Contraction, e: Exprs, assembly: Assembly, problem: Problem): Problem {
  const copy = (side: Side, vectors: boolean): Side => {
    if (!gainsByCopy(c, side, vectors)) return side;
    const operand = new Operand(side.factor.value, c.k, c.free);
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

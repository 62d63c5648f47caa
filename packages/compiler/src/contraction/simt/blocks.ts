/** Sizes of blocks whose factors are staged in group memory: which block a problem gets, and how many stages. */
import { enoughGroups, mostParts, partings, thin } from '../../codegen/costs/gpu.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import { sizeOf } from '../../ir/free-ranges.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import type { Problem, Side } from './problem.ts';
import type { StagedBlock } from './staged-tiles.ts';

export type Size = readonly [rows: number, columns: number];

/** Bytes of a row of a stage along the sum. */
const depthBytes = 64;
/** Most stages in group memory, with asynchronous copies and without. */
const mostStages = { copied: 4, stored: 2 };
/** Blocks with more bytes of group memory are not worth it. */
const enoughBytes = 64 * 1024;
/** Threads that should be resident together: their groups share the group memory, which is about what one group may have. */
const sideBySide = 512;

/** Steps of the sum in a stage. */
export function depthOf(dtype: DType): number {
  return depthBytes / dtypeInfo[dtype].bytes;
}

/** Bytes of group memory of `stages` stages. */
function bytesOf({ rows, columns, depth, dtype }: StagedBlock, stages: number): number {
  const { bytes } = dtypeInfo[dtype];
  return stages * (rows + columns) * (depth * bytes + 16);
}

function groupsOf({ rows, columns }: StagedBlock, problem: Problem): number {
  const along = (side: Side, size: number): number => Math.ceil(side.extent / size);
  return along(problem.rows, rows) * along(problem.columns, columns) * sizeOf(problem.outer);
}

/** A block that may compute a problem, and its number of threads. */
export interface Candidate<B extends StagedBlock> {
  readonly block: B;
  readonly threads: number;
}

/** The block with as many stages as fit; null where it does not fit at all. */
function withStages<B extends StagedBlock>({ block, threads }: Candidate<B>, caps: CodegenCaps): B | null {
  if (bytesOf(block, 2) > caps.sharedBytes) return null;
  const most = caps.copies === true ? mostStages.copied : mostStages.stored;
  const share = Math.min(1, threads / sideBySide);
  const room = Math.min(caps.sharedBytes * share, enoughBytes);
  let stages = 2;
  while (stages < most && bytesOf(block, stages + 1) <= room) stages++;
  return { ...block, stages };
}

/** Number of parts of a long sum where there are few groups; no part is empty. */
function partsOf(groups: number, steps: number, unit: number): number {
  const parts = partings.map((p) =>
    groups * 2 > p.groups ? 1 : Math.min(mostParts, Math.floor(steps / p.group), Math.ceil(p.groups / groups)),
  );
  const most = Math.max(1, ...parts);
  const chunk = Math.ceil(steps / most / unit) * unit;
  return Math.ceil(steps / chunk);
}

/**
 * Blocks worth measuring, the default for the shape first; none where blocks do not pay. `all`: the largest first.
 *
 * The number of parts depends on the shape alone, because the order of additions does. The block size may also depend on how many groups run at
 * a time, which changes no bit.
 */
export function blocksFor<B extends StagedBlock>(
  problem: Problem,
  caps: CodegenCaps,
  all: readonly Candidate<B>[],
): B[] {
  const { rows, columns, depth } = problem;
  if (Math.min(rows.extent, columns.extent) <= thin) return [];
  const useful = all.flatMap((one) => {
    const most = (side: Side): number => 2 * Math.max(16, side.extent);
    const fits = one.block.rows < most(rows) && one.block.columns < most(columns);
    const staged = fits ? withStages(one, caps) : null;
    return staged === null ? [] : [staged];
  });
  const last = useful[useful.length - 1];
  if (last === undefined) return [];
  const longParts = Math.max(1, Math.floor(depth / partings[1].group));
  const byShape = useful.find((b) => groupsOf(b, problem) * longParts >= enoughGroups) ?? last;
  const parts = partsOf(groupsOf(byShape, problem), depth, byShape.depth);
  const isEnough = (b: B): boolean => groupsOf(b, problem) * parts >= Math.max(enoughGroups, caps.parallelism);
  const first = { ...(useful.slice(useful.indexOf(byShape)).find(isEnough) ?? last), parts };
  const others = useful.flatMap((b) => {
    const block = { ...b, parts: partsOf(groupsOf(b, problem), depth, b.depth) };
    // With fewer stages another group fits; with few groups each has time for one stage more.
    return block.stages > 2 ? [block, { ...block, stages: block.stages - 1 }] : [block];
  });
  return [first, ...others];
}

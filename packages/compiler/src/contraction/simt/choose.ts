/**
 * Which tile a contraction gets on an engine with groups of threads, and the other tiles worth measuring on a device (tuning/). Shape
 * alone decides, so that results are the same bits every time.
 *
 * GPUs get tiles in group memory, as large as `enoughGroups` groups allow. A thin product - a vector times a matrix - has nothing
 * to share: each thread reads memory directly, along contiguous elements, else along the sum. Where group memory is
 * ordinary memory (`sharedIsMemory`, drivers that run on a CPU), a copy into it costs time and gains nothing.
 */
import {
  emulatedDot,
  enoughGroups,
  fewResults,
  groupsAlone,
  leastDot,
  manyColumns,
  manyRows,
  mostParts,
  partings,
  processorParts,
  processorRows,
  thin,
  tileThreadsAlone,
} from '../../codegen/costs/gpu.ts';
import { oneSubgroup } from '../../codegen/linearize/group.ts';
import { vectorLanes } from '../../codegen/linearize/vector.ts';
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import { type Contraction, worthwhile } from '../contraction.ts';
import type { ContractionTemplate } from '../template.ts';
import {
  blockOf,
  classOf,
  flatProblem,
  lineProblem,
  nameOf,
  type Problem,
  type SimtTile,
  threadsOf,
  tileOf,
} from './problem.ts';
import { gainsByCopy, lowerSimt, problemFor, splitAt, tileFits } from './gemm.ts';
import type { Exprs } from '../../ir/expr.ts';
import { sizeOf } from '../../ir/free-ranges.ts';

function up(n: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, n)));
}

function down(n: number): number {
  return 2 ** Math.floor(Math.log2(Math.max(1, n)));
}

/** Threads of a group and results of a thread for a block of `rows` x `columns`. */
function groupTile(rows: number, columns: number, most: number): SimtTile {
  const sizes: readonly (readonly [number, number])[] = [[8, 4], [4, 4], [4, 2], [2, 2], [2, 1], [1, 1]]; // biome-ignore format: pairs
  const threads = ([r, c]: readonly [number, number]): number =>
    r > rows || c > columns ? 0 : (rows / r) * (columns / c);
  const fitting = sizes.filter((s) => threads(s) > 0 && threads(s) <= most);
  const [r, c] = fitting.find((s) => threads(s) >= 64) ?? fitting[fitting.length - 1] ?? ([1, 1] as const);
  return {
    kind: 'group',
    threads: [columns / c, rows / r, 1],
    rows: r,
    vectors: c,
    lanes: 1,
    depth: rows * columns > 4096 ? 8 : 16,
    parts: 1,
    copied: false,
  };
}

function groupsOf(tile: SimtTile, { rows, columns, outer }: Problem): number {
  const block = blockOf(tile);
  const around = Math.ceil(sizeOf(outer) / (tile.kind === 'dot' ? 1 : tile.threads[2]));
  return Math.ceil(rows.extent / block.rows) * Math.ceil(columns.extent / block.columns) * around;
}

/** The tile with its sum in this many parts, or a few less, so that none is empty. */
function cutInto(tile: SimtTile, problem: Problem, parts: number): SimtTile {
  if (parts < 2) return tile;
  const cut = tile.kind === 'thread' ? problem.k[splitAt(problem.k)] : undefined;
  const extent = cut?.arg.extent ?? problem.depth;
  const unit = tile.kind === 'thread' ? 1 : tile.depth;
  const chunk = Math.ceil(extent / Math.min(parts, extent) / unit) * unit;
  return { ...tile, parts: Math.ceil(extent / chunk) };
}

/** Number of parts of a sum of `depth` steps: enough for the wanted groups if there are less than half of them, none with fewer than `steps` steps. */
function partsFor(depth: number, groups: number, wanted: number, steps: number, most: number): number {
  return groups * 2 > wanted ? 1 : Math.min(most, Math.floor(depth / steps), Math.ceil(wanted / groups));
}

/** The tile, with its sum in parts where there would be too few groups otherwise. */
function inParts(tile: SimtTile, problem: Problem): SimtTile {
  const [groups, threads] = [groupsOf(tile, problem), threadsOf(tile)];
  const alone = tile.kind === 'thread';
  // Small groups of threads that share nothing count by their threads.
  const there = alone ? groups * Math.min(1, threads / tileThreadsAlone) : groups;
  const parts = partings.map((p) => {
    const steps = tile.kind === 'dot' ? p.dot * threads : p[tile.kind];
    return partsFor(problem.depth, there, p.groups * (alone ? groupsAlone : 1), steps, mostParts);
  });
  return cutInto(tile, problem, Math.max(...parts));
}

/** A portion of at most `most` and more than half of it that leaves the smallest remainder of `total`. */
function fittedTo(total: number, most: number): number {
  let best = most;
  const dealt = (n: number): number => Math.ceil(total / n) * n;
  for (let n = most - 1; n > most / 2; n--) if (dealt(n) < dealt(best)) best = n;
  return best;
}

/**
 * A tile of `count` threads that read memory directly: they are laid out along columns, then rows, then outer loops. With `fitted`
 * there may be somewhat fewer, so that fewer of them are idle.
 */
function threadTile(
  problem: Problem,
  rows: number,
  vectors: number,
  lanes: number,
  count: number,
  fitted = false,
): SimtTile {
  const rowTiles = Math.ceil(problem.rows.extent / rows);
  const columnTiles = Math.ceil(problem.columns.extent / (vectors * lanes));
  const square = rowTiles > 1 ? Math.max(1, down(Math.sqrt(count * 2))) : count;
  let across = Math.min(up(columnTiles), square);
  const along = Math.min(up(rowTiles), count / across);
  across = Math.min(up(columnTiles), count / along);
  if (fitted) across = fittedTo(columnTiles, across);
  const around = Math.min(up(sizeOf(problem.outer)), down(count / across / along));
  return { kind: 'thread', threads: [across, along, around], rows, vectors, lanes, depth: 1, parts: 1, copied: false };
}

/** Each group computes a few results, and its threads share their sum. */
function dotTile({ rows, columns, depth }: Problem, most: number): SimtTile {
  const threads = Math.min(most, Math.max(32, down(depth / 8)), 256);
  const r = Math.min(thin, down(rows.extent));
  const c = Math.min(thin, down(columns.extent), Math.max(1, 8 / r));
  return { kind: 'dot', threads: [threads, 1, 1], rows: r, vectors: c, lanes: 1, depth: 1, parts: 1, copied: false };
}

/** The tile chosen without measurement. */
export function defaultTile(c: Contraction, caps: CodegenCaps): SimtTile | null {
  const dtype = c.reduce.dtype;
  const tile = caps.sharedIsMemory === true ? forProcessor(c, caps) : forDevice(c, caps);
  const ways = [tile, { ...tile, parts: 1 }, threadTile(lineProblem(c, 1), 1, 1, 1, Math.min(64, caps.maxGroup))];
  return ways.find((t) => tileFits(t, problemFor(c, t), dtype, caps)) ?? null;
}

function forDevice(c: Contraction, caps: CodegenCaps): SimtTile {
  const flat = flatProblem(c);
  const { rows, columns, depth } = flat;
  const most = down(caps.maxGroup);
  if (Math.min(rows.extent, columns.extent) <= thin || depth < 8) {
    const line = lineProblem(c, 1);
    const big = line.rows.extent > line.columns.extent ? line.rows : line.columns;
    const along = big.alongSum && !big.consecutive;
    const few = line.rows.extent * line.columns.extent <= fewResults && sizeOf(line.outer) < enoughGroups;
    if ((along || few) && depth >= leastDot) {
      return inParts(dotTile(line, most), line);
    }
    const height = Math.min(thin, down(line.rows.extent));
    const tile = threadTile(line, height, line.columns.extent >= 4096 ? 2 : 1, 1, Math.min(64, most));
    return inParts(tile, line);
  }
  let [r, k] = [Math.min(64, Math.max(8, up(rows.extent))), Math.min(64, Math.max(8, up(columns.extent)))];
  if (rows.extent >= 512 && columns.extent >= 512 && most >= 256) r = 128;
  let tile = groupTile(r, k, most);
  // Long sums in parts keep large blocks, which read each factor fewer times.
  const longParts = Math.max(1, Math.floor(depth / partings[1].group));
  while (r * k > 256 && groupsOf(tile, flat) * longParts < enoughGroups) {
    if (r >= k) r /= 2;
    else k /= 2;
    tile = groupTile(r, k, most);
  }
  return inParts(tile, flat);
}

function forProcessor(c: Contraction, caps: CodegenCaps): SimtTile {
  const lanes = vectorLanes(c.kernel.stores, caps);
  const line = lineProblem(c, lanes);
  const { rows, columns, depth, depthStep } = line;
  if (columns.extent < lanes && rows.extent <= thin && depth >= leastDot) {
    return { ...dotTile(line, oneSubgroup(caps) ?? emulatedDot), depth: depthStep % lanes === 0 ? lanes : 1 };
  }
  const width = columns.least >= lanes ? lanes : 1;
  const wide = columns.extent >= manyColumns;
  const most = !wide && rows.extent >= manyRows ? processorRows.many : processorRows.few;
  const tile = threadTile(
    line,
    Math.min(most, down(rows.extent)),
    wide ? 2 : 1,
    width,
    Math.min(64, down(caps.maxGroup)),
    true,
  );
  const copied =
    (rows.extent >= 16 && gainsByCopy(c, columns, false, caps)) ||
    (columns.extent >= 64 && gainsByCopy(c, rows, false, caps));
  const { groups, steps, most: mostHere } = processorParts;
  return cutInto({ ...tile, copied }, line, partsFor(depth, groupsOf(tile, line), groups, steps, mostHere));
}

/** Tiles worth measuring for the contraction, the default first. */
export function candidateTiles(c: Contraction, caps: CodegenCaps): SimtTile[] {
  const dtype = c.reduce.dtype;
  const first = defaultTile(c, caps);
  if (first === null) return [];
  const flat = flatProblem(c);
  const lanes = vectorLanes(c.kernel.stores, caps);
  const line = lineProblem(c, lanes);
  const most = down(caps.maxGroup);
  const groups = [
    groupTile(128, 64, most),
    groupTile(64, 64, most),
    groupTile(32, 64, most),
    groupTile(32, 32, most),
    groupTile(16, 16, most),
  ];
  const vectors = groups.slice(0, 4).flatMap((t) => {
    const lane = Math.min(lanes, t.vectors);
    return lane > 1 ? [{ ...t, lanes: lane, vectors: t.vectors / lane }] : [];
  });
  const fits = line.columns.least >= lanes;
  const alone = (
    [
      [4, 1],
      [8, 1],
      [4, 2],
      [1, 1],
    ] as const
  ).flatMap(([r, v]) => {
    const tile = threadTile(line, Math.min(r, down(line.rows.extent)), v, fits ? lanes : 1, Math.min(64, most));
    return [tile, { ...tile, copied: true }];
  });
  const small = threadTile(
    line,
    Math.min(processorRows.few, down(line.rows.extent)),
    1,
    fits ? lanes : 1,
    Math.min(8, most),
  );
  const dots =
    Math.min(flat.rows.extent, flat.columns.extent) <= 16
      ? [dotTile(line, most), dotTile(line, Math.min(most, oneSubgroup(caps) ?? 32))]
      : [];
  const parted = (t: SimtTile): SimtTile => (caps.sharedIsMemory === true ? t : inParts(t, problemFor(c, t)));
  const others = [...groups, ...vectors, ...alone, small, { ...small, copied: true }, ...dots];
  const all = [first, { ...first, parts: 1 }, ...others.map(parted)];
  const seen = new Set<string>();
  const fresh = (t: SimtTile): boolean => seen.size < seen.add(nameOf(t)).size;
  return all.filter((t) => tileFits(t, problemFor(c, t), dtype, caps) && useful(t, c, caps) && fresh(t));
}

/** False for tiles larger than the problem, and for copies of factors that read well in place. */
function useful(tile: SimtTile, c: Contraction, caps: CodegenCaps): boolean {
  const { rows, columns } = problemFor(c, tile);
  const block = blockOf(tile);
  if (tile.copied && !gainsByCopy(c, columns, tile.lanes > 1, caps) && !gainsByCopy(c, rows, false, caps)) return false;
  return block.rows < 2 * Math.max(16, rows.extent) && block.columns < 2 * Math.max(16, columns.extent);
}

/** Lowering of contractions for engines with groups of threads: by a measured tile, else by the default of the shape. */

/** Lowers a kernel around a contraction for groups of threads; null where the plain loop nest is as good. */
export const threadContraction: ContractionTemplate = (kernel, e, caps, choices) => {
  const c = worthwhile(kernel, e, caps);
  if (c === null) return null;
  const key = choices === undefined ? '' : classOf(c, caps);
  choices?.note(key, kernel, e);
  return byThreads(c, e, caps, choices?.find(key));
};

/** `chosen`: the name of a measured tile. */
export function byThreads(c: Contraction, e: Exprs, caps: CodegenCaps, chosen: string | undefined): Lowered | null {
  const tile = measuredTile(c, caps, chosen) ?? defaultTile(c, caps);
  return tile === null ? null : lowerSimt(c, e, caps, tile);
}

/** The measurement may have had other extents of the same class, so the tile may not fit. */
function measuredTile(c: Contraction, caps: CodegenCaps, name: string | undefined): SimtTile | null {
  const tile = tileOf(name ?? '');
  return tile !== null && tileFits(tile, problemFor(c, tile), c.reduce.dtype, caps) ? tile : null;
}

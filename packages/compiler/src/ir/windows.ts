/**
 * Vectors gathered from neighbouring elements: few wide loads and a shuffle instead of one load per lane.
 *
 * Strided reads (pooling, strided convolutions, repeated elements) arrive as VEC of scalar LOADs whose addresses differ by
 * constants. All such loads of one block from one place form runs; everything between the ends of a run may be read.
 * So a run is covered by windows of four elements, and each VEC takes its lanes from at most three of them. A block may read as
 * many columns of a matrix as a vector has lanes. Then each VEC is a column of the square that those rows are: loaded row by row and
 * transposed once for all of them.
 */
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import type { KNode, KNodeOf, Program } from './ir.ts';
import { idOf } from './node.ts';
import { linearOf } from './simplify/integers.ts';
import { blocksOf } from './uses.ts';

/** Elements of a window: 16 bytes of 4-byte numbers. */
const windowSize = 4;
/** Windows that a vector is taken from at most: a shuffle for each but the first, where four loads would be as much. */
const mostWindows = 3;

/** Loads at constant distances without large gaps. */
export interface Run {
  /** A load at the run's start, or so many elements before it. */
  readonly first: KNodeOf<'LOAD'>;
  readonly from?: number;
  /** Elements from start to end. */
  readonly length: number;
}

/** Where a load stands in its run. */
export interface RunPlace {
  readonly run: Run;
  readonly position: number;
}

/** Window `at` elements from the start of a run, `size` elements wide. */
export interface Window {
  readonly at: number;
  readonly size: 2 | 4;
}

/** How one part of a VEC is made: a few windows and, for each lane, the one it is taken from and where it is in it. */
export interface Pick {
  readonly run: Run;
  readonly windows: readonly Window[];
  readonly lanes: readonly { readonly window: number; readonly at: number }[];
}

/** One column of a square of rows: where each row starts, and which. */
export interface SquareColumn {
  readonly rows: readonly { readonly run: Run; readonly at: number }[];
  readonly column: number;
}

/** True for scalar loads that may be read at any time. */
function isPlain(n: KNode): boolean {
  if (n.op !== 'LOAD' || n.lanes !== 1 || n.src.length !== 2) return false;
  const mem = n.src[0];
  return mem.op === 'PARAM' && mem.arg.access === 'read';
}

/**
 * Lanes of a 16-byte part of a vector.
 *
 * @example
 * const p = new ProgramBuilder();
 * const [x, y] = [p.e.param(0, 'float32', 'read', 8), p.e.param(1, 'float32', 'write', 4)];
 * p.store(y, 0, p.e.vec([0, 2, 4, 6].map((i) => p.load(x, i))));
 * const program = p.build({ name: 'even' });
 * lanesOfPart(program.body.find(isGather)!); // 4
 */
export function lanesOfPart(n: KNode): 2 | 4 {
  return dtypeInfo[n.dtype as DType].bytes === 8 ? 2 : 4;
}

/**
 * True for vectors that this file may improve.
 *
 * @example
 * const p = new ProgramBuilder();
 * const [x, y] = [p.e.param(0, 'float32', 'read', 8), p.e.param(1, 'float32', 'write', 4)];
 * p.store(y, 0, p.e.vec([0, 2, 4, 6].map((i) => p.load(x, i))));
 * const program = p.build({ name: 'even' });
 * program.body.some(isGather); // true
 */
export function isGather(n: KNode): boolean {
  return n.op === 'VEC' && n.src.length > 1 && n.src.length % lanesOfPart(n) === 0 && n.src.every(isPlain);
}

/**
 * Finds the runs of all loads that gathers in the body read.
 *
 * @example
 * const p = new ProgramBuilder();
 * const [x, y] = [p.e.param(0, 'float32', 'read', 8), p.e.param(1, 'float32', 'write', 4)];
 * p.store(y, 0, p.e.vec([0, 2, 4, 6].map((i) => p.load(x, i))));
 * const program = p.build({ name: 'even' });
 * findRuns(program).size; // 4
 */
export function findRuns(program: Program): ReadonlyMap<KNode, RunPlace> {
  const { body } = program;
  const places = new Map<KNode, RunPlace>();
  const wanted = new Set<KNode>();
  for (let at = 0; at < body.length; at++) {
    const n = body[at]!;
    if (isGather(n)) for (const s of n.src) wanted.add(s);
  }
  if (wanted.size === 0) return places;
  const groups = new Map<string, KNodeOf<'LOAD'>[]>();
  const around = blocksOf(program);
  for (let at = 0; at < body.length; at++) {
    const n = body[at]!;
    if (!wanted.has(n) || n.op !== 'LOAD') continue;
    const { terms, coefs } = linearOf(n.src[1]);
    // Terms are in the order of their numbers.
    const sum = terms.map((t, k) => `${idOf(t)}*${coefs[k]}`);
    const key = `${around[at]} ${idOf(n.src[0])} ${sum.join('+')}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [n]);
    else group.push(n);
  }
  for (const group of groups.values()) cutIntoRuns(group, places);
  return places;
}

function cutIntoRuns(group: KNodeOf<'LOAD'>[], places: Map<KNode, RunPlace>): void {
  const offset = (n: KNodeOf<'LOAD'>): number => linearOf(n.src[1]).offset;
  group.sort((a, b) => offset(a) - offset(b));
  for (let start = 0; start < group.length; ) {
    let end = start + 1;
    while (end < group.length && offset(group[end]!) - offset(group[end - 1]!) < windowSize) end++;
    const first = group[start]!;
    const length = offset(group[end - 1]!) - offset(first) + 1;
    const run = { first, length };
    if (length > 1) {
      for (let i = start; i < end; i++) places.set(group[i]!, { run, position: offset(group[i]!) - offset(first) });
    }
    start = end;
  }
}

/**
 * The square that has these lanes as a column, or null: as many elements of each row are read as there are rows. `columnOf`: the
 * column of a place in its run, if not as in squares side by side.
 *
 * @example
 * const p = new ProgramBuilder();
 * const [x, y] = [p.e.param(0, 'float32', 'read', 16), p.e.param(1, 'float32', 'write', 16)];
 * for (const c of [0, 1, 2, 3]) p.store(y, 4 * c, p.e.vec([0, 4, 8, 12].map((r) => p.load(x, r + c))));
 * const program = p.build({ name: 'turned' });
 * const [, second] = program.body.filter(isGather);
 * pickColumn(second!.src, findRuns(program))?.column; // 1
 */
export function pickColumn<Lane>(
  lanes: readonly Lane[],
  places: ReadonlyMap<Lane, RunPlace>,
  columnOf: (place: RunPlace, count: number) => number = ({ position }, count) => position % count,
): SquareColumn | null {
  const first = places.get(lanes[0]!);
  if (first === undefined) return null;
  const column = columnOf(first, lanes.length);
  const rows: { readonly run: Run; readonly at: number }[] = [];
  for (const lane of lanes) {
    const place = places.get(lane);
    if (place === undefined) return null;
    const at = place.position - column;
    if (at < 0 || at + lanes.length > place.run.length) return null;
    // Rows that share elements are no square: steps along one row, which a few windows hold.
    if (rows.some(({ run, at: other }) => run === place.run && Math.abs(other - at) < lanes.length)) return null;
    rows.push({ run: place.run, at });
  }
  return { rows, column };
}

/**
 * The windows for four lanes of 4-byte numbers in a gather, or null if three do not cover them.
 *
 * @example
 * const p = new ProgramBuilder();
 * const [x, y] = [p.e.param(0, 'float32', 'read', 8), p.e.param(1, 'float32', 'write', 4)];
 * p.store(y, 0, p.e.vec([0, 2, 4, 6].map((i) => p.load(x, i))));
 * const program = p.build({ name: 'even' });
 * const gather = program.body.find(isGather)!;
 * pickWindows(gather.src, findRuns(program))?.windows.length; // 2
 */
export function pickWindows(lanes: readonly KNode[], places: ReadonlyMap<KNode, RunPlace>): Pick | null {
  const { dtype } = lanes[0]!;
  if (dtype !== 'float32' && dtype !== 'int32' && dtype !== 'uint32') return null;
  const found = lanes.map((n) => places.get(n));
  const run = found[0]?.run;
  if (run === undefined || found.some((p) => p?.run !== run)) return null;
  const positions = found.map((p) => p!.position);
  const all = windowsOf(run);
  const windows: Window[] = [];
  for (let rest = positions; rest.length > 0; ) {
    const next = best(all, rest);
    windows.push(next);
    rest = rest.filter((p) => !inside(next, p));
  }
  if (windows.length > mostWindows) return null;
  const lane = (p: number): Pick['lanes'][number] => {
    const window = windows.findIndex((w) => inside(w, p));
    return { window, at: p - windows[window]!.at };
  };
  return { run, windows, lanes: positions.map(lane) };
}

/** The window that holds the first of the positions and most of the others. */
function best(windows: readonly Window[], positions: readonly number[]): Window {
  const least = Math.min(...positions);
  let found = windows[0]!;
  let most = 0;
  for (const w of windows) {
    if (!inside(w, least)) continue;
    const count = positions.filter((p) => inside(w, p)).length;
    if (count > most) [found, most] = [w, count];
  }
  return found;
}

function inside(w: Window, position: number): boolean {
  return position >= w.at && position < w.at + w.size;
}

/** Windows side by side from the run's start, the last one ending with the run. */
function windowsOf(run: Run): Window[] {
  const size = run.length >= windowSize ? windowSize : 2;
  const windows: Window[] = [];
  for (let at = 0; at < run.length; at += size) windows.push({ at: Math.min(at, run.length - size), size });
  return windows;
}

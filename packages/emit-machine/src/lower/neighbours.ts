/**
 * Which vectors of a program consist of neighbouring elements, and how: as columns of squares of several rows (squares.ts), or from a few wide
 * loads whose lanes are moved (windows.ts). Loads that only such vectors use are not done element by element.
 */
import {
  findRuns,
  type KNode,
  lanesOfPart,
  pickColumn,
  type Program,
  type RunPlace,
  type SquareColumn,
  type Uses,
} from '@polygrad/core/kernel';
import { isZero } from './memory.ts';
import { type Picked, pickWide } from './windows.ts';

/** Rows and columns of a square. */
export const side = 4;

/** The vectors of a program that are read in this way. */
export interface Neighbours {
  /** Vectors by their parts of four lanes. */
  readonly squares: ReadonlyMap<KNode, readonly SquareColumn[]>;
  /** Vectors by parts as wide as registers. */
  readonly windows: ReadonlyMap<KNode, readonly Picked[]>;
  /** Loads that have no other users. */
  readonly unread: ReadonlySet<KNode>;
}

/** True for vectors of elements that may be read at any time, or whenever one gate holds, beside which they are zero. */
function isGather(n: KNode): boolean {
  if (n.op !== 'VEC' || n.src.length < 2 || n.src.length % lanesOfPart(n) !== 0) return false;
  return n.src.every((s) => isPlain(s) && s.src[2] === n.src[0]!.src[2]);
}

function isPlain(n: KNode): boolean {
  if (n.op !== 'LOAD' || n.lanes !== 1) return false;
  const [memory, , gate, other] = n.src;
  if (gate !== undefined && (other === undefined || !isZero(other))) return false;
  return memory.op === 'PARAM' && memory.arg.access === 'read';
}

/** The column of a place in its square. The last elements of a row are fewer than a square has: theirs ends with the row. */
function columnOf({ position, run }: RunPlace, count: number): number {
  return position - Math.max(0, Math.min(position - (position % count), run.length - count));
}

/** Finds them, for registers of `vectorBytes` bytes. */
export function findNeighbours(program: Program, uses: Uses, vectorBytes: number): Neighbours {
  const squares = new Map<KNode, readonly SquareColumn[]>();
  const windows = new Map<KNode, readonly Picked[]>();
  const readers = new Map<KNode, number>();
  const places = findRuns(program, isGather);
  for (const n of places.size === 0 ? [] : program.body) {
    if (!uses.has(n) || !isGather(n) || !isWord(n) || lanesOfPart(n) !== side) continue;
    const columns = partsOf(n, side, (lanes) => pickColumn(lanes, places, columnOf));
    const parts = columns === null ? windowsOf(n, vectorBytes / 4, places) : null;
    if (columns !== null) squares.set(n, columns);
    else if (parts !== null) windows.set(n, parts);
    else continue;
    for (const load of new Set(n.src)) readers.set(load, (readers.get(load) ?? 0) + 1);
  }
  const unread = [...readers].filter(([load, count]) => uses.get(load)?.count === count).map(([load]) => load);
  return { squares, windows, unread: new Set(unread) };
}

function windowsOf(n: KNode, width: number, places: ReadonlyMap<KNode, RunPlace>): readonly Picked[] | null {
  return partsOf(n, Math.min(width, n.lanes), (lanes) => pickWide(lanes, places));
}

/** Calls `part` for each stretch of `width` lanes; null if one gives null. */
function partsOf<T>({ src }: KNode, width: number, part: (lanes: readonly KNode[]) => T | null): readonly T[] | null {
  const parts: T[] = [];
  for (let at = 0; at < src.length; at += width) {
    const made = part(src.slice(at, at + width));
    if (made === null) return null;
    parts.push(made);
  }
  return parts;
}

/** True where elements have four bytes in memory. */
function isWord({ dtype }: KNode): boolean {
  return dtype === 'float32' || dtype === 'int32' || dtype === 'uint32';
}

/**
 * Which vectors of a program consist of neighbouring elements, and how: as columns of squares of several rows (squares.ts), or from a few wide
 * loads whose lanes are moved (windows.ts). Loads that only such vectors use are not done element by element.
 */
import {
  type KNode,
  type KNodeOf,
  lanesOfPart,
  pickColumn,
  type Program,
  type RunPlace,
  type SquareColumn,
  type Uses,
} from '@polygrad/core/kernel';
import { type Element, elementsOf, findRows } from './elements.ts';
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

/** The elements of a vector that may be read at any time, or whenever one gate holds, beside which they are zero; or null. */
function gathered(n: KNode, scalars: Map<KNode, Element>): readonly Element[] | null {
  if (n.lanes % lanesOfPart(n) !== 0) return null;
  const elements = elementsOf(n, scalars);
  if (elements === null) return null;
  const gate = elements[0]!.load.src[2];
  return elements.every(({ load }) => isPlain(load) && load.src[2] === gate) ? elements : null;
}

function isPlain(n: KNodeOf<'LOAD'>): boolean {
  if (n.lanes !== 1 && n.arg === null) return false;
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
  const scalars = new Map<KNode, Element>();
  const vectors = new Map<KNode, readonly Element[]>();
  for (const n of program.body) {
    // Loads without a step and splats have no elements of their own.
    if (n.op === 'VEC' ? n.src.length < 2 : n.op !== 'LOAD' || n.arg === null) continue;
    const elements = gathered(n, scalars);
    if (elements !== null) vectors.set(n, elements);
  }
  const places = findRows(program, vectors.values());
  for (const [n, elements] of vectors) {
    if (places.size === 0) break;
    if (!uses.has(n) || !isWord(n) || lanesOfPart(n) !== side) continue;
    const columns = partsOf(elements, side, (lanes) => pickColumn(lanes, places, columnOf));
    const width = Math.min(vectorBytes / 4, n.lanes);
    const parts = columns === null ? partsOf(elements, width, (lanes) => pickWide(lanes, places)) : null;
    if (columns !== null) squares.set(n, columns);
    else if (parts !== null) windows.set(n, parts);
    else continue;
    if (n.op === 'VEC') for (const load of new Set(n.src)) readers.set(load, (readers.get(load) ?? 0) + 1);
  }
  const unread = [...readers].filter(([load, count]) => uses.get(load)?.count === count).map(([load]) => load);
  return { squares, windows, unread: new Set(unread) };
}

/** Calls `part` for each stretch of `width` lanes; null if one gives null. */
function partsOf<T>(
  elements: readonly Element[],
  width: number,
  part: (lanes: readonly Element[]) => T | null,
): readonly T[] | null {
  const parts: T[] = [];
  for (let at = 0; at < elements.length; at += width) {
    const made = part(elements.slice(at, at + width));
    if (made === null) return null;
    parts.push(made);
  }
  return parts;
}

/** True where elements have four bytes in memory. */
function isWord({ dtype }: KNode): boolean {
  return dtype === 'float32' || dtype === 'int32' || dtype === 'uint32';
}

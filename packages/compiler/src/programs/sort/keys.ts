/**
 * Order-preserving keys: elements as one or two unsigned 32-bit words that compare as the elements do.
 *
 * Positive floats are ordered as their bits, negative ones the other way; -0 becomes 0, and every NaN the largest key. So equal elements
 * have equal keys. Keys of a falling order are complemented. Elements of 64 bits are read as two words, the low one first.
 */
import type { KNode } from '../../ir/ir.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { linesOf, lineStart, type ProgramSet, type ProgramWriter, type Temp, type TensorView } from '../program-set.ts';

export interface SortKeys {
  /** Words of a key, 1 or 2. Word 0 is the least significant. */
  readonly words: 1 | 2;
  /**
   * Word `word` of the key of the element at a position of memory; or with `lanes` of so many next to each other (keys of one word).
   * `source` is what `open` returned.
   */
  key(w: ProgramWriter, source: KNode, at: KNode, word: number, lanes?: number): KNode;
  /** Declares the memory of the elements, slot `slot`. */
  open(w: ProgramWriter, slot: number): KNode;
}

/** Dtypes that have keys: those of 32 and 64 bits. Others are converted first, which keeps their order. */
function hasKeys(dtype: DType): boolean {
  return dtypeInfo[dtype].bytes >= 4;
}

function keysOf(view: TensorView, descending: boolean): SortKeys {
  const { kind, bytes } = dtypeInfo[view.dtype];
  if (!hasKeys(view.dtype)) throw new Error(`[sort] ${view.dtype} has no keys; convert it to 32 bits first`);
  const wide = bytes === 8;
  const turned = ({ e }: ProgramWriter, key: KNode): KNode => (descending ? e.not(key) : key);
  return {
    words: wide ? 2 : 1,
    open: (w, slot) =>
      wide ? w.param(slot, 'uint32', 'read', 2 * view.span) : w.param(slot, view.dtype, 'read', view.span),
    key: (w, source, at, word, lanes = 1) => {
      const { b, e } = w;
      const u32 = (value: number): KNode => e.constant('uint32', value);
      const sign = u32(0x8000_0000);
      if (!wide) {
        const bits = e.bitcast(b.load(source, at, lanes), 'uint32');
        if (kind === 'uint') return turned(w, bits);
        if (kind === 'int') return turned(w, e.xor(bits, sign));
        const size = e.and(bits, u32(0x7fff_ffff));
        const negative = e.lt(e.bitcast(bits, 'int32'), 0);
        const key = e.where(e.and(negative, e.lt(u32(0), size)), e.not(bits), e.or(bits, sign));
        return turned(w, e.where(e.lt(u32(0x7f80_0000), size), u32(0xffff_ffff), key));
      }
      const twice = e.mul(at, 2);
      const high = b.load(source, e.add(twice, 1));
      if (kind !== 'float') {
        if (word === 0) return turned(w, b.load(source, twice));
        return turned(w, kind === 'int' ? e.xor(high, sign) : high);
      }
      const low = b.load(source, twice);
      const size = e.and(high, u32(0x7fff_ffff));
      const infinite = u32(0x7ff0_0000);
      const nan = e.or(e.lt(infinite, size), e.and(e.eq(size, infinite), e.lt(u32(0), low)));
      const zero = e.eq(e.or(size, low), u32(0));
      const negative = e.and(e.lt(e.bitcast(high, 'int32'), 0), e.not(zero));
      const key = word === 0 ? e.where(negative, e.not(low), low) : e.where(negative, e.not(high), e.or(high, sign));
      return turned(w, e.where(nan, u32(0xffff_ffff), key));
    },
  };
}

// What all ways of sorting share.

export interface SortSpec {
  readonly axis: number;
  readonly descending: boolean;
  /** The first rank that is wanted. */
  readonly from: number;
  /** Slot 0: int32, in every line positions of the elements from that rank on. */
  readonly out: TensorView;
  /** Slot 1. */
  readonly x: TensorView;
}

/** Lines to sort by keys: how these are read, and where positions in order go. */
export interface LineSort {
  readonly lines: number;
  readonly n: number;
  /** How many of the first in order are needed, and the rank from which on they are wanted. */
  readonly count: number;
  readonly from: number;
  readonly words: 1 | 2;
  /** Bits that a word has. */
  readonly bits: number;
  /** True where elements of a line lie next to each other. */
  readonly adjacent: boolean;
  /** Opens the elements in a program: word `word` of the key of element i of a line, or of `lanes` from the i-th on. */
  open(w: ProgramWriter): (line: KNode, i: KNode, word: number, lanes?: number) => KNode;
  /** Opens the result: stores the position of the element of a rank, if it is wanted. Null: temporaries are the result. */
  readonly result: ((w: ProgramWriter) => (line: KNode, rank: KNode, position: KNode, gate?: KNode) => void) | null;
  /** The memory of the result, if it is room for the positions of all lines one after the other: until it is stored, passes put theirs there. */
  readonly room?: ((w: ProgramWriter, access: 'read' | 'write') => KNode) | undefined;
}

/** Holds for ranks that are needed: a gate of `result`. Undefined where all are. */
export function wanted({ e }: ProgramWriter, { n, count }: LineSort, rank: KNode): KNode | undefined {
  return count < n ? e.lt(rank, count) : undefined;
}

/** Where sorted elements are: words of keys, and where each was. */
export interface Sorted {
  readonly keys: readonly Temp[];
  readonly order: Temp;
}

export function lineSort({ axis, descending, from, out, x }: SortSpec): LineSort {
  const keys = keysOf(x, descending);
  const [n, count] = [x.shape[axis]!, from + out.shape[axis]!];
  const lines = linesOf(x.shape, axis);
  return {
    lines,
    n,
    count,
    from,
    words: keys.words,
    bits: 32,
    adjacent: x.strides[axis] === 1,
    open: (w) => {
      const { e } = w;
      const source = keys.open(w, 1);
      return (line, i, word, lanes) =>
        keys.key(w, source, e.add(lineStart(e, x, axis, line), e.mul(i, x.strides[axis]!)), word, lanes);
    },
    result: (w) => {
      const { b, e } = w;
      const target = w.param(0, 'int32', 'write', out.span);
      return (line, rank, position, gate) => {
        const at = e.add(lineStart(e, out, axis, line), e.mul(e.sub(rank, from), out.strides[axis]!));
        b.store(target, at, position, from === 0 ? gate : e.and(gate ?? e.bool(true), e.le(from, rank)));
      };
    },
    room: out.span === lines * n ? (w, access) => w.param(0, 'int32', access, out.span) : undefined,
  };
}

/** True if a key is smaller, or equal and `first` holds. */
export function precedes({ e }: ProgramWriter, x: readonly KNode[], y: readonly KNode[], first: KNode): KNode {
  return x.reduce((earlier, a, word) => {
    const c = y[word]!;
    return e.or(e.lt(a, c), e.and(e.eq(a, c), earlier));
  }, first);
}

/** Elements a group should have at least. */
const groupElements = 2048;

/** Adds a program that does line after line, each by a thread by itself. A group takes several short ones. */
export function addLines(
  set: ProgramSet,
  suffix: string,
  { lines, n }: LineSort,
  open: (w: ProgramWriter) => (line: KNode) => void,
): void {
  const turns = Math.max(1, Math.min(lines, Math.floor(groupElements / n)));
  set.add(suffix, Math.ceil(lines / turns), (w) => {
    const { b, e, group } = w;
    const sortLine = open(w);
    // Past the end the last line is done again, by the same group.
    b.loop(turns, (turn) => sortLine(e.min(e.add(e.mul(group, turns), turn), lines - 1)));
  });
}

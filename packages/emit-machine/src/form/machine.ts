/**
 * The interface of a machine, that is, an instruction set: its registers for allocate/, basic instructions for builder.ts,
 * operations for lower/, encoding for write.ts. x64/ and arm64/ implement it.
 */
import type { KNode } from '@polygrad/core/kernel';
import type { Builder, Instructions } from './builder.ts';
import type {
  Assigned,
  Condition,
  FinalItem,
  Held,
  Ins,
  Item,
  Lowered,
  Memory,
  Place,
  Reg,
  RegClass,
  Row,
} from './code.ts';
import type { Masks } from './masks.ts';
import type { DType, Kind, MachineTarget } from '../target.ts';

/** The registers of each class, in order of preference. */
export interface Classes {
  readonly all: Readonly<Record<RegClass, readonly number[]>>;
  /** Scratch registers, used if values are spilled. */
  readonly scratch: Readonly<Record<RegClass, readonly number[]>>;
}

/** The parts of a division. */
export interface DivisionParts {
  readonly where: (reg: Reg) => { readonly place: Place; readonly held: readonly Held[] };
  readonly push: (item: FinalItem) => void;
  /** The register of a result, or -1 if it is in memory. */
  readonly placeOf: (reg: Reg) => number;
  /** Notes that a register is written. */
  readonly written: (list: Held[], number: number, reg: Reg) => void;
}

/** Which loads an instruction may have as an operand in memory. */
export interface Folds {
  readonly loads: ReadonlySet<Row>;
  /** The instruction that reads a load's place in memory instead of its register, or null if there is none. */
  folded(load: Ins, user: Ins): Ins | null;
}

export interface Registers {
  classes(target: MachineTarget, divides: boolean): Classes;
  /** The register that points to the frame. */
  readonly stack: number;
  /** Instructions that load and store a spilled value. */
  readonly load: Readonly<Record<RegClass, Row>>;
  readonly store: Readonly<Record<RegClass, Row>>;
  /** Bytes of a spilled vector. */
  readonly slotBytes: number;
  /** True for an instruction that copies a whole register to another. */
  isCopy(item: Ins): boolean;
  /** True for instructions that may be removed if their result is dead: constants, which other instructions may encode themselves. */
  mayGo(row: Row): boolean;
  /** True if lanes outside of its mask, if it has one, are kept. */
  keepsLanes(item: Ins): boolean;
  /** Loads that other instructions may have as their operand in memory; left out where there are none. */
  readonly folds?: Folds;
  /** Writes a division, which needs fixed registers. */
  divide(item: Item & { readonly kind: 'divide' }, parts: DivisionParts): void;
}

/** One operation on the registers of one part. */
export type Make = (v: readonly Reg[]) => Reg;

/** Loads and stores. */
export interface Access {
  /** The value of a SCALAR. */
  scalar(b: Builder, kind: Kind, at: Memory): Reg;
  element(b: Builder, dtype: DType, at: Memory): Reg;
  storeElement(b: Builder, dtype: DType, at: Memory, r: Reg): void;
  /** Splats one element of memory to lanes of this width. */
  spread(b: Builder, width: 4 | 8, bytes: number, at: Memory): Reg;
  /** 4 bytes or more of a vector. */
  part(b: Builder, bytes: number, at: Memory): Reg;
  storePart(b: Builder, bytes: number, at: Memory, part: Reg): void;
  /** Non-temporal stores, or null if they gain nothing. */
  readonly streams: Streams | null;
  /** Bytes or words extended to lanes of four bytes, part by part. */
  small(ctx: Context, from: Memory, lanes: number, bytes: 1 | 2, signed: boolean): readonly Reg[];
  storeSmall(ctx: Context, to: Memory, parts: readonly Reg[], lanes: number, bytes: 1 | 2): void;
  /** One of two scalars. */
  choose(ctx: Context, condition: Reg, yes: Reg, no: Reg): Reg;
}

/** Non-temporal stores of whole vectors, which bypass the caches. */
export interface Streams {
  /** Compares: `e` holds if vectors of `bytes` bytes may be stored at a place in this way. */
  test(b: Builder, at: Memory, bytes: number): void;
  store(b: Builder, bytes: number, at: Memory, part: Reg): void;
  /** Orders earlier stores before later ones, as other threads see them. */
  fence(b: Builder): void;
  /** Asks for the line of memory at a place, which is read later, if there is such a place. */
  prefetch(b: Builder, at: Memory): void;
}

/** Which two lanes of four. */
export type PairsOf = 'even' | 'odd' | 'first' | 'last';

/** Moving lanes. */
export interface Lanes {
  /** The lower or upper half of a vector of `bytes` bytes. */
  half(ctx: Context, v: Reg, bytes: number, upper: boolean): Reg;
  /** Two halves as one vector of `bytes` bytes. */
  join(ctx: Context, low: Reg, high: Reg, bytes: number): Reg;
  /** The lower four bytes of every eight, in a vector of half the size. */
  lowWords(ctx: Context, v: Reg, bytes: number): Reg;
  /** A scalar in all lanes. */
  splat(ctx: Context, kind: Kind, scalar: Reg, bytes: number): Reg;
  /** A lane of a vector that is not a mask, as a scalar of its kind. */
  extract(ctx: Context, kind: Kind, from: Lowered, lane: number): Reg;
  /** A vector of scalars that are not bools. */
  gather(ctx: Context, kind: Kind, lanes: number, laneOf: (i: number) => Reg): Lowered;
  /** Two lanes of each of two vectors of four, or so in all parts of 16 bytes. */
  pairs(ctx: Context, which: PairsOf, x: Reg, y: Reg, bytes: number): Reg;
  /** Lanes of four bytes, selected from several vectors. */
  pick(
    ctx: Context,
    vectors: readonly Reg[],
    lanes: readonly { readonly window: number; readonly at: number }[],
    bytes: number,
  ): Reg;
}

/** Operations on scalars, and on vectors part by part. */
export interface Operations {
  scalar(ctx: Context, op: string, kind: Kind, args: readonly Reg[], n: KNode | null): Reg;
  /** Compares integers; returns the condition under which the comparison is true. */
  compare(ctx: Context, op: 'LT' | 'LE' | 'EQ', kind: Kind, x: Reg, y: Reg, n: KNode | null): Condition;
  /** Null if the operation is done lane by lane. */
  vector(ctx: Context, n: KNode, kind: Kind, bytes: number): Make | null;
  /** `x < y ? y : x` and `x < y ? x : y`, if the machine has something better than a comparison; else null. */
  extremum(ctx: Context, kind: Kind, most: boolean, bytes: number): Make | null;
  /** Lanes of so many bytes turned to the left by a constant, if the machine has something better than two shifts; else null. */
  rotation(ctx: Context, width: 4 | 8, by: number, bytes: number): Make | null;
}

/** Casts between numbers; null if they are done lane by lane. */
export interface Casts {
  scalar(ctx: Context, from: Kind, to: Kind, x: Reg): Reg;
  same(ctx: Context, from: Kind, to: Kind, v: Reg, bytes: number, lanes: number): Reg | null;
  /** Lanes of four bytes, half as many bytes as the result, to lanes of eight. */
  widen(ctx: Context, from: Kind, to: Kind, v: Reg, bytes: number, lanes: number): Reg | null;
  /** Lanes of eight bytes to lanes of four, in half as many bytes. */
  narrow(ctx: Context, from: Kind, to: Kind, v: Reg, bytes: number, lanes: number): Reg | null;
  /** Truncates a 32-bit scalar to a small integer and extends it again. */
  wrap(b: Builder, x: Reg, bits: 8 | 16, signed: boolean): Reg;
  /** The same for lanes of four bytes. */
  wrapLanes(b: Builder, v: Reg, bits: 8 | 16, signed: boolean, bytes: number): Reg;
  /** The bits of a scalar in a register of the other class. */
  bits(b: Builder, to: Kind, x: Reg): Reg;
}

/** float16, packed: 16 bits per lane. Byte counts are those of lanes of four bytes. */
export interface Halves {
  /** To float32. */
  widen(b: Builder, packed: Reg, bytes: number): Reg;
  /** From float32, to nearest, ties to even, with subnormals. */
  narrow(b: Builder, v: Reg, bytes: number): Reg;
  /** The low halves of lanes. */
  pack(ctx: Context, v: Reg, bytes: number): Reg;
  /** Lanes whose low halves these are; the others are zero. */
  unpack(b: Builder, packed: Reg, bytes: number): Reg;
}

/** Writes assigned code. */
export interface Writer {
  /** The entry of the function: stores its parameters in the frame. */
  enter(): void;
  instruction(row: Row, size: number, places: readonly Place[], mask: number, zero: boolean): void;
  label(): number;
  bind(label: number, loop: boolean): void;
  jump(label: number, condition: Condition | null): void;
  /** Sets the function's result to the number of a check, or 0. */
  result(code: number): void;
  leave(): void;
  /** The code with the constants behind it. */
  finish(constants: Uint8Array): Uint8Array<ArrayBuffer>;
}

export interface Machine extends Instructions {
  readonly registers: Registers;
  readonly access: Access;
  readonly lanes: Lanes;
  readonly operations: Operations;
  readonly casts: Casts;
  readonly halves: Halves;
  masks(ctx: Context): Masks;
  /** @param lines receives the instructions as text, or null */
  writer(assigned: Assigned, constantBytes: number, lines: string[] | null): Writer;
}

/** What lowering a program shares: its code so far, and the values lowered. */
export interface Context {
  readonly b: Builder;
  readonly machine: Machine;
  readonly target: MachineTarget;
  readonly masks: Masks;
  /** The lowered form of a source that comes earlier in the body. */
  get(node: KNode): Lowered;
  /** Number of live users of a node. */
  uses(node: KNode): number;
}

/**
 * What a set of instructions is to the rest of this package: its registers for allocate/, its forms of what every program needs for builder.ts,
 * its operations for lower/, its bytes for write.ts. x64/ and arm64/ have one each.
 */
import type { KNode } from '@polygrad/core/kernel';
import type { Builder } from './builder.ts';
import type { Assigned, Condition, FinalItem, Held, Ins, Item, Memory, Place, Reg, RegClass, Row } from './code.ts';
import type { Context, Lowered } from './context.ts';
import type { Masks } from './masks.ts';
import type { DType, Kind, MachineTarget } from '../target.ts';

/** The registers of each class, in the order in which they are taken. */
export interface Classes {
  readonly all: Readonly<Record<RegClass, readonly number[]>>;
  /** Those that spilled values go through, where some are. */
  readonly scratch: Readonly<Record<RegClass, readonly number[]>>;
}

/** What an instruction of a division is written with. */
export interface DivisionParts {
  readonly where: (reg: Reg) => { readonly place: Place; readonly held: readonly Held[] };
  readonly push: (item: FinalItem) => void;
  /** The register of a result, or -1 where it is in memory. */
  readonly placeOf: (reg: Reg) => number;
  /** Notes that a register is written. */
  readonly written: (list: Held[], number: number, reg: Reg) => void;
}

export interface Registers {
  classes(target: MachineTarget, divides: boolean): Classes;
  /** The register that the frame lies at. */
  readonly stack: number;
  /** Instructions that bring a spilled value and put it away. */
  readonly load: Readonly<Record<RegClass, Row>>;
  readonly store: Readonly<Record<RegClass, Row>>;
  /** Bytes of a spilled vector. */
  readonly slotBytes: number;
  /** True where an instruction on two registers copies one whole. */
  isCopy(item: Ins): boolean;
  /** True for instructions that are left out where nobody reads what they make: numbers that other instructions hold themselves. */
  mayGo(row: Row): boolean;
  /** True where lanes outside of its mask, if it has one, keep what they hold. */
  keepsLanes(item: Ins): boolean;
  /** Writes a division that needs registers of its own. */
  divide(item: Item & { readonly kind: 'divide' }, parts: DivisionParts): void;
}

/** Instructions that every program needs. */
export interface Basics {
  /** Bytes of the registers that hold vectors of so many bytes. */
  bytes(target: MachineTarget, size: number): number;
  move(b: Builder, to: Reg, from: Reg, size: number): void;
  integer(b: Builder, value: bigint, size: 4 | 8): Reg;
  /** 8 bytes of memory into a general register. */
  pointer(b: Builder, from: Memory, to?: Reg): Reg;
  /** A vector of constants. */
  constants(b: Builder, to: Reg, from: Memory): void;
  /** Compares a bool with zero: `ne` where it is true. */
  test(b: Builder, bool: Reg): void;
  /** Compares a number of 32 bits with zero. */
  sign(b: Builder, x: Reg): void;
  /** Compares integers of so many bytes. */
  compare(b: Builder, size: number, x: Reg, y: Reg | number): void;
  /** Writes one register to another where the condition holds. */
  take(b: Builder, condition: Condition, to: Reg, from: Reg): void;
  /** Adds to a counter. */
  count(b: Builder, counter: Reg, by: number): void;
  /** Quotient or remainder of unsigned numbers of 32 bits; not by zero. */
  divide(b: Builder, x: Reg, by: Reg, rest: boolean): Reg;
  /** `x + by`, of 32 bits. */
  add(b: Builder, x: Reg, by: number): Reg;
  /** `sum + x * by`, of 32 bits. */
  addProduct(b: Builder, sum: Reg | null, x: Reg, by: number): Reg;
  /** A number of 32 bits with its sign in 64. */
  extend(b: Builder, x: Reg): Reg;
  /** The address of a place. */
  address(b: Builder, at: Memory): Reg;
  /** Places may have an index; otherwise their address is made first. */
  readonly indexes: boolean;
}

/** One operation on the registers of one part. */
export type Make = (v: readonly Reg[]) => Reg;

/** Loads and stores. */
export interface Access {
  /** The value of a SCALAR. */
  scalar(b: Builder, kind: Kind, at: Memory): Reg;
  element(b: Builder, dtype: DType, at: Memory): Reg;
  storeElement(b: Builder, dtype: DType, at: Memory, r: Reg): void;
  /** One element in all lanes of so many bytes. */
  spread(b: Builder, width: 4 | 8, bytes: number, at: Memory): Reg;
  /** 4 bytes or more of a vector. */
  part(b: Builder, bytes: number, at: Memory): Reg;
  storePart(b: Builder, bytes: number, at: Memory, part: Reg): void;
  /** Stores past the caches, or null where they bring nothing. */
  readonly streams: Streams | null;
  /** Bytes or words as lanes of four bytes, part by part. */
  small(ctx: Context, from: Memory, lanes: number, bytes: 1 | 2, signed: boolean): readonly Reg[];
  storeSmall(ctx: Context, to: Memory, parts: readonly Reg[], lanes: number, bytes: 1 | 2): void;
  /** One of two scalars. */
  choose(ctx: Context, condition: Reg, yes: Reg, no: Reg): Reg;
}

/** Stores of whole vectors that leave nothing in the caches. */
export interface Streams {
  /** Compares: `e` where vectors of so many bytes may be stored at a place this way. */
  test(b: Builder, at: Memory, bytes: number): void;
  store(b: Builder, bytes: number, at: Memory, part: Reg): void;
  /** What has been stored is seen by other threads before what is written from here on. */
  fence(b: Builder): void;
}

/** Lanes, moved. */
export interface Lanes {
  /** The lower or upper half of a vector of so many bytes. */
  half(ctx: Context, v: Reg, bytes: number, upper: boolean): Reg;
  /** Two halves as one vector of so many bytes. */
  join(ctx: Context, low: Reg, high: Reg, bytes: number): Reg;
  /** The lower four bytes of every eight, in half as many bytes. */
  lowWords(ctx: Context, v: Reg, bytes: number): Reg;
  /** A scalar in all lanes. */
  splat(ctx: Context, kind: Kind, scalar: Reg, bytes: number): Reg;
  /** A lane of a vector that is no mask, as a scalar of its kind. */
  extract(ctx: Context, kind: Kind, from: Lowered, lane: number): Reg;
  /** A vector of scalars that are no bools. */
  gather(ctx: Context, kind: Kind, lanes: number, laneOf: (i: number) => Reg): Lowered;
  /** Two lanes of each of two vectors of four. */
  pairs(ctx: Context, which: 'even' | 'odd' | 'first' | 'last', x: Reg, y: Reg): Reg;
  /** Lanes of four bytes from any of some vectors. */
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
  /** Compares integers; the condition that holds where the comparison is true. */
  compare(ctx: Context, op: 'LT' | 'LE' | 'EQ', kind: Kind, x: Reg, y: Reg, n: KNode | null): Condition;
  /** Null where the operation is done lane by lane. */
  vector(ctx: Context, n: KNode, kind: Kind, bytes: number): Make | null;
  /** `x < y ? y : x` and `x < y ? x : y`, where there is something better than a comparison; null otherwise. */
  extremum(ctx: Context, kind: Kind, most: boolean, bytes: number): Make | null;
}

/** Casts between numbers; null where they are done lane by lane. */
export interface Casts {
  scalar(ctx: Context, from: Kind, to: Kind, x: Reg): Reg;
  same(ctx: Context, from: Kind, to: Kind, v: Reg, bytes: number, lanes: number): Reg | null;
  /** Lanes of four bytes, half as many bytes as the result, to lanes of eight. */
  widen(ctx: Context, from: Kind, to: Kind, v: Reg, bytes: number, lanes: number): Reg | null;
  /** Lanes of eight bytes to lanes of four, in half as many bytes. */
  narrow(ctx: Context, from: Kind, to: Kind, v: Reg, bytes: number, lanes: number): Reg | null;
  /** A scalar of 32 bits cut to a small integer and extended again. */
  wrap(b: Builder, x: Reg, bits: 8 | 16, signed: boolean): Reg;
  /** The same for lanes of four bytes. */
  wrapLanes(b: Builder, v: Reg, bits: 8 | 16, signed: boolean, bytes: number): Reg;
  /** The bits of a scalar in a register of the other class. */
  bits(b: Builder, to: Kind, x: Reg): Reg;
}

/** float16, packed: 16 bits a lane. Bytes are those of the lanes of four bytes. */
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

/** Writes what was assigned. */
export interface Writer {
  /** The entry of the function: its parameters go into the frame. */
  enter(): void;
  instruction(row: Row, size: number, places: readonly Place[], mask: number, zero: boolean): void;
  label(): number;
  bind(label: number, loop: boolean): void;
  jump(label: number, condition: Condition | null): void;
  /** Puts the number of a check, or 0, where the function's result is. */
  result(code: number): void;
  leave(): void;
  /** The code with the constants behind it. */
  finish(constants: Uint8Array): Uint8Array<ArrayBuffer>;
}

export interface Machine {
  rowOf(key: string): Row;
  readonly registers: Registers;
  readonly basics: Basics;
  readonly access: Access;
  readonly lanes: Lanes;
  readonly operations: Operations;
  readonly casts: Casts;
  readonly halves: Halves;
  masks(ctx: Context): Masks;
  /** @param lines where the instructions go as text, or null */
  writer(assigned: Assigned, constantBytes: number, lines: string[] | null): Writer;
}

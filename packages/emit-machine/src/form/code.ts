/**
 * The low-level form: machine instructions on any number of virtual registers, in nested blocks. allocate/ assigns the registers of the machine.
 */

/** General registers, vectors, masks. */
export type RegClass = 'g' | 'v' | 'k';

/**
 * Conditions after a comparison, named as on x86: l, le, g, ge for signed and b, be, a, ae for unsigned numbers, e equal, s negative, p
 * unordered.
 */
export type Condition = 'b' | 'ae' | 'e' | 'ne' | 'be' | 'a' | 's' | 'ns' | 'p' | 'np' | 'l' | 'ge' | 'le' | 'g';

/** What allocation must know of an operand. */
export interface Operand {
  readonly reads: boolean;
  readonly writes: boolean;
  /** The register class; null for constants, and for operands that are always memory. */
  readonly cls: RegClass | null;
  /** True if memory may replace the register. */
  readonly folds: boolean;
}

/** What allocation must know of an instruction; targets add more. */
export interface Row {
  readonly name: string;
  readonly operands: readonly Operand[];
  /** For each operand, 1 if it is read, and 2 more if it is written. */
  readonly roles: readonly number[];
}

/** The roles of operands, as a row has them. */
export function rolesOf(operands: readonly Operand[]): readonly number[] {
  return operands.map(({ reads, writes }) => (reads ? 1 : 0) + (writes ? 2 : 0));
}

/** A register before allocation. */
export class Reg {
  readonly id: number;
  readonly cls: RegClass;
  /** The block in which it is created. */
  readonly block: Block;
  /** True if it is written more than once by design: a register of the program, a counter. */
  readonly mutable: boolean;
  /** True for the counter of the loop in whose block it is made: it changes between iterations only. */
  isCounter = false;
  /** Memory that always holds its value: constants, parameters in the frame. */
  home: Memory | null = null;
  /** What it was copied from. */
  hint: Reg | null = null;

  constructor(id: number, cls: RegClass, block: Block, mutable: boolean) {
    this.id = id;
    this.cls = cls;
    this.block = block;
    this.mutable = mutable;
  }
}

/** Memory at a register, in the frame of the function, or among the constants. */
export interface Memory {
  readonly base: Reg | 'frame' | 'constants';
  readonly index: Reg | null;
  readonly scale: number;
  readonly offset: number;
}

/** The same place, some bytes further. */
export function further(m: Memory, bytes: number): Memory {
  return bytes === 0 ? m : { ...m, offset: m.offset + bytes };
}

export type Arg = Reg | Memory | number;

/** Memory at machine registers: `base + index * scale + offset`; base -1: the constants behind the code, index -1: none. */
export interface MemoryPlace {
  readonly base: number;
  readonly index: number;
  readonly scale: number;
  readonly offset: number;
}

/** Offsets in the frame of the function's four parameters. */
export const parameterOffset = { args: 0, from: 8, to: 16, scratch: 24 } as const;

/** An assigned operand: a register's number, a constant if the operand is one, or memory. */
export type Place = number | MemoryPlace;

/** The base of constants. */
export const poolBase = -1;

/** One instruction. */
export interface Ins {
  readonly kind: 'ins';
  readonly row: Row;
  readonly size: number;
  args: Arg[];
  readonly mask: Reg | null;
  readonly zero: boolean;
}

/** Items of more than one instruction, or of none. */
export type Special =
  /** quotient or remainder of `args[1] / args[2]` into `args[0]`; uses two registers of its own. */
  | { readonly kind: 'divide'; readonly signed: boolean; readonly rest: boolean; readonly size: 4 | 8; args: Arg[] }
  | { readonly kind: 'label'; readonly label: Label; readonly loop: boolean }
  | { readonly kind: 'jump'; readonly label: Label; readonly condition: Condition | null }
  /** Ends the function with a number, because a check failed. */
  | { readonly kind: 'fault'; readonly label: Label; readonly condition: Condition; readonly code: number };

export type Item = Ins | Special;

/** A place to jump to. */
export class Label {
  at = -1;
}

/** A sequence of instructions and blocks. A loop's block ends with the jump to its start. */
export class Block {
  readonly parent: Block | null;
  readonly depth: number;
  /** Loops around it and itself, if it is one. */
  readonly loops: number;
  readonly kind: 'root' | 'loop' | 'if';
  /** True if it runs whenever the parent does. */
  readonly certain: boolean;
  readonly items: (Item | Block)[] = [];
  /** Items that stay in front of it: a comparison and a jump past the block. */
  readonly head: Item[] = [];
  readonly label: Label = new Label();

  constructor(parent: Block | null, kind: Block['kind'], certain: boolean) {
    this.parent = parent;
    this.depth = parent === null ? 0 : parent.depth + 1;
    this.loops = (parent === null ? 0 : parent.loops) + (kind === 'loop' ? 1 : 0);
    this.kind = kind;
    this.certain = certain;
  }
}

/** True for memory. */
export function isMemory(a: Arg): a is Memory {
  return typeof a === 'object' && !(a instanceof Reg);
}

/** A place that holds a value: a register, or a slot of the frame by its offset. */
export interface Held {
  readonly cls: RegClass | 'slot';
  readonly number: number;
  readonly reg: Reg;
}

/** One instruction with registers of the machine. */
export interface FinalIns {
  readonly kind: 'ins';
  readonly row: Row;
  readonly size: number;
  readonly places: readonly Place[];
  readonly mask: number;
  readonly zero: boolean;
  /** What it expects where, and what it leaves where; only for the verifier. */
  readonly reads: readonly Held[];
  readonly writes: readonly Held[];
  /** Other registers it changes. */
  readonly spoils: readonly number[];
}

export type FinalItem =
  | FinalIns
  /** Two registers become one place, which holds the value of both. */
  | { readonly kind: 'same'; readonly from: Held; readonly to: Held }
  | { readonly kind: 'label'; readonly label: Label; readonly loop: boolean }
  | { readonly kind: 'jump'; readonly label: Label; readonly condition: Condition | null }
  | { readonly kind: 'fault'; readonly label: Label; readonly condition: Condition; readonly code: number };

export interface Assigned {
  readonly items: readonly FinalItem[];
  /** Bytes of the frame, a multiple of 64. */
  readonly frameBytes: number;
  /** General and vector registers that are written. */
  readonly general: ReadonlySet<number>;
  readonly vectors: ReadonlySet<number>;
  readonly spilled: number;
}

/**
 * A lowered value: one register for a scalar, otherwise the parts of a vector, all as wide as `vectorBytes` of the target if there is more than one.
 * `width` is the size of a lane. Masks have one register where there are mask registers, and parts of either width elsewhere.
 */
export interface Lowered {
  readonly parts: readonly Reg[];
  readonly width: 4 | 8;
}

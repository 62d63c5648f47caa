/**
 * The low-level form: instructions of the machine on any number of registers, in nested blocks. Which registers of the machine they become
 * is decided in allocate/.
 */

/** General registers, vectors, masks. */
export type RegClass = 'g' | 'v' | 'k';

/**
 * What the last comparison may have found, named as on x86: l, le, g, ge of signed and b, be, a, ae of unsigned numbers, e equal, s negative, p
 * unordered.
 */
export type Condition = 'b' | 'ae' | 'e' | 'ne' | 'be' | 'a' | 's' | 'ns' | 'p' | 'np' | 'l' | 'ge' | 'le' | 'g';

/** What allocation must know of an operand. */
export interface Operand {
  readonly reads: boolean;
  readonly writes: boolean;
  /** The registers that may stand here; null for constants, and for what is memory alone. */
  readonly cls: RegClass | null;
  /** Memory may stand in the place of the register. */
  readonly folds: boolean;
}

/** What allocation must know of an instruction; targets know more. */
export interface Row {
  readonly name: string;
  readonly operands: readonly Operand[];
}

/** A register before allocation. */
export class Reg {
  readonly id: number;
  readonly cls: RegClass;
  /** The block it is made in. */
  readonly block: Block;
  /** True where it is written more than once by design: a register of the program, a counter. */
  readonly mutable: boolean;
  /** Where its value can be had from at any time: constants, what the entry put into the frame. */
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

/** Memory at registers of the machine: `base + index * scale + offset`; a base of -1 is the constants behind the code, an index of -1 none. */
export interface MemoryPlace {
  readonly base: number;
  readonly index: number;
  readonly scale: number;
  readonly offset: number;
}

/** Where the entry of the function leaves its four parameters in the frame. */
export const parameterOffset = { args: 0, from: 8, to: 16, scratch: 24 } as const;

/** What stands at an operand's place in the end: a register's number, or a constant where the operand is one; memory. */
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

/** What is more than one instruction, or none. */
export type Special =
  /** quotient or remainder of `args[1] / args[2]` into `args[0]`; uses two registers of its own. */
  | { readonly kind: 'divide'; readonly signed: boolean; readonly rest: boolean; readonly size: 4 | 8; args: Arg[] }
  | { readonly kind: 'label'; readonly label: Label; readonly loop: boolean }
  | { readonly kind: 'jump'; readonly label: Label; readonly condition: Condition | null }
  /** Ends the function with a number, where a check failed. */
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
  readonly kind: 'root' | 'loop' | 'if';
  /** Runs whenever the parent does. */
  readonly certain: boolean;
  readonly items: (Item | Block)[] = [];
  /** What stands before it, and stays there: a comparison and a jump past the block. */
  readonly head: Item[] = [];
  readonly label: Label = new Label();

  constructor(parent: Block | null, kind: Block['kind'], certain: boolean) {
    this.parent = parent;
    this.depth = parent === null ? 0 : parent.depth + 1;
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
  /** What it expects where, and what it leaves where: only where the verifier asks. */
  readonly reads: readonly Held[];
  readonly writes: readonly Held[];
  /** Registers it changes besides. */
  readonly spoils: readonly number[];
}

export type FinalItem =
  | FinalIns
  /** Two registers become one place: it holds the value of both. */
  | { readonly kind: 'same'; readonly from: Held; readonly to: Held }
  | { readonly kind: 'label'; readonly label: Label; readonly loop: boolean }
  | { readonly kind: 'jump'; readonly label: Label; readonly condition: Condition | null }
  | { readonly kind: 'fault'; readonly label: Label; readonly condition: Condition; readonly code: number };

export interface Assigned {
  readonly items: readonly FinalItem[];
  /** Bytes of the frame, a multiple of 64. */
  readonly frameBytes: number;
  /** General registers and vectors that are written. */
  readonly general: ReadonlySet<number>;
  readonly vectors: ReadonlySet<number>;
  readonly spilled: number;
}

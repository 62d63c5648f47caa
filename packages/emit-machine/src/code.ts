/**
 * The low-level form: instructions of the machine on any number of registers, in nested blocks. Which registers of the machine they become
 * is decided in allocate/.
 */
import type { Condition, Row } from './x64/rows.ts';

/** General registers, vectors, masks. */
export type RegClass = 'g' | 'v' | 'k';

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

export type Arg = Reg | Memory | number;

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

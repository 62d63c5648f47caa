/**
 * The emitter's low-level form: WebAssembly values and statements in nested blocks, before instruction order is fixed.
 *
 * A `Val` is one instruction's result. Where it is computed is decided by `block` (the outermost block its operands allow);
 * when, by `print.ts`, which places every value at its first use. A `Cell` is a local that changes: loop counters, running
 * pointers and the registers of the IR. This file knows WebAssembly types, not the IR's dtypes.
 */
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import type { ValType } from '../asm/types.ts';

/** A local that is assigned more than once, or a parameter of the function. */
export interface Cell {
  readonly type: ValType;
  readonly index: number;
}

/** What stores can change: a memory object of the IR or a cell. Loads and stores of one class keep their order. */
export type MemoryClass = object;

/** Pseudo instruction of `Val`: reads a cell. */
export const CELL = -1;

/** The result of one instruction. */
export class Val {
  readonly id: number;
  /** Instruction, or CELL. */
  readonly code: number;
  readonly type: ValType;
  readonly args: readonly Val[];
  /** Constant, lane, memory offset or number of the cell's local. */
  readonly imm: number;
  /** Shuffle pattern, vector constant or 64-bit constant. */
  readonly bytes: Uint8Array | null;
  readonly block: Block;
  /** For loads whose memory may be stored to. */
  readonly cls: MemoryClass | null;
  /** Number of places that need the value, counting one hold per inner block that reads it (uses.ts). */
  uses = 0;
  /** While printing: uses still to come, and the local that holds the value (-1: none yet). */
  left = 0;
  local = -1;
  /** Last child block the value was imported into. */
  imported: Block | null = null;

  constructor(
    id: number,
    code: number,
    type: ValType,
    args: readonly Val[],
    imm: number,
    bytes: Uint8Array | null,
    block: Block,
    cls: MemoryClass | null,
  ) {
    this.id = id;
    this.code = code;
    this.type = type;
    this.args = args;
    this.imm = imm;
    this.bytes = bytes;
    this.block = block;
    this.cls = cls;
  }
}

/** A cell that advances by `step` in every iteration of a loop, starting at `init`. */
export interface Induction {
  readonly cell: Cell;
  readonly init: Val;
  readonly step: number;
}

/** A counted loop: counter from `start` in steps of `step` while below `limit`; runs at least once if `certain`. */
export interface LoopInfo {
  readonly counter: Cell;
  readonly start: Val | null;
  readonly step: number;
  readonly limit: Val;
  readonly certain: boolean;
  readonly inductions: Induction[];
}

export type Stmt =
  | {
      readonly kind: 'store';
      readonly code: number;
      readonly addr: Val;
      readonly value: Val;
      readonly offset: number;
      readonly lane: number;
      readonly cls: MemoryClass;
    }
  /** `cls`: memory that computing the value changes (atomics). */
  | { readonly kind: 'set'; readonly cell: Cell; readonly value: Val; readonly cls: MemoryClass | null }
  /** Marks where a load of changing memory stands. */
  | { readonly kind: 'def'; readonly val: Val }
  | { readonly kind: 'block'; readonly block: Block };

/** A sequence of statements that runs once per entry: the function, a loop's body, an IF's body, a repeat-while body. */
export class Block {
  readonly parent: Block | null;
  readonly depth: number;
  readonly kind: 'root' | 'loop' | 'if' | 'repeat';
  readonly loop: LoopInfo | null;
  /** Condition of 'if' (in the parent); condition to go on of 'repeat' (inside). */
  cond: Val | null = null;
  readonly stmts: Stmt[] = [];
  /** Values of the parent needed inside. */
  readonly imports: Val[] = [];
  readonly writes: Set<MemoryClass> = new Set();
  open = true;

  constructor(parent: Block | null, kind: Block['kind'], loop: LoopInfo | null) {
    this.parent = parent;
    this.depth = parent === null ? 0 : parent.depth + 1;
    this.kind = kind;
    this.loop = loop;
  }
}

/** True for values that are printed again at every use instead of being kept in a local. */
export function isCheap(v: Val): boolean {
  switch (v.code) {
    case CELL:
    case W.i32Const:
    case W.i64Const:
    case W.f32Const:
    case W.f64Const:
      return true;
    case S.const:
      return v.bytes!.every((b) => b === 0);
    default:
      return false;
  }
}

/** Builds the low-level form: instructions in the current block, constants, places in the frame. */
import {
  type Arg,
  Block,
  type Condition,
  type Ins,
  isMemory,
  type Item,
  Label,
  type Memory,
  parameterOffset,
  Reg,
  type RegClass,
  type Row,
} from './code.ts';
import type { MachineTarget } from '../target.ts';

/** Instructions that every program needs. They write into the builder they are given. */
export interface Basics {
  /** The size of the registers for vectors of this size. */
  bytes(target: MachineTarget, size: number): number;
  move(b: Builder, to: Reg, from: Reg, size: number): void;
  integer(b: Builder, value: bigint, size: 4 | 8): Reg;
  /** Loads 8 bytes into a general register. */
  pointer(b: Builder, from: Memory, to?: Reg): Reg;
  /** A vector of constants. */
  constants(b: Builder, to: Reg, from: Memory): void;
  /** Compares a bool with zero: `ne` holds if it is true. */
  test(b: Builder, bool: Reg): void;
  /** Compares a 32-bit number with zero. */
  sign(b: Builder, x: Reg): void;
  /** Compares integers of `size` bytes. */
  compare(b: Builder, size: number, x: Reg, y: Reg | number): void;
  /** Writes one register to another where the condition holds. */
  take(b: Builder, condition: Condition, to: Reg, from: Reg): void;
  /** Adds to a counter. */
  count(b: Builder, counter: Reg, by: number): void;
  /** Quotient or remainder of unsigned 32-bit numbers; the divisor is not zero. */
  divide(b: Builder, x: Reg, by: Reg, rest: boolean): Reg;
  /** `x + by`, in 32 bits. */
  add(b: Builder, x: Reg, by: number): Reg;
  /** `sum + x * by`, in 32 bits. */
  addProduct(b: Builder, sum: Reg | null, x: Reg, by: number): Reg;
  /** Sign-extends 32 bits to 64. */
  extend(b: Builder, x: Reg): Reg;
  /** The address of a place. */
  address(b: Builder, at: Memory): Reg;
  /** True if memory operands may have an index; otherwise the address is computed first. */
  readonly indexes: boolean;
}

/** The part of a machine (machine.ts) that the builder writes with. */
export interface Instructions {
  rowOf(key: string): Row;
  readonly basics: Basics;
}

const parameterBytes = 64;

export class Builder {
  readonly target: MachineTarget;
  readonly #machine: Instructions;
  readonly root: Block = new Block(null, 'root', true);
  current: Block = this.root;
  /** All registers made, by number. */
  readonly regs: Reg[] = [];
  /** True if there are loads of one element into all lanes. */
  spreads = false;
  #constants = new Uint8Array(1024);
  #constantBytes = 0;
  #zeros: { readonly bytes: number; readonly at: Memory } | null = null;
  readonly #known = new Map<string, Reg>();
  readonly #bits = { 4: new Map<number | bigint, Reg>(), 8: new Map<number | bigint, Reg>() } as const;
  readonly #floats = { 4: new Map<number, Reg>(), 8: new Map<number, Reg>() } as const;
  #frameBytes = parameterBytes;
  #faults = 0;

  constructor(target: MachineTarget, machine: Instructions) {
    this.target = target;
    this.#machine = machine;
  }

  /** The constants, which follow the code. */
  get constants(): Uint8Array {
    return this.#constants.subarray(0, this.#constantBytes);
  }

  /** Bytes of the frame for the code's own use; a multiple of 64. */
  get frameBytes(): number {
    return this.#frameBytes;
  }

  reg(cls: RegClass, mutable = false): Reg {
    const r = new Reg(this.regs.length, cls, this.current, mutable);
    this.regs.push(r);
    return r;
  }

  /** Writes into an enclosing open block: at its present end, which is before the blocks that are open inside. */
  in<T>(block: Block, make: () => T): T {
    const old = this.current;
    this.current = block;
    const made = make();
    this.current = old;
    return made;
  }

  /** One instruction with all operands given. */
  ins(key: string, size: number, ...args: Arg[]): void {
    this.current.items.push({ kind: 'ins', row: this.#machine.rowOf(key), size, args, mask: null, zero: false });
  }

  /** One instruction that writes only lanes of a mask; the other lanes are kept, or become zero. */
  masked(key: string, size: number, mask: Reg, zero: boolean, ...args: Arg[]): void {
    const made: Ins = { kind: 'ins', row: this.#machine.rowOf(key), size, args, mask, zero };
    this.current.items.push(made);
  }

  /** A new register for the result of an instruction, its first operand. */
  op(key: string, size: number, x?: Arg, y?: Arg, z?: Arg): Reg {
    const row = this.#machine.rowOf(key);
    const d = this.reg(row.operands[0]!.cls!);
    let args: Arg[];
    if (x === undefined) args = [d];
    else if (y === undefined) args = [d, x];
    else args = z === undefined ? [d, x, y] : [d, x, y, z];
    this.current.items.push({ kind: 'ins', row, size, args, mask: null, zero: false });
    return d;
  }

  /** A copy of `a` with the lanes of a mask replaced by the result of an instruction. */
  merged(key: string, size: number, mask: Reg, a: Reg, ...args: Arg[]): Reg {
    const d = this.copy(a, size);
    this.masked(key, size, mask, false, d, ...args);
    return d;
  }

  /** Copies a register into another one. */
  move(to: Reg, from: Reg, size = 64): void {
    if (to === from) return;
    if (to.hint === null) to.hint = from;
    this.#machine.basics.move(this, to, from, size);
  }

  copy(from: Reg, size = 64): Reg {
    const d = this.reg(from.cls);
    this.move(d, from, size);
    return d;
  }

  /** The size of the machine's registers for vectors of this size. */
  bytes(size: number): number {
    return this.#machine.basics.bytes(this.target, size);
  }

  /** An instruction whose first operand is also its result. */
  two(key: string, size: number, a: Reg, b: Arg): Reg {
    const d = this.copy(a);
    this.ins(key, size, d, b);
    return d;
  }

  /** A general register that holds a number. */
  integer(value: number | bigint, size: 4 | 8 = 4): Reg {
    return this.#machine.basics.integer(this, BigInt.asIntN(size * 8, BigInt(value)), size);
  }

  /** A vector of 64 bytes, `pattern` over and over. */
  vector(pattern: Uint8Array): Reg {
    const key = pattern.join();
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const offset = this.#room(64);
    for (let i = 0; i < 64; i++) this.#constants[offset + i] = pattern[i % pattern.length]!;
    const made = this.in(this.root, () => {
      const r = this.reg('v');
      r.home = { base: 'constants', index: null, scale: 1, offset };
      this.#machine.basics.constants(this, r, r.home);
      return r;
    });
    this.#known.set(key, made);
    return made;
  }

  /** Reserves zeroed space among the constants and returns its offset. */
  #room(bytes: number): number {
    const offset = this.#constantBytes;
    this.#constantBytes += bytes;
    if (this.#constantBytes > this.#constants.length) {
      const old = this.#constants;
      this.#constants = new Uint8Array(Math.max(old.length * 2, this.#constantBytes));
      this.#constants.set(old);
    }
    return offset;
  }

  /** Zeros in memory, at least this many bytes. */
  zeros(bytes: number): Memory {
    if (this.#zeros === null || this.#zeros.bytes < bytes) {
      const room = Math.ceil(bytes / 64) * 64;
      this.#zeros = { bytes: room, at: { base: 'constants', index: null, scale: 1, offset: this.#room(room) } };
    }
    return this.#zeros.at;
  }

  /** A vector whose lanes of 4 or 8 bytes hold these bits. */
  bits(value: number | bigint, width: 4 | 8): Reg {
    const known = this.#bits[width].get(value);
    if (known !== undefined) return known;
    const made = this.#bitsAnew(value, width);
    this.#bits[width].set(value, made);
    return made;
  }

  #bitsAnew(value: number | bigint, width: 4 | 8): Reg {
    const pattern = new Uint8Array(width);
    const view = new DataView(pattern.buffer);
    if (width === 4) view.setUint32(0, Number(BigInt.asUintN(32, BigInt(value))), true);
    else view.setBigUint64(0, BigInt.asUintN(64, BigInt(value)), true);
    return this.vector(pattern);
  }

  float(value: number, width: 4 | 8): Reg {
    // A map does not distinguish the zeros, nor NaNs.
    if (Object.is(value, -0) || Number.isNaN(value)) return this.#floatAnew(value, width);
    const known = this.#floats[width].get(value);
    if (known !== undefined) return known;
    const made = this.#floatAnew(value, width);
    this.#floats[width].set(value, made);
    return made;
  }

  #floatAnew(value: number, width: 4 | 8): Reg {
    const pattern = new Uint8Array(width);
    const view = new DataView(pattern.buffer);
    if (width === 4) view.setFloat32(0, value, true);
    else view.setFloat64(0, value, true);
    return this.vector(pattern);
  }

  /** A parameter of the function. */
  parameter(name: keyof typeof parameterOffset): Reg {
    return this.in(this.root, () => {
      const r = this.reg('g');
      r.home = { base: 'frame', index: null, scale: 1, offset: parameterOffset[name] };
      return this.#machine.basics.pointer(this, r.home, r);
    });
  }

  /** Space in the frame, at a multiple of 64. */
  frame(bytes: number): Memory {
    const offset = this.#frameBytes;
    this.#frameBytes += Math.ceil(bytes / 64) * 64;
    return { base: 'frame', index: null, scale: 1, offset };
  }

  /** Compares a bool with zero: `ne` holds if it is true. */
  test(bool: Reg): void {
    this.#machine.basics.test(this, bool);
  }

  /** Compares integers of `size` bytes. */
  compare(size: number, x: Reg, y: Reg | number): void {
    this.#machine.basics.compare(this, size, x, y);
  }

  /** Writes one register to another where the condition holds. */
  take(condition: Condition, to: Reg, from: Reg): void {
    this.#machine.basics.take(this, condition, to, from);
  }

  divide(a: Reg, b: Reg, options: { signed: boolean; rest: boolean; size: 4 | 8 }): Reg {
    const d = this.reg('g');
    this.current.items.push({ kind: 'divide', ...options, args: [d, a, b] });
    return d;
  }

  openLoop(certain: boolean): Block {
    this.current = new Block(this.current, 'loop', certain);
    return this.current;
  }

  /** Ends a loop: repeats it if the condition holds. */
  closeLoop(condition: Condition): void {
    const { current } = this;
    current.items.push({ kind: 'jump', label: current.label, condition });
    this.#close();
  }

  /** Adds a block to its parent only now, so that code written to the parent meanwhile comes before it. */
  #close(): void {
    const { current } = this;
    this.current = current.parent!;
    this.current.items.push(current);
  }

  /** The code that follows runs unless the condition holds, which the last instruction has set. */
  openUnless(condition: Condition): void {
    const block = new Block(this.current, 'if', false);
    const comparison = this.current.items.pop() as Item;
    block.head.push(comparison, { kind: 'jump', label: block.label, condition });
    this.current = block;
  }

  /** The code that follows runs if a bool is true. */
  openIf(bool: Reg): void {
    this.test(bool);
    this.openUnless('e');
  }

  closeIf(): void {
    this.#close();
  }

  /** Ends the function if the condition holds, with the number of the check. */
  fault(condition: Condition): void {
    this.current.items.push({ kind: 'fault', label: new Label(), condition, code: ++this.#faults });
  }
}

/** The registers of an operand. */
export function registersOf(a: Arg): readonly Reg[] {
  if (typeof a === 'number') return [];
  if (!isMemory(a)) return [a];
  const list: Reg[] = [];
  if (a.base instanceof Reg) list.push(a.base);
  if (a.index !== null) list.push(a.index);
  return list;
}

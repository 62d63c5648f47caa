/** The assembler of arm64: instructions of the table as words, labels, and constants behind the code. */
import { type Condition, type Place, poolBase } from '../form/code.ts';
import { conditions, type Operand, type Row } from './rows.ts';

/** True if the offset of a memory operand fits into the instruction. */
export function holdsOffset({ bytes }: Row, offset: number): boolean {
  return (offset >= 0 && offset % bytes === 0 && offset / bytes < 4096) || (offset >= -256 && offset < 256);
}

/** Bits of a register or a number. */
function bitsOf({ kind, at }: Operand, value: number, size: number): number {
  const bits = size * 8;
  switch (kind) {
    case 'both':
      return (value << 5) | (value << 16);
    case 'hw':
      return (value / 16) << at;
    case 'lsl':
      // Fields of bits: how far they are rotated, and the last one kept.
      return ((size === 8 ? 1 << 22 : 0) | (((bits - value) % bits) << 16) | ((bits - 1 - value) << 10)) >>> 0;
    case 'shr':
      return ((size === 8 ? 1 << 22 : 0) | (value << 16) | ((bits - 1) << 10)) >>> 0;
    case 'ones':
      return ((size === 8 ? 1 << 22 : 0) | ((value - 1) << 10)) >>> 0;
    case 'shl32':
      return (32 + value) << at;
    case 'shl64':
      return (64 + value) << at;
    case 'shr32':
      return (64 - value) << at;
    case 'shr64':
      return (128 - value) << at;
    case 'not':
      return (value ^ 1) << at;
    default:
      return value << at;
  }
}

/** The part of an instruction that does not depend on its position. */
function wordOf(row: Row, size: number, places: readonly Place[]): number {
  let word = row.code | (row.sized && size === 8 ? 0x80000000 : 0);
  row.operands.forEach((o, i) => {
    const p = places[i]!;
    if (typeof p === 'number') {
      word |= bitsOf(o, p, size);
      return;
    }
    if (p.base === poolBase) return;
    word |= p.base << 5;
    const { offset } = p;
    if (offset >= 0 && offset % row.bytes === 0) word |= (offset / row.bytes) << 10;
    else word = (word & ~0x01000000) | ((offset & 0x1ff) << 12);
  });
  return word >>> 0;
}

export class Assembler {
  #words = new Uint32Array(256);
  #count = 0;
  readonly #labels: number[] = [];
  readonly #jumps: { readonly at: number; readonly label: number; readonly near: boolean }[] = [];
  readonly #constants: { readonly at: number; readonly offset: number; readonly address: boolean }[] = [];
  /** Positions of instruction pairs that hold the distance of a constant. */
  readonly #distances: { readonly at: number; readonly offset: number }[] = [];

  get length(): number {
    return this.#count * 4;
  }

  word(x: number): void {
    if (this.#count === this.#words.length) {
      const old = this.#words;
      this.#words = new Uint32Array(old.length * 2);
      this.#words.set(old);
    }
    this.#words[this.#count++] = x;
  }

  /** Writes one instruction. `size`: bytes of the general registers, if the row does not fix it. */
  emit(row: Row, size: number, places: readonly Place[]): void {
    const constant = places.find((p) => typeof p === 'object' && p.base === poolBase);
    if (typeof constant !== 'object') {
      this.word(wordOf(row, size, places));
      return;
    }
    this.#constants.push({ at: this.#count, offset: constant.offset, address: row.name === 'adr' });
    this.word((row.literal | (places[0] as number)) >>> 0);
  }

  /** Sets `register` to the distance of a constant from the instruction before these two. */
  distance(register: number, offset: number): void {
    this.#distances.push({ at: this.#count, offset });
    this.word((0xd2800000 | register) >>> 0);
    this.word((0xf2a00000 | register) >>> 0);
  }

  label(): number {
    this.#labels.push(-1);
    return this.#labels.length - 1;
  }

  bind(label: number): void {
    this.#labels[label] = this.#count;
  }

  /** Jumps to a label where the condition holds, always without one. `far`: it may be more than 1 MiB away. */
  jump(label: number, condition: Condition | null, far: boolean): void {
    if (condition !== null && far) {
      // Past the jump unless the condition holds.
      this.word((0x54000040 | (conditions[condition] ^ 1)) >>> 0);
      this.jump(label, null, true);
      return;
    }
    this.#jumps.push({ at: this.#count, label, near: condition !== null });
    this.word(condition === null ? 0x14000000 : (0x54000000 | conditions[condition]) >>> 0);
  }

  /** Pads with nops to a multiple of `bytes`. */
  align(bytes: number): void {
    while (this.length % bytes !== 0) this.word(0xd503201f);
  }

  /** The code with the constants behind it, at a multiple of 64 bytes. */
  finish(constants: Uint8Array): Uint8Array<ArrayBuffer> {
    const words = this.#words;
    const start = Math.ceil(this.length / 64) * 64;
    for (const { at, label, near } of this.#jumps) {
      const by = this.#labels[label]! - at;
      if (Math.abs(by) >= (near ? 1 << 18 : 1 << 25)) throw new Error('[emit-machine] a jump is too far');
      words[at]! |= near ? (by & 0x7ffff) << 5 : by & 0x3ffffff;
    }
    for (const { at, offset, address } of this.#constants) {
      const by = start + offset - at * 4;
      if (by >= 1 << 20) throw new Error('[emit-machine] a constant is too far');
      words[at]! |= ((by >> 2) << 5) | (address ? (by & 3) << 29 : 0);
    }
    for (const { at, offset } of this.#distances) {
      const by = start + offset - (at - 1) * 4;
      words[at]! |= (by & 0xffff) << 5;
      words[at + 1]! |= (by >>> 16) << 5;
    }
    const out = new Uint8Array(start + constants.length);
    const view = new DataView(out.buffer);
    for (let i = 0; i < this.#count; i++) view.setUint32(i * 4, words[i]!, true);
    out.set(constants, start);
    return out;
  }
}

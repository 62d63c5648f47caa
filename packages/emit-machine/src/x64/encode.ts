/**
 * The assembler: instructions of the table as bytes, labels, and constants behind the code.
 */
import { type Condition, type Place, poolBase } from '../form/code.ts';
import { conditions, type Row } from './rows.ts';

/** Most bytes of an instruction, rounded up. */
const mostBytes = 16;

export class Assembler {
  #bytes = new Uint8Array(1024);
  #length = 0;
  readonly #labels: number[] = [];
  /** Positions of four bytes that hold the distance of a label. */
  readonly #jumps: { readonly at: number; readonly label: number }[] = [];
  /** Positions of four bytes that hold the distance of a constant, and the end of their instructions. */
  readonly #constants: { readonly at: number; readonly offset: number; end: number }[] = [];
  /** True if the instruction being written reads the last one of these. */
  #open = false;

  get length(): number {
    return this.#length;
  }

  /** Makes room for an instruction, or a piece of padding before a label, if it may lack. */
  #makeRoom(): void {
    if (this.#length + mostBytes <= this.#bytes.length) return;
    const old = this.#bytes;
    this.#bytes = new Uint8Array(old.length * 2);
    this.#bytes.set(old);
  }

  #byte(x: number): void {
    this.#bytes[this.#length++] = x;
  }

  #word(x: number, bytes: number): void {
    const all = this.#bytes;
    for (let i = 0; i < bytes; i++) all[this.#length++] = i < 4 ? x >> (8 * i) : x < 0 ? 255 : 0;
  }

  /**
   * Writes one instruction. `size`: bytes of the vectors, or of the general registers. `mask`: the number of the mask register
   * that selects the lanes written, 0 for all; `zero`: the others become zero.
   */
  emit(row: Row, size: number, places: readonly Place[], mask = 0, zero = false): void {
    if (this.#length + mostBytes > this.#bytes.length) this.#makeRoom();
    if (row.legacy) this.#legacy(row, size, places);
    else this.#vector(row, size, places, mask, zero);
    if (this.#open) this.#endOfInstruction();
  }

  // Most instructions of a first plan are written before V8 compiles any of this, so that a call for each byte would be what takes longest.

  #legacy(row: Row, size: number, places: readonly Place[]): void {
    const { at } = row;
    const all = this.#bytes;
    const reg = at.R < 0 ? Math.max(0, row.extension) : (places[at.R] as number);
    const place = at.M < 0 ? null : places[at.M]!;
    const constant = at.I < 0 ? 0 : (places[at.I] as number);
    if (row.prefix === 1) all[this.#length++] = 0x66;
    const wide = row.evexW === 1 || (size === 8 && row.general);
    // A register in the opcode is extended by the bit of the field that holds it.
    const inOpcode = place === null && at.R === 0;
    let rex = wide && row.name !== 'push' && row.name !== 'pop' ? 8 : 0;
    rex |= inOpcode ? reg >> 3 : (reg >> 3) << 2;
    if (place !== null) rex |= typeof place === 'number' ? (place >> 3) & 1 : addressBits(place);
    if (rex !== 0 || (row.bytes && needsRex(row, places))) all[this.#length++] = 0x40 | rex;
    if (row.map === 1) all[this.#length++] = 0x0f;
    const short = row.constant === -1 && constant >= -128 && constant <= 127;
    let opcode = row.opcode;
    if (short) opcode = row.opcode === 0x69 ? 0x6b : 0x83;
    if (inOpcode) {
      all[this.#length++] = opcode | (reg & 7);
      if (row.constant > 0) this.#long(constant, row.constant);
      return;
    }
    all[this.#length++] = opcode;
    if (place !== null) this.#modrm(reg, place, 1);
    else if (row.extension >= 0) this.#modrm(reg, 0, 1);
    if (row.constant !== 0) this.#word(constant, short ? 1 : row.constant === -1 ? 4 : row.constant);
  }

  #long(value: number, bytes: number): void {
    this.#word(value | 0, 4);
    if (bytes === 8) this.#word(Math.floor(value / 2 ** 32) | 0, 4);
  }

  #vector(row: Row, size: number, places: readonly Place[], mask: number, zero: boolean): void {
    const { at } = row;
    const reg = at.R < 0 ? Math.max(0, row.extension) : (places[at.R] as number);
    const second = at.V < 0 ? 0 : (places[at.V] as number);
    const rm = at.M < 0 ? 0 : places[at.M]!;
    let constant = at.I < 0 ? -1 : (places[at.I] as number);
    const bits = typeof rm === 'number' ? rm >> 3 : addressBits(rm);
    let high = mask !== 0 || reg >= 16 || second >= 16 || (typeof rm === 'number' && rm >= 16);
    if (at.S >= 0) {
      const last = places[at.S] as number;
      constant = last << 4;
      high ||= last >= 16;
    }
    if (row.vex && !high && size < 64) {
      const w = row.general ? Number(size === 8) : row.vexW;
      this.#vex(row, reg, second, bits, w, row.long ?? Number(size === 32));
      if (row.operands.length > 0) this.#modrm(reg, rm, 1);
    } else {
      if (!row.evex) throw new Error(`[emit-machine] ${row.name} cannot be written with these registers`);
      this.#evex(row, reg, second, bits, size, (Number(zero) << 7) | (Number(row.spread) << 4) | mask);
      const { unit } = row;
      this.#modrm(reg, rm, typeof unit === 'number' ? unit : size * shares[unit]);
    }
    if (row.constant !== 0) this.#bytes[this.#length++] = constant;
  }

  // `bits`: those of the register-or-memory field that prefixes hold, the lowest of which extends the base or the register.

  #vex({ map, prefix, opcode }: Row, reg: number, second: number, bits: number, w: number, long: number): void {
    const all = this.#bytes;
    const at = this.#length;
    const last = (w << 7) | ((~second & 15) << 3) | (long << 2) | prefix;
    const first = ((~reg >> 3) & 1) << 7;
    if (map === 1 && w === 0 && bits === 0) {
      all[at] = 0xc5;
      all[at + 1] = first | (last & 0x7f);
      all[at + 2] = opcode;
      this.#length = at + 3;
      return;
    }
    all[at] = 0xc4;
    all[at + 1] = first | ((~bits & 3) << 5) | map;
    all[at + 2] = last;
    all[at + 3] = opcode;
    this.#length = at + 4;
  }

  /** `masking`: a mask's register, in bit 4 whether one element is spread, in bit 7 whether what the mask leaves out becomes zero. */
  #evex(row: Row, reg: number, second: number, bits: number, size: number, masking: number): void {
    const long = size === 64 ? 2 : size === 32 ? 1 : 0;
    const all = this.#bytes;
    const at = this.#length;
    all[at] = 0x62;
    all[at + 1] = (((~reg >> 3) & 1) << 7) | ((~bits & 3) << 5) | (((~reg >> 4) & 1) << 4) | row.map;
    all[at + 2] = (row.evexW << 7) | ((~second & 15) << 3) | 4 | row.prefix;
    all[at + 3] = (long << 5) | (((~second >> 4) & 1) << 3) | masking;
    all[at + 4] = row.opcode;
    this.#length = at + 5;
  }

  #modrm(reg: number, rm: Place, unit: number): void {
    const r = (reg & 7) << 3;
    const all = this.#bytes;
    if (typeof rm === 'number') {
      all[this.#length++] = 0xc0 | r | (rm & 7);
      return;
    }
    const { base, index, scale, offset } = rm;
    if (base === poolBase) {
      all[this.#length++] = r | 5;
      this.#constants.push({ at: this.#length, offset, end: 0 });
      this.#open = true;
      this.#word(0, 4);
      return;
    }
    const withIndex = index >= 0 || (base & 7) === 4;
    const short = offset / unit;
    let mode = 2;
    if (offset === 0 && (base & 7) !== 5) mode = 0;
    else if (offset % unit === 0 && short >= -128 && short <= 127) mode = 1;
    all[this.#length++] = (mode << 6) | r | (withIndex ? 4 : base & 7);
    if (withIndex) all[this.#length++] = (Math.log2(scale) << 6) | ((index >= 0 ? index & 7 : 4) << 3) | (base & 7);
    if (mode === 1) all[this.#length++] = short;
    else if (mode === 2) this.#word(offset, 4);
  }

  /** The distance to a constant counts from here. */
  #endOfInstruction(): void {
    this.#constants[this.#constants.length - 1]!.end = this.#length;
    this.#open = false;
  }

  label(): number {
    this.#labels.push(-1);
    return this.#labels.length - 1;
  }

  bind(label: number): void {
    this.#labels[label] = this.#length;
  }

  /** Jumps to a label where the condition holds, always without one. */
  jump(label: number, condition: Condition | null = null): void {
    this.#makeRoom();
    if (condition === null) this.#byte(0xe9);
    else {
      this.#byte(0x0f);
      this.#byte(0x80 | conditions[condition]);
    }
    this.#jumps.push({ at: this.#length, label });
    this.#word(0, 4);
  }

  /** Pads with nops to a multiple of `bytes`. */
  align(bytes: number): void {
    let left = (bytes - (this.#length % bytes)) % bytes;
    while (left > 0) {
      const n = Math.min(left, nops.length);
      this.#makeRoom();
      for (const x of nops[n - 1]!) this.#byte(x);
      left -= n;
    }
  }

  /** The code with the constants behind it, at a multiple of 64 bytes. */
  finish(constants: Uint8Array): Uint8Array<ArrayBuffer> {
    const start = Math.ceil(this.#length / 64) * 64;
    const out = new Uint8Array(start + constants.length).fill(0xcc);
    out.set(this.#bytes.subarray(0, this.#length));
    out.set(constants, start);
    const view = new DataView(out.buffer);
    for (const { at, label } of this.#jumps) view.setInt32(at, this.#labels[label]! - at - 4, true);
    for (const { at, offset, end } of this.#constants) view.setInt32(at, start + offset - end, true);
    return out;
  }
}

const nops: readonly (readonly number[])[] = [
  [0x90],
  [0x66, 0x90],
  [0x0f, 0x1f, 0x00],
  [0x0f, 0x1f, 0x40, 0],
  [0x0f, 0x1f, 0x44, 0, 0],
  [0x66, 0x0f, 0x1f, 0x44, 0, 0],
  [0x0f, 0x1f, 0x80, 0, 0, 0, 0],
  [0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
];

/** Shares of a vector's bytes. */
const shares = { v: 1, h: 1 / 2, q: 1 / 4, e: 1 / 8 } as const;

/** The bits of index and base that prefixes hold. Constants have neither. */
function addressBits({ base, index }: Exclude<Place, number>): number {
  return (index < 0 ? 0 : ((index >> 3) & 1) << 1) | (base === poolBase ? 0 : (base >> 3) & 1);
}

/** True if a byte is in a register whose lowest byte has a name of its own. */
function needsRex({ operands }: Row, places: readonly Place[]): boolean {
  return operands.some(({ kind }, i) => {
    const p = places[i]!;
    return kind === 'b' && typeof p === 'number' && p >= 4 && p < 8;
  });
}

/**
 * Vectors of bool. With AVX-512 one mask register holds a bit per lane, whatever the width of the lanes; bits above the lanes are not defined. With AVX2
 * they are vectors whose lanes have all bits set or none, in the width of what was compared.
 */
import type { Reg } from '../code.ts';
import { isFloat, type Kind, widthOf } from '../target.ts';
import {
  type Context,
  extract,
  half,
  join,
  type Lowered,
  lowWords,
  makeParts,
  partBytes,
  partCount,
  splat,
  usedBytes,
} from './context.ts';
import type { Memory } from '../code.ts';
import { further } from '../builder.ts';

export type Comparison = 'LT' | 'LE' | 'EQ' | 'NE' | 'ORD' | 'UNORD';

export interface Masks {
  compare(kind: Kind, op: Comparison, a: readonly Reg[], b: readonly Reg[], lanes: number): Lowered;
  /** AND, OR, XOR; EQ is its own; NOT takes one. */
  logic(op: 'AND' | 'OR' | 'XOR' | 'EQ' | 'ANDNOT', a: Lowered, b: Lowered, lanes: number): Lowered;
  not(a: Lowered, lanes: number): Lowered;
  /** Lanes of `yes` where the mask is set, of `no` elsewhere; lanes have `width` bytes. */
  select(mask: Lowered, yes: readonly Reg[], no: readonly Reg[], lanes: number, width: 4 | 8): readonly Reg[];
  splat(bool: Reg, lanes: number): Lowered;
  constant(value: boolean, lanes: number): Lowered;
  gather(lanes: number, laneOf: (i: number) => Reg): Lowered;
  lane(mask: Lowered, lane: number): Reg;
  load(from: Memory, lanes: number): Lowered;
  store(to: Memory, mask: Lowered, lanes: number): void;
  /** A number that is not zero where some lane is set, or not set where `inverse`. */
  some(mask: Lowered, lanes: number, inverse: boolean): Reg;
}

const floatCodes: Readonly<Record<Comparison, number>> = { EQ: 0, LT: 1, LE: 2, UNORD: 3, NE: 4, ORD: 7 };

/** Parts of four bytes a lane to bytes in memory: the lowest of each lane. */
export function storeBytes(ctx: Context, to: Memory, parts: readonly Reg[], lanes: number, bytes: 1 | 2): void {
  const { b, target } = ctx;
  const used = usedBytes(ctx, lanes, 4);
  const perPart = used / 4;
  parts.forEach((part, p) => {
    const at = further(to, p * perPart * bytes);
    if (perPart >= 4 && target.isa === 'x64-v4') {
      b.ins(bytes === 1 ? 'vpmovdb' : 'vpmovdw', used, at, part);
      return;
    }
    const pattern = new Uint8Array(16).fill(0x80);
    for (let i = 0; i < 4; i++) for (let k = 0; k < bytes; k++) pattern[i * bytes + k] = i * 4 + k;
    const order = b.vector(pattern);
    for (let q = 0; q < Math.max(1, used / 16); q++) {
      const packed = b.op('vpshufb', 16, q === 0 ? part : half(ctx, part, used, true), order);
      const place = further(at, q * 4 * bytes);
      if (perPart === 2 && bytes === 1) b.ins('mov:word', 4, place, b.op('vmovd:get', 16, packed));
      else if (perPart === 2 || bytes === 1) b.ins('vmovd:get', 16, place, packed);
      else b.ins('vmovsd:store', 16, place, packed);
    }
  });
}

/** Bytes or words from memory as parts of four bytes a lane. */
export function loadBytes(ctx: Context, from: Memory, lanes: number, bytes: 1 | 2, signed: boolean): readonly Reg[] {
  const { b } = ctx;
  const key = `vpmov${signed ? 's' : 'z'}x${bytes === 1 ? 'bd' : 'wd'}`;
  const used = usedBytes(ctx, lanes, 4);
  return makeParts(ctx, lanes, 4, (p) => {
    if (used >= 16) return b.op(key, used, further(from, (p * used * bytes) / 4));
    const raw = bytes === 2 ? b.op('vmovd', 16, from) : b.op('vmovd', 16, b.op('movzx:word', 4, from));
    return b.op(key, 16, raw);
  }).parts;
}

/** Masks in mask registers. */
export class BitMasks implements Masks {
  readonly #ctx: Context;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  #perPart(lanes: number, width: 4 | 8): number {
    return usedBytes(this.#ctx, lanes, width) / width;
  }

  #combined(parts: readonly Reg[], perPart: number): Lowered {
    const { b } = this.#ctx;
    const all = parts.reduce((sum, k, p) => b.op('korq', 8, sum, b.op('kshiftlq', 8, k, p * perPart)));
    return { parts: [all], width: 4 };
  }

  #part(mask: Lowered, p: number, perPart: number): Reg {
    const k = mask.parts[0]!;
    return p === 0 ? k : this.#ctx.b.op('kshiftrq', 8, k, p * perPart);
  }

  compare(kind: Kind, op: Comparison, x: readonly Reg[], y: readonly Reg[], lanes: number): Lowered {
    const { b } = this.#ctx;
    const width = widthOf(kind);
    const bytes = partBytes(this.#ctx, lanes, width);
    const float = isFloat(kind);
    const key = float
      ? `vcmpp${width === 4 ? 's' : 'd'}:k`
      : `vpcmp${kind[0] === 'u' ? 'u' : ''}${width === 4 ? 'd' : 'q'}:k`;
    const code = floatCodes[op];
    // Parts of fewer bits than the register's are cleared above, but for the last.
    return this.#combined(
      x.map((a, p) => b.op(key, bytes, a, y[p]!, code)),
      this.#perPart(lanes, width),
    );
  }

  logic(op: 'AND' | 'OR' | 'XOR' | 'EQ' | 'ANDNOT', x: Lowered, y: Lowered): Lowered {
    const [a, c] = [x.parts[0]!, y.parts[0]!];
    const { b } = this.#ctx;
    // andn inverts its first operand.
    if (op === 'ANDNOT') return { parts: [b.op('kandnq', 8, c, a)], width: 4 };
    const key = { AND: 'kandq', OR: 'korq', XOR: 'kxorq', EQ: 'kxnorq' }[op];
    return { parts: [b.op(key, 8, a, c)], width: 4 };
  }

  not(x: Lowered): Lowered {
    return { parts: [this.#ctx.b.op('knotq', 8, x.parts[0]!)], width: 4 };
  }

  select(mask: Lowered, yes: readonly Reg[], no: readonly Reg[], lanes: number, width: 4 | 8): readonly Reg[] {
    const { b } = this.#ctx;
    const bytes = partBytes(this.#ctx, lanes, width);
    const perPart = this.#perPart(lanes, width);
    return yes.map((y, p) => {
      const d = b.reg('v');
      b.masked(width === 4 ? 'vblendmps' : 'vblendmpd', bytes, this.#part(mask, p, perPart), false, d, no[p]!, y);
      return d;
    });
  }

  splat(bool: Reg): Lowered {
    const { b } = this.#ctx;
    const r = b.copy(bool);
    b.ins('neg', 8, r);
    const k = b.op('kmovd', 8, r);
    return { parts: [b.op('korq', 8, k, b.op('kshiftlq', 8, k, 32))], width: 4 };
  }

  constant(value: boolean): Lowered {
    const { b } = this.#ctx;
    return this.splat(b.integer(Number(value)));
  }

  gather(lanes: number, laneOf: (i: number) => Reg): Lowered {
    const { b } = this.#ctx;
    let sum: Reg | null = null;
    for (let i = 0; i < lanes; i++) {
      const bit = b.copy(laneOf(i));
      if (i > 0) b.ins('shl', 8, bit, i);
      sum = sum === null ? bit : b.two('or', 8, sum, bit);
    }
    const low = b.op('kmovd', 8, sum!);
    if (lanes <= 32) return { parts: [low], width: 4 };
    const upper = b.copy(sum!);
    b.ins('shr', 8, upper, 32);
    return { parts: [b.op('korq', 8, low, b.op('kshiftlq', 8, b.op('kmovd', 8, upper), 32))], width: 4 };
  }

  lane(mask: Lowered, lane: number): Reg {
    const { b } = this.#ctx;
    const bits = b.op('kmovd:get', 8, this.#part(mask, 1, lane));
    return b.two('and:constant', 4, bits, 1);
  }

  load(from: Memory, lanes: number): Lowered {
    const { b } = this.#ctx;
    const used = usedBytes(this.#ctx, lanes, 4);
    const ints = loadBytes(this.#ctx, from, lanes, 1, false);
    return this.#combined(
      ints.map((v) => b.op('vptestmd', Math.max(16, used), v, v)),
      used / 4,
    );
  }

  store(to: Memory, mask: Lowered, lanes: number): void {
    const { b } = this.#ctx;
    const bytes = partBytes(this.#ctx, lanes, 4);
    const perPart = this.#perPart(lanes, 4);
    const { parts } = makeParts(this.#ctx, lanes, 4, (p) =>
      b.op('vpsrld', bytes, b.op('vpmovm2d', bytes, this.#part(mask, p, perPart)), 31),
    );
    storeBytes(this.#ctx, to, parts, lanes, 1);
  }

  some(mask: Lowered, lanes: number, inverse: boolean): Reg {
    const { b } = this.#ctx;
    const k = inverse ? this.not(mask).parts[0]! : mask.parts[0]!;
    if (lanes === 32) return b.op('kmovd:get', 8, k);
    if (lanes > 32) return b.two('or', 4, b.op('kmovd:get', 8, k), b.op('kmovd:get', 8, b.op('kshiftrq', 8, k, 32)));
    return b.two('and:constant', 4, b.op('kmovd:get', 8, k), 2 ** lanes - 1);
  }
}

/** Masks in vectors. */
export class LaneMasks implements Masks {
  readonly #ctx: Context;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  compare(kind: Kind, op: Comparison, x: readonly Reg[], y: readonly Reg[], lanes: number): Lowered {
    const { b } = this.#ctx;
    const width = widthOf(kind);
    const bytes = partBytes(this.#ctx, lanes, width);
    if (isFloat(kind)) {
      const key = width === 4 ? 'vcmpps' : 'vcmppd';
      return { parts: x.map((a, p) => b.op(key, bytes, a, y[p]!, floatCodes[op])), width };
    }
    const letter = width === 4 ? 'd' : 'q';
    const unsigned = kind[0] === 'u';
    // Unsigned numbers compare as signed ones with the highest bit inverted.
    const sign = unsigned ? b.bits(1n << BigInt(width * 8 - 1), width) : null;
    const ordered = (v: Reg): Reg => (sign === null ? v : b.op('vxorps', bytes, v, sign));
    const one = (a: Reg, c: Reg): Reg => {
      if (op === 'EQ' || op === 'NE') return b.op(`vpcmpeq${letter}`, bytes, a, c);
      const [p, q] = [ordered(a), ordered(c)];
      return op === 'LT' ? b.op(`vpcmpgt${letter}`, bytes, q, p) : b.op(`vpcmpgt${letter}`, bytes, p, q);
    };
    const made: Lowered = { parts: x.map((a, p) => one(a, y[p]!)), width };
    return op === 'NE' || op === 'LE' ? this.not(made, lanes) : made;
  }

  /** The parts of a mask for lanes of this width. */
  #ofWidth(mask: Lowered, lanes: number, width: 4 | 8): readonly Reg[] {
    if (mask.width === width) return mask.parts;
    const ctx = this.#ctx;
    const full = ctx.target.vectorBytes;
    if (width === 8) {
      const bytes = partBytes(ctx, lanes, 8);
      const cut = partCount(ctx, lanes, 8) > 1;
      const from = (p: number): Reg => (cut ? half(ctx, mask.parts[p >> 1]!, full, (p & 1) === 1) : mask.parts[0]!);
      return makeParts(ctx, lanes, 8, (p) => ctx.b.op('vpmovsxdq', bytes, from(p))).parts;
    }
    const bytes = partBytes(ctx, lanes, 8);
    if (mask.parts.length === 1) return [lowWords(ctx, mask.parts[0]!, bytes)];
    return makeParts(ctx, lanes, 4, (p) =>
      join(ctx, lowWords(ctx, mask.parts[2 * p]!, full), lowWords(ctx, mask.parts[2 * p + 1]!, full), full),
    ).parts;
  }

  logic(op: 'AND' | 'OR' | 'XOR' | 'EQ' | 'ANDNOT', x: Lowered, y: Lowered, lanes: number): Lowered {
    const { b } = this.#ctx;
    const { width } = x;
    const bytes = partBytes(this.#ctx, lanes, width);
    const other = this.#ofWidth(y, lanes, width);
    const key = { AND: 'vandps', OR: 'vorps', XOR: 'vxorps', EQ: 'vxorps', ANDNOT: 'vandnps' }[op];
    // andn inverts its first operand.
    const make = (a: Reg, c: Reg): Reg => (op === 'ANDNOT' ? b.op(key, bytes, c, a) : b.op(key, bytes, a, c));
    const made: Lowered = { parts: x.parts.map((a, p) => make(a, other[p]!)), width };
    return op === 'EQ' ? this.not(made, lanes) : made;
  }

  not({ parts, width }: Lowered, lanes: number): Lowered {
    const { b } = this.#ctx;
    const bytes = partBytes(this.#ctx, lanes, width);
    const ones = b.bits(-1, 4);
    return { parts: parts.map((a) => b.op('vxorps', bytes, a, ones)), width };
  }

  select(mask: Lowered, yes: readonly Reg[], no: readonly Reg[], lanes: number, width: 4 | 8): readonly Reg[] {
    const { b } = this.#ctx;
    const bytes = partBytes(this.#ctx, lanes, width);
    const parts = this.#ofWidth(mask, lanes, width);
    return yes.map((y, p) => b.op('vblendvps', bytes, no[p]!, y, parts[p]!));
  }

  splat(bool: Reg, lanes: number): Lowered {
    const { b } = this.#ctx;
    const r = b.copy(bool);
    b.ins('neg', 4, r);
    const one = splat(this.#ctx, 'i32', r, partBytes(this.#ctx, lanes, 4));
    return makeParts(this.#ctx, lanes, 4, () => one);
  }

  constant(value: boolean, lanes: number): Lowered {
    const one = this.#ctx.b.bits(value ? -1 : 0, 4);
    return makeParts(this.#ctx, lanes, 4, () => one);
  }

  gather(lanes: number, laneOf: (i: number) => Reg): Lowered {
    const { b } = this.#ctx;
    const ctx = this.#ctx;
    const used = usedBytes(ctx, lanes, 4);
    const inVector = (i: number): Reg => {
      const r = b.copy(laneOf(i));
      b.ins('neg', 4, r);
      return b.op('vmovd', 16, r);
    };
    const make = (at: number, bytes: number): Reg => {
      if (bytes > 16) return join(ctx, make(at, bytes / 2), make(at + bytes / 8, bytes / 2), bytes);
      let v = inVector(at);
      for (let i = 1; i < bytes / 4; i++) v = b.op('vinsertps', 16, v, inVector(at + i), i << 4);
      return v;
    };
    return makeParts(ctx, lanes, 4, (p) => make((p * used) / 4, used));
  }

  lane(mask: Lowered, lane: number): Reg {
    const { b } = this.#ctx;
    const bits = extract(this.#ctx, mask.width === 8 ? 'i64' : 'i32', mask, lane);
    return b.two('and:constant', 4, bits, 1);
  }

  load(from: Memory, lanes: number): Lowered {
    const { b } = this.#ctx;
    const bytes = partBytes(this.#ctx, lanes, 4);
    const zero = b.bits(0, 4);
    const parts = loadBytes(this.#ctx, from, lanes, 1, false).map((v) => b.op('vpsubd', bytes, zero, v));
    return { parts, width: 4 };
  }

  store(to: Memory, mask: Lowered, lanes: number): void {
    const { b } = this.#ctx;
    const bytes = partBytes(this.#ctx, lanes, 4);
    const parts = this.#ofWidth(mask, lanes, 4).map((v) => b.op('vpsrld', bytes, v, 31));
    storeBytes(this.#ctx, to, parts, lanes, 1);
  }

  some(mask: Lowered, lanes: number, inverse: boolean): Reg {
    const { b } = this.#ctx;
    const bytes = partBytes(this.#ctx, lanes, mask.width);
    const full = 2 ** (usedBytes(this.#ctx, lanes, mask.width) / 4) - 1;
    return mask.parts
      .map((v) => {
        const bits = b.op('vmovmskps', bytes, v);
        const cut = b.two('and:constant', 4, bits, full);
        return inverse ? b.two('xor:constant', 4, cut, full) : cut;
      })
      .reduce((x, y) => b.two('or', 4, x, y));
  }
}

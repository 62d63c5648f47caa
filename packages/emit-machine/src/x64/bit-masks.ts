/** Vectors of bool with AVX-512: one mask register holds a bit per lane, whatever the width of the lanes; bits above the lanes are undefined. */
import { further, type Lowered, type Memory, type Reg } from '../form/code.ts';
import { partBytes, usedBytes } from '../form/vector-parts.ts';
import type { Context } from '../form/machine.ts';
import type { Comparison, Masks } from '../form/masks.ts';
import { isFloat, type Kind, widthOf } from '../target.ts';
import { access } from './access.ts';

/** Comparisons as numbers in instructions. */
export const comparisonCodes: Readonly<Record<Comparison, number>> = { EQ: 0, LT: 1, LE: 2, UNORD: 3, NE: 4, ORD: 7 };

/** Masks in mask registers. */
export class BitMasks implements Masks {
  readonly inBits = true;
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
    const code = comparisonCodes[op];
    // Parts with fewer bits than the register are cleared above, except the last.
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
    const { b, target } = this.#ctx;
    const bytes = Math.min(lanes, target.vectorBytes);
    const parts: Reg[] = [];
    for (let p = 0; p < lanes; p += bytes) {
      const v = access.part(b, bytes, further(from, p));
      parts.push(b.op('vptestmb', Math.max(16, bytes), v, v));
    }
    return this.#combined(parts, bytes);
  }

  store(to: Memory, mask: Lowered, lanes: number): void {
    const { b, target } = this.#ctx;
    const bytes = Math.min(lanes, target.vectorBytes);
    const used = Math.max(16, bytes);
    for (let p = 0; p * bytes < lanes; p++) {
      // Lanes of -1 become 1.
      const ones = b.op('vpabsb', used, b.op('vpmovm2b', used, this.#part(mask, p, bytes)));
      access.storePart(b, bytes, further(to, p * bytes), ones);
    }
  }

  some(mask: Lowered, lanes: number, inverse: boolean): Reg {
    const { b } = this.#ctx;
    const k = inverse ? this.not(mask).parts[0]! : mask.parts[0]!;
    if (lanes === 32) return b.op('kmovd:get', 8, k);
    if (lanes > 32) return b.two('or', 4, b.op('kmovd:get', 8, k), b.op('kmovd:get', 8, b.op('kshiftrq', 8, k, 32)));
    return b.two('and:constant', 4, b.op('kmovd:get', 8, k), 2 ** lanes - 1);
  }
}

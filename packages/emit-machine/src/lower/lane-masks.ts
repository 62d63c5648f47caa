/** Vectors of bool in vector registers: lanes have all bits set or none, in the width of the compared lanes. For machines without mask registers. */
import type { Builder } from '../form/builder.ts';
import type { Memory, Reg, Lowered } from '../form/code.ts';
import type { Make, Context } from '../form/machine.ts';
import { type Kind, widthOf } from '../target.ts';
import { makeParts, partBytes, partCount } from '../form/vector-parts.ts';
import type { Comparison, Masks } from '../form/masks.ts';

/** A machine's instructions on such lanes. */
export interface LaneForms {
  /** Compares two vectors; with `inverse` the result must be inverted afterwards. */
  compare(b: Builder, kind: Kind, op: Comparison, bytes: number): { readonly make: Make; readonly inverse: boolean };
  logic(b: Builder, op: 'AND' | 'OR' | 'XOR' | 'ANDNOT', bytes: number, x: Reg, y: Reg): Reg;
  not(b: Builder, bytes: number): Make;
  select(b: Builder, bytes: number, mask: Reg, yes: Reg, no: Reg): Reg;
  /** Lanes of four bytes to lanes of eight. */
  widen(b: Builder, bytes: number, mask: Reg): Reg;
  /** A bool as a 32-bit number, all bits set or none; and the lowest bit of one. */
  negated(b: Builder, bool: Reg): Reg;
  lowest(b: Builder, bits: Reg): Reg;
  /** Lanes of 0 and 1 to masks, and back. */
  fromNumbers(b: Builder, bytes: number): Make;
  toNumbers(b: Builder, bytes: number, mask: Reg): Reg;
  some(ctx: Context, mask: Lowered, lanes: number, inverse: boolean): Reg;
}

export class LaneMasks implements Masks {
  readonly inBits = false;
  readonly #ctx: Context;
  readonly #forms: LaneForms;

  constructor(ctx: Context, forms: LaneForms) {
    this.#ctx = ctx;
    this.#forms = forms;
  }

  compare(kind: Kind, op: Comparison, x: readonly Reg[], y: readonly Reg[], lanes: number): Lowered {
    const width = widthOf(kind);
    const { make, inverse } = this.#forms.compare(this.#ctx.b, kind, op, partBytes(this.#ctx, lanes, width));
    const made: Lowered = { parts: x.map((a, p) => make([a, y[p]!])), width };
    return inverse ? this.not(made, lanes) : made;
  }

  /** The parts of a mask for lanes of this width. */
  #ofWidth(mask: Lowered, lanes: number, width: 4 | 8): readonly Reg[] {
    if (mask.width === width) return mask.parts;
    const ctx = this.#ctx;
    const { half, join, lowWords } = ctx.machine.lanes;
    const full = ctx.target.vectorBytes;
    const bytes = partBytes(ctx, lanes, 8);
    if (width === 8) {
      const cut = partCount(ctx, lanes, 8) > 1;
      const from = (p: number): Reg => (cut ? half(ctx, mask.parts[p >> 1]!, full, (p & 1) === 1) : mask.parts[0]!);
      return makeParts(ctx, lanes, 8, (p) => this.#forms.widen(ctx.b, bytes, from(p))).parts;
    }
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
    const how = op === 'EQ' ? 'XOR' : op;
    const made: Lowered = { parts: x.parts.map((a, p) => this.#forms.logic(b, how, bytes, a, other[p]!)), width };
    return op === 'EQ' ? this.not(made, lanes) : made;
  }

  not({ parts, width }: Lowered, lanes: number): Lowered {
    const make = this.#forms.not(this.#ctx.b, partBytes(this.#ctx, lanes, width));
    return { parts: parts.map((a) => make([a])), width };
  }

  select(mask: Lowered, yes: readonly Reg[], no: readonly Reg[], lanes: number, width: 4 | 8): readonly Reg[] {
    const { b } = this.#ctx;
    const bytes = partBytes(this.#ctx, lanes, width);
    const parts = this.#ofWidth(mask, lanes, width);
    return yes.map((y, p) => this.#forms.select(b, bytes, parts[p]!, y, no[p]!));
  }

  splat(bool: Reg, lanes: number): Lowered {
    const ctx = this.#ctx;
    const all = this.#forms.negated(ctx.b, bool);
    const one = ctx.machine.lanes.splat(ctx, 'i32', all, partBytes(ctx, lanes, 4));
    return makeParts(ctx, lanes, 4, () => one);
  }

  constant(value: boolean, lanes: number): Lowered {
    const one = this.#ctx.b.bits(value ? -1 : 0, 4);
    return makeParts(this.#ctx, lanes, 4, () => one);
  }

  gather(lanes: number, laneOf: (i: number) => Reg): Lowered {
    const ctx = this.#ctx;
    return ctx.machine.lanes.gather(ctx, 'i32', lanes, (i) => this.#forms.negated(ctx.b, laneOf(i)));
  }

  lane(mask: Lowered, lane: number): Reg {
    const ctx = this.#ctx;
    const bits = ctx.machine.lanes.extract(ctx, mask.width === 8 ? 'i64' : 'i32', mask, lane);
    return this.#forms.lowest(ctx.b, bits);
  }

  load(from: Memory, lanes: number): Lowered {
    const ctx = this.#ctx;
    const make = this.#forms.fromNumbers(ctx.b, partBytes(ctx, lanes, 4));
    return { parts: ctx.machine.access.small(ctx, from, lanes, 1, false).map((v) => make([v])), width: 4 };
  }

  store(to: Memory, mask: Lowered, lanes: number): void {
    const ctx = this.#ctx;
    const bytes = partBytes(ctx, lanes, 4);
    const parts = this.#ofWidth(mask, lanes, 4).map((v) => this.#forms.toNumbers(ctx.b, bytes, v));
    ctx.machine.access.storeSmall(ctx, to, parts, lanes, 1);
  }

  some(mask: Lowered, lanes: number, inverse: boolean): Reg {
    return this.#forms.some(this.#ctx, mask, lanes, inverse);
  }
}

/** Casts between numbers in arm64: its instructions saturate, give 0 for NaN and round once, as the contract says. */
import type { Builder } from '../form/builder.ts';
import type { Reg } from '../form/code.ts';
import type { Context, Casts, Halves } from '../form/machine.ts';
import { isFloat, type Kind, refuse, widthOf } from '../target.ts';
import { compareFloats, flag } from './scalars.ts';

const letter = (kind: Kind): 's' | 'u' => (kind[0] === 'i' ? 's' : 'u');

function castScalar({ b }: Context, from: Kind, to: Kind, x: Reg): Reg {
  if (to === 'bool') {
    if (isFloat(from)) return compareFloats(b, 'NE', from, x, b.bits(0, widthOf(from)));
    b.compare(widthOf(from), x, 0);
    return flag(b, 'ne');
  }
  if (isFloat(from) && isFloat(to)) return b.op(from === 'f32' ? 'fcvt:sd' : 'fcvt:ds', 16, x);
  if (isFloat(from)) return b.op(`fcvtz${letter(to)}:${from === 'f32' ? 's' : 'd'}`, widthOf(to), x);
  if (isFloat(to)) return b.op(`${letter(from)}cvtf:${to === 'f32' ? 's' : 'd'}`, widthOf(from), x);
  // Integers: wrapped, or extended by sign.
  if (widthOf(to) === 4) return widthOf(from) === 8 ? b.op('mov', 4, x) : x;
  return from === 'i32' ? b.op('sxtw', 8, x) : x;
}

function sameWidth({ b }: Context, from: Kind, to: Kind, v: Reg): Reg | null {
  if (isFloat(from) === isFloat(to)) return isFloat(from) ? refuse(`no cast from ${from} to ${to}`) : v;
  const lanes = widthOf(to) === 4 ? '4s' : '2d';
  return b.op(isFloat(to) ? `${letter(from)}cvtf:${lanes}` : `fcvtz${letter(to)}:${lanes}`, 16, v);
}

function widen(ctx: Context, from: Kind, to: Kind, v: Reg): Reg | null {
  const { b } = ctx;
  const wide = isFloat(from) ? b.op('fcvtl:2d', 16, v) : b.op(`${letter(from)}xtl:2d`, 16, v);
  if (isFloat(from) === isFloat(to)) return wide;
  return isFloat(from) ? sameWidth(ctx, 'f64', to, wide) : sameWidth(ctx, from === 'i32' ? 'i64' : 'u64', to, wide);
}

function narrow(ctx: Context, from: Kind, to: Kind, v: Reg): Reg | null {
  const { b } = ctx;
  if (isFloat(from) && isFloat(to)) return b.op('fcvtn:2s', 16, v);
  if (!isFloat(from) && !isFloat(to)) return b.op('xtn:2s', 16, v);
  // By way of float64 integers of 64 bits would be rounded twice.
  if (isFloat(to)) return null;
  const s = letter(to);
  return b.op(`${s}qxtn:2s`, 16, b.op(`fcvtz${s}:2d`, 16, v));
}

function wrap(b: Builder, x: Reg, bits: 8 | 16, signed: boolean): Reg {
  return b.op(`${signed ? 's' : 'u'}xt${bits === 8 ? 'b' : 'h'}`, 4, x);
}

export const casts: Casts = {
  scalar: castScalar,
  same: sameWidth,
  widen,
  narrow,
  wrap,
  wrapLanes: (b, v, bits, signed) =>
    b.op(`${signed ? 's' : 'u'}shr:4s`, 16, b.op('shl:4s', 16, v, 32 - bits), 32 - bits),
  bits(b, to, x) {
    if (widthOf(to) === 8) return b.op(isFloat(to) ? 'fmov:dx' : 'fmov:xd', 16, x);
    return b.op(isFloat(to) ? 'fmov:sw' : 'fmov:ws', 16, x);
  },
};

export const halves: Halves = {
  widen: (b, packed) => b.op('fcvtl:4s', 16, packed),
  narrow: (b, v) => b.op('fcvtn:4h', 16, v),
  pack: ({ b }, v) => b.op('xtn:4h', 16, v),
  unpack: (b, packed) => b.op('uxtl:4s', 16, packed),
};

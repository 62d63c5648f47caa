/** Casts between numbers in x86-64. Float to integer saturates and NaN gives 0; integers wrap. */
import type { Reg } from '../form/code.ts';
import type { Context, Casts, Halves } from '../form/machine.ts';
import { isFloat, type Kind, refuse, widthOf } from '../target.ts';
import { withoutNaN } from './floats.ts';
import { compareFloats, flag } from './scalars.ts';

function sameWidth(ctx: Context, from: Kind, to: Kind, v: Reg, bytes: number, lanes: number): Reg | null {
  const { b, masks, target } = ctx;
  const v4 = target.isa === 'x64-v4';
  const choose = (kind: Kind, op: 'LE' | 'ORD', x: Reg, y: Reg, yes: Reg, no: Reg): Reg =>
    masks.select(masks.compare(kind, op, [x], [y], lanes), [yes], [no], lanes, widthOf(kind))[0]!;
  switch (`${from}>${to}`) {
    case 'i32>u32':
    case 'u32>i32':
    case 'i64>u64':
    case 'u64>i64':
      return v;
    case 'i32>f32':
      return b.op('vcvtdq2ps', bytes, v);
    case 'u32>f32': {
      if (v4) return b.op('vcvtudq2ps', bytes, v);
      // Both halves are exact, their sum is rounded once.
      const upper = b.op('vmulps', bytes, b.op('vcvtdq2ps', bytes, b.op('vpsrld', bytes, v, 16)), b.float(65536, 4));
      return b.op('vaddps', bytes, upper, b.op('vcvtdq2ps', bytes, b.op('vandps', bytes, v, b.bits(0xffff, 4))));
    }
    case 'f32>i32': {
      const cut = b.op('vcvttps2dq', bytes, v);
      const large = choose('f32', 'LE', b.float(2 ** 31, 4), v, b.bits(0x7fffffff, 4), cut);
      return choose('f32', 'ORD', v, v, large, b.bits(0, 4));
    }
    case 'f32>u32': {
      const positive = b.op('vmaxps', bytes, v, b.bits(0, 4));
      if (v4) return b.op('vcvttps2udq', bytes, positive);
      const limit = b.float(2 ** 31, 4);
      const above = b.op('vcvttps2dq', bytes, b.op('vsubps', bytes, positive, limit));
      const large = b.op('vxorps', bytes, above, b.bits(0x80000000, 4));
      const all = choose('f32', 'LE', limit, positive, large, b.op('vcvttps2dq', bytes, positive));
      return choose('f32', 'LE', b.float(2 ** 32, 4), positive, b.bits(-1, 4), all);
    }
    case 'i64>f64':
      return v4 ? b.op('vcvtqq2pd', bytes, v) : null;
    case 'u64>f64':
      return v4 ? b.op('vcvtuqq2pd', bytes, v) : null;
    case 'f64>i64': {
      if (!v4) return null;
      const cut = b.op('vcvttpd2qq', bytes, v);
      const large = choose('f64', 'LE', b.float(2 ** 63, 8), v, b.bits(2n ** 63n - 1n, 8), cut);
      return choose('f64', 'ORD', v, v, large, b.bits(0, 8));
    }
    case 'f64>u64':
      return v4 ? b.op('vcvttpd2uqq', bytes, b.op('vmaxpd', bytes, v, b.bits(0, 8))) : null;
    default:
      return refuse(`no cast from ${from} to ${to}`);
  }
}

function widen(ctx: Context, from: Kind, to: Kind, v: Reg, bytes: number, lanes: number): Reg | null {
  const { b, target } = ctx;
  const v4 = target.isa === 'x64-v4';
  switch (`${from}>${to}`) {
    case 'f32>f64':
      return b.op('vcvtps2pd', bytes, v);
    case 'i32>f64':
      return b.op('vcvtdq2pd', bytes, v);
    case 'u32>f64': {
      if (v4) return b.op('vcvtudq2pd', bytes, v);
      // The bits of 2^52 + x.
      const magic = b.float(2 ** 52, 8);
      return b.op('vsubpd', bytes, b.op('vorps', bytes, b.op('vpmovzxdq', bytes, v), magic), magic);
    }
    case 'i32>i64':
    case 'i32>u64':
      return b.op('vpmovsxdq', bytes, v);
    case 'u32>i64':
    case 'u32>u64':
      return b.op('vpmovzxdq', bytes, v);
    case 'f32>i64':
    case 'f32>u64':
      return v4 ? sameWidth(ctx, 'f64', to, b.op('vcvtps2pd', bytes, v), bytes, lanes) : null;
    default:
      return refuse(`no cast from ${from} to ${to}`);
  }
}

function narrow(ctx: Context, from: Kind, to: Kind, v: Reg, bytes: number, lanes: number): Reg | null {
  const { b, target } = ctx;
  const v4 = target.isa === 'x64-v4';
  switch (`${from}>${to}`) {
    case 'f64>f32':
      return b.op('vcvtpd2ps', bytes, v);
    case 'f64>i32': {
      const number = withoutNaN(ctx, 'f64', v, lanes);
      const within = b.op(
        'vmaxpd',
        bytes,
        b.float(-(2 ** 31), 8),
        b.op('vminpd', bytes, b.float(2 ** 31 - 1, 8), number),
      );
      return b.op('vcvttpd2dq', bytes, within);
    }
    case 'f64>u32': {
      const positive = b.op('vmaxpd', bytes, v, b.bits(0, 8));
      const within = b.op('vminpd', bytes, positive, b.float(2 ** 32 - 1, 8));
      if (v4) return b.op('vcvttpd2udq', bytes, within);
      // A whole number below 2^31 after subtracting 2^31.
      const whole = b.op('vroundpd', bytes, within, 11);
      const signed = b.op('vcvttpd2dq', bytes, b.op('vsubpd', bytes, whole, b.float(2 ** 31, 8)));
      return b.op('vxorps', 16, signed, b.bits(0x80000000, 4));
    }
    case 'i64>i32':
    case 'i64>u32':
    case 'u64>i32':
    case 'u64>u32':
      return ctx.machine.lanes.lowWords(ctx, v, bytes);
    case 'i64>f32':
      return v4 ? b.op('vcvtqq2ps', bytes, v) : null;
    case 'u64>f32':
      return v4 ? b.op('vcvtuqq2ps', bytes, v) : null;
    default:
      return refuse(`no cast from ${from} to ${to}`);
  }
}

function castScalar(ctx: Context, from: Kind, to: Kind, x: Reg): Reg {
  const { b } = ctx;
  if (to === 'bool') {
    if (isFloat(from)) return compareFloats(ctx, 'NE', from, x, b.bits(0, widthOf(from)));
    b.ins('test', widthOf(from), x, x);
    return flag(ctx, 'ne');
  }
  if (isFloat(from)) return isFloat(to) ? floatToFloat(ctx, from, x) : floatToInteger(ctx, from, to, x);
  if (isFloat(to)) return integerToFloat(ctx, from, to, x);
  // Integers: wrapped, or extended by sign.
  if (widthOf(to) === 4) return widthOf(from) === 8 ? b.op('mov', 4, x) : x;
  return from === 'i32' ? b.op('movsxd', 8, x) : x;
}

function floatToFloat({ b }: Context, from: Kind, x: Reg): Reg {
  return b.op(from === 'f32' ? 'vcvtss2sd' : 'vcvtsd2ss', 16, x, x);
}

const limits: Readonly<Record<string, readonly [low: number, high: number]>> = {
  i32: [-(2 ** 31), 2 ** 31 - 1],
  u32: [0, 2 ** 32 - 1],
};

function floatToInteger(ctx: Context, from: Kind, to: Kind, given: Reg): Reg {
  const { b } = ctx;
  const x = from === 'f32' ? floatToFloat(ctx, from, given) : given;
  const range = limits[to];
  if (range !== undefined) {
    // The limits leave NaN, whose lower 32 bits become zeros.
    const within = b.op('vmaxsd', 16, b.float(range[0], 8), b.op('vminsd', 16, b.float(range[1], 8), x));
    return b.op('mov', 4, b.op('vcvttsd2si:long', 8, within));
  }
  const limit = b.float(2 ** 63, 8);
  const zero = b.integer(0);
  if (to === 'i64') {
    const most = b.integer(2n ** 63n - 1n, 8);
    const d = b.copy(b.op('vcvttsd2si:long', 8, x));
    b.ins('vucomisd', 16, x, limit);
    b.ins('cmovae', 8, d, most);
    // Unordered sets the flag of 'below' too.
    b.ins('vucomisd', 16, x, x);
    b.ins('cmovp', 8, d, zero);
    return d;
  }
  const positive = b.op('vmaxsd', 16, x, b.bits(0, 8));
  const d = b.copy(b.op('vcvttsd2si:long', 8, positive));
  const above = b.two(
    'xor',
    8,
    b.op('vcvttsd2si:long', 8, b.op('vsubsd', 16, positive, limit)),
    b.integer(2n ** 63n, 8),
  );
  const most = b.integer(-1, 8);
  b.ins('vucomisd', 16, positive, limit);
  b.ins('cmovae', 8, d, above);
  b.ins('vucomisd', 16, positive, b.float(2 ** 64, 8));
  b.ins('cmovae', 8, d, most);
  return d;
}

function integerToFloat(ctx: Context, from: Kind, to: Kind, x: Reg): Reg {
  const { b } = ctx;
  const s = to === 'f32' ? 's' : 'd';
  // The other register operand does not matter: its upper lanes are not used.
  const zero = b.bits(0, 4);
  if (from === 'i32') return b.op(`vcvtsi2s${s}`, 16, zero, x);
  if (from !== 'u64') return b.op(`vcvtsi2s${s}:long`, 16, zero, x);
  // Halves a number with the highest bit set, keeping its lowest bit for rounding, and doubles the result.
  const halved = b.two('shr', 8, x, 1);
  const odd = b.two('and:constant', 8, x, 1);
  const t = b.copy(b.two('or', 8, halved, odd));
  b.ins('test', 8, x, x);
  b.ins('cmovns', 8, t, x);
  const f = b.op(`vcvtsi2s${s}:long`, 16, zero, t);
  const twice = b.op(`vadds${s}`, 16, f, f);
  const all = b.two('sar', 8, x, 63);
  const negative = b.two('and:constant', 4, b.op('mov', 4, all), 1);
  const mask = b.copy(negative);
  b.ins('neg', 8, mask);
  if (ctx.target.isa === 'x64-v4') {
    const d = b.reg('v');
    b.masked(to === 'f32' ? 'vblendmps' : 'vblendmpd', 16, b.op('kmovd', 8, negative), false, d, f, twice);
    return d;
  }
  return b.op('vblendvps', 16, f, twice, b.op('vmovq', 16, mask));
}

export const casts: Casts = {
  scalar: castScalar,
  same: sameWidth,
  widen,
  narrow,
  wrap: (b, x, bits, signed) => b.op(`mov${signed ? 's' : 'z'}x:${bits === 8 ? 'byte' : 'word'}`, 4, x),
  wrapLanes(b, v, bits, signed, bytes) {
    const by = 32 - bits;
    return b.op(signed ? 'vpsrad' : 'vpsrld', bytes, b.op('vpslld', bytes, v, by), by);
  },
  bits(b, to, x) {
    const key = widthOf(to) === 8 ? 'vmovq' : 'vmovd';
    return isFloat(to) ? b.op(key, 16, x) : b.op(`${key}:get`, 16, x);
  },
};

export const halves: Halves = {
  widen: (b, packed, bytes) => b.op('vcvtph2ps', bytes, packed),
  narrow: (b, v, bytes) => b.op('vcvtps2ph', bytes, v, 0),
  pack(ctx, v, bytes) {
    const { b, machine, target } = ctx;
    if (target.isa === 'x64-v4') return b.op('vpmovdw', bytes, v);
    return b.op('vpackusdw', 16, v, bytes === 16 ? v : machine.lanes.half(ctx, v, bytes, true));
  },
  unpack: (b, packed, bytes) => b.op('vpmovzxwd', bytes, packed),
};

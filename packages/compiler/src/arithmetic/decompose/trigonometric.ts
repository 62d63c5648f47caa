/**
 * sin, cos, tan and their inverses in arithmetic.
 *
 * First angles modulo a quarter turn, exactly, over the whole range. An angle is multiplied by pieces of 2/pi short enough that every product is
 * exact. Multiples of four quarter turns are dropped from each product (M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric
 * functions", SIGNUM Newsletter 18(1), 1983). Sums start with the largest piece: cancellation is exact, and the remainder rounds once.
 */
import type { KNode } from '../../ir/ir.ts';
import { highOf, lowOf } from '../../ir/node.ts';
import type { Coefficients, FloatMath, Math32, Math64 } from '../float-math.ts';
import { choose, headOf, isNegative, signOf, wholeOf, withSign } from './parts.ts';

/** The binary digits of 2/pi. Computed with 1500-bit arithmetic. */
// biome-ignore format: one number
const digits = BigInt(
  '0xa2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484' +
  'e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b' +
  '3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d',
);
const digitCount = 1280;

/**
 * The digits number first .. first + count - 1 after the point, as an integer. Digits before the point are zero, so `first`
 * may be negative.
 */
function twoOverPiDigits(first: number, count: number): number {
  const last = first + count - 1;
  return Number((digits >> BigInt(digitCount - last)) & ((1n << BigInt(count)) - 1n));
}

/** An angle a >= 0 as quarter turns, an int32 of which the low two bits count, and a rest in radians within about pi/4. */
export interface Angle {
  readonly quarter: KNode;
  readonly high: KNode;
  readonly low: KNode;
}

/** An angle as quarter turns and a rest, both numbers. */
export interface Turns {
  readonly quarter: KNode;
  readonly rest: KNode;
}

/** p less a multiple of 4. */
function modulo4(w: FloatMath, p: KNode): KNode {
  return w.sub(p, w.mul(w.nearest(w.mul(p, 0.25)), 4));
}

/** The same for |p| < 2^53: sums near 2^54 are multiples of 4. */
function smallModulo4(w: FloatMath, p: KNode): KNode {
  const shifter = 1.5 * 2 ** 54;
  return w.sub(p, w.sub(w.add(p, shifter), shifter));
}

/** The whole quarters in a sum of exact products, the largest first: they show in the first `count`. */
function quarters(w: FloatMath, products: readonly KNode[], count: number): KNode {
  return w.nearest(total(w, products.slice(0, count)));
}

function total(w: FloatMath, terms: readonly KNode[]): KNode {
  return terms.slice(1).reduce((sum, p) => w.add(sum, p), terms[0]!);
}

/** A float32 angle given as float64: 7 pieces of 29 bits reach from 2^127 down to what the last place can show. */
function turnsOfSingle(w: Math64, a: KNode): Turns {
  const products = Array.from({ length: 7 }, (_, i) => {
    const p = w.mul(a, twoOverPiDigits(1 + 29 * i, 29) * 2 ** (-29 * (i + 1)));
    return i > 4 ? p : i > 2 ? smallModulo4(w, p) : modulo4(w, p);
  });
  const quarter = quarters(w, products, 5);
  const [first, ...others] = products as [KNode, ...KNode[]];
  return { quarter, rest: w.mul(total(w, [w.sub(first, quarter), ...others]), Math.PI / 2) };
}

/** pi/2 in two parts: products of the first, of 25 bits, with a number of quarter turns below 2^28 are exact. */
const QUARTER_TURN = [1.5707963109016418, 1.5893254773528196e-8] as const;
/** Angles for which that is not enough. */
const FEW_TURNS = 2 ** 22;

/** The same for angles below 2^22, by subtracting a multiple in parts (J. Hart and W. J. Cody). */
function fewTurnsOfSingle(w: Math64, a: KNode): Turns {
  const quarter = w.nearest(w.mul(a, 2 / Math.PI));
  return { quarter, rest: w.muladd(quarter, -QUARTER_TURN[1], w.muladd(quarter, -QUARTER_TURN[0], a)) };
}

/** No magnitude of the value is larger, where it is an integer times constants, as random angles are: they need no branch. */
function largestOf(a: KNode): number {
  const [x, y] = a.src as [KNode, KNode];
  if (a.op === 'ABS') return largestOf(x);
  if (a.op === 'MUL' && y.op === 'CONST') return largestOf(x) * Math.abs(Number(y.arg.value));
  return a.op === 'CAST' ? Math.max(-lowOf(x), highOf(x)) : Number.POSITIVE_INFINITY;
}

/**
 * A function of a float32 angle by its turns. Engines with branches should compute large angles only where there is one (the CPU's
 * emitter recognises that by the length of that side). So both forms are given.
 */
export function bySize(m: Math32, w: Math64, a: KNode, f: (turns: Turns) => KNode): KNode {
  const wide = m.e.cast(a, 'float64');
  if (!m.caps.simt && largestOf(a) < FEW_TURNS) return f(fewTurnsOfSingle(w, wide));
  const large = f(turnsOfSingle(w, wide));
  return m.caps.simt ? large : m.where(m.le(FEW_TURNS, a), large, f(fewTurnsOfSingle(w, wide)));
}

/** Turns of a float32 angle in float32 numbers. */
function angleOf(m: Math32, wide: Math64, { quarter, rest }: Turns): Angle {
  const { e } = m;
  const high = e.cast(rest, 'float32');
  return { quarter: wholeOf(m, quarter).bits, high, low: e.cast(wide.sub(rest, e.cast(high, 'float64')), 'float32') };
}

/** pi/2 less its float64. */
const HALF_PI_LOW = 6.123233995736766e-17;

/** Classes of float64 angles: class 0 ends at 2^TOP, each further one is WIDTH binary digits wide. */
const CLASSES = 8;
const WIDTH = 122;
const TOP = WIDTH + 53;
/** Pieces of 2/pi per class, and how many have products of 4 and more. */
const PIECES = 11;
const LARGE = 7;

/**
 * A float64 angle: scaled by 2^(-WIDTH q) below 2^TOP, and to an integer where q > 0: so the digits of 2/pi before those used give
 * multiples of 4; cut into two parts of 26 bits, times pieces of 27 bits of 2/pi * 2^(WIDTH q) modulo 4.
 */
function reduceDouble(m: Math64, a: KNode): Angle {
  const classes = Array.from({ length: CLASSES }, (_, q) => q);
  const tests = classes.slice(0, -1).map((q) => m.lt(a, 2 ** (TOP + WIDTH * q)));
  const each = (value: (q: number) => number): KNode => choose(m, tests, classes.map(value));
  const scaled = m.mul(
    a,
    each((q) => 2 ** (-WIDTH * q)),
  );
  const stretched = m.mul(scaled, 2 ** 27 + 1);
  const head = m.sub(stretched, m.sub(stretched, scaled));
  const tail = m.sub(scaled, head);
  const products = Array.from({ length: PIECES }, (_, i) => {
    const piece = each((q) => twoOverPiDigits(WIDTH * q - 1 + 27 * i, 27) * 2 ** (2 - 27 * (i + 1)));
    const pair = [m.mul(head, piece), m.mul(tail, piece)];
    return i < LARGE ? pair.map((p) => modulo4(m, p)) : pair;
  }).flat();
  const quarter = quarters(m, products, 2 * LARGE);
  const [first, ...others] = products as [KNode, ...KNode[]];
  let rest = m.sub(first, quarter);
  let lost = m.c(0);
  for (const p of others) {
    const sum = m.add(rest, p);
    lost = m.add(lost, m.lost(rest, p, sum));
    rest = sum;
  }
  const small = m.lt(a, Math.PI / 4);
  return {
    quarter: m.e.cast(m.where(small, 0, quarter), 'int32'),
    high: m.where(small, a, m.mul(rest, Math.PI / 2)),
    low: m.where(small, 0, m.add(m.mul(lost, Math.PI / 2), m.mul(rest, HALF_PI_LOW))),
  };
}

/**
 * A float32 angle in 32-bit integers: the 24 significant bits times the 96 bits of 2/pi that matter for the exponent, modulo
 * 2^96. The rest is rounded to float32, so that results may be three or four units off.
 */
function reduceInteger(m: Math32, a: KNode): Angle {
  const { e } = m;
  const u = (value: number): KNode => e.constant('uint32', value);
  const bits = e.bitcast(a, 'uint32');
  const mantissa = e.or(e.and(bits, u(0x7fffff)), u(0x800000));
  // The first digit wanted is number exponent - 24, counted with 31 zeros in front.
  const first = e.sub(e.shr(bits, u(23)), u(127 + 24 - 31));
  const word = e.shr(first, u(5));
  const shift = e.and(first, u(31));
  const tests = [1, 2, 3, 4].map((k) => e.lt(word, u(k)));
  const words = [0, 1, 2, 3].map((j) => {
    const digits = (k: number): KNode => u(twoOverPiDigits(32 * (k + j) - 31, 32));
    return tests.reduceRight((rest, test, k) => e.where(test, digits(k), rest), digits(4));
  });
  const [top, middle, bottom] = [0, 1, 2].map((j) => {
    const next = e.shr(e.shr(words[j + 1]!, u(1)), e.sub(u(31), shift));
    return e.or(e.shl(words[j]!, shift), next);
  }) as [KNode, KNode, KNode];
  const part = e.mul(mantissa, middle);
  const second = e.add(part, e.binary('MULHI', mantissa, bottom));
  const carry = e.cast(e.lt(second, part), 'uint32');
  const main = e.add(e.add(e.mul(mantissa, top), e.binary('MULHI', mantissa, middle)), carry);
  // main : second counts 2^-62 quarter turns: two bits of whole quarters, to be rounded, then the fraction.
  const quarter = e.shr(e.add(main, u(0x20000000)), u(30));
  const fraction = e.bitcast(e.or(e.shl(main, u(2)), e.shr(second, u(30))), 'int32');
  const tail = e.cast(e.shl(second, u(2)), 'float32');
  const turns = m.add(m.mul(e.cast(fraction, 'float32'), 2 ** -32), m.mul(tail, 2 ** -64));
  const small = m.lt(a, Math.PI / 4);
  // Infinity and NaN have no remainder.
  const large = m.where(m.lt(a, Number.POSITIVE_INFINITY), m.mul(turns, Math.PI / 2), Number.NaN);
  return {
    quarter: e.where(small, 0, e.bitcast(quarter, 'int32')),
    high: m.where(small, a, large),
    low: m.c(0),
  };
}

// sin, cos, tan in arithmetic: the angle is reduced (above), then polynomials of fdlibm's form (k_sin.c, k_cos.c) on a rest in
// two parts.

/** (sin r - r) / r^3 in r^2, |r| <= pi/4; minimax to 2^-27, and the Taylor series to 2^-60. */
const SIN: Coefficients = {
  float32: [-0.166666552, 0.00833218731, -0.000195179004],
  float64: [
    -1 / 6,
    1 / 120,
    -1 / 5040,
    1 / 362880,
    -1 / 39916800,
    1 / 6227020800,
    -1 / 1307674368000,
    1 / 355687428096000,
  ],
};
/** (cos r - 1 + r^2/2) / r^4 in r^2; 2^-33 and 2^-60. */
const COS: Coefficients = {
  float32: [0.0416666456, -0.00138873013, 2.44306684e-5],
  float64: [
    1 / 24,
    -1 / 720,
    1 / 40320,
    -1 / 3628800,
    1 / 479001600,
    -1 / 87178291200,
    1 / 20922789888000,
    -1 / 6402373705728000,
  ],
};
/** sin r / r and cos r in r^2, 2^-37 and 2^-34: for float32 results computed in float64. */
const SIN_WIDE = [
  0.9999999999955946, -0.16666666631072385, 0.00833332873137829, -0.0001983918663006496, 2.7172005471335453e-6,
];
const COS_WIDE = [
  0.999999999942767, -0.4999999956446868, 0.041666612575375676, -0.0013886509900476747, 2.4370942533159473e-5,
];

/** Without float64 beside float32. */
function reduce(m: FloatMath, a: KNode): Angle {
  return m.isSingle() ? reduceInteger(m, a) : reduceDouble(m as Math64, a);
}

function hasBit(m: FloatMath, quarter: KNode, bit: 1 | 2): KNode {
  return m.e.ne(m.e.and(quarter, bit), 0);
}

function sine(m: FloatMath, { high, low }: Angle): KNode {
  const square = m.mul(high, high);
  return m.add(high, m.add(low, m.mul(m.mul(high, square), m.poly(square, m.pick(SIN)))));
}

function cosine(m: FloatMath, { high, low }: Angle): KNode {
  const square = m.mul(high, high);
  const half = m.mul(square, 0.5);
  const one = m.sub(1, half);
  const tail = m.sub(m.mul(m.mul(square, square), m.poly(square, m.pick(COS))), m.mul(high, low));
  return m.add(one, m.add(m.sub(m.sub(1, one), half), tail));
}

/** sin of a plus a number of quarter turns. */
function wave(m: FloatMath, a: KNode, quarters: 0 | 1): KNode {
  if (!m.isSingle() || m.wide === null) return waveOf(m, reduce(m, a), quarters);
  const { wide } = m;
  return bySize(m, wide, a, (turns) => waveOf(m, angleOf(m, wide, turns), quarters));
}

function waveOf(m: FloatMath, angle: Angle, quarters: 0 | 1): KNode {
  const k = m.e.add(angle.quarter, quarters);
  const value = m.where(hasBit(m, k, 1), cosine(m, angle), sine(m, angle));
  return m.where(hasBit(m, k, 2), m.neg(value), value);
}

export function sin(m: FloatMath, x: KNode): KNode {
  const value = wave(m, m.abs(x), 0);
  return m.where(isNegative(m, x), m.neg(value), value);
}

export function cos(m: FloatMath, x: KNode): KNode {
  return wave(m, m.abs(x), 1);
}

export function tan(m: FloatMath, x: KNode): KNode {
  const a = m.abs(x);
  const value = m.isSingle() && m.wide !== null ? tanWide(m, m.wide, a) : tanPlain(m, a);
  return m.where(isNegative(m, x), m.neg(value), value);
}

/** sin / cos, or -cos / sin if the quarter is odd. */
function quotient(m: FloatMath, odd: KNode, s: KNode, c: KNode): KNode {
  return m.div(m.where(odd, m.neg(c), s), m.where(odd, s, c));
}

function tanPlain(m: FloatMath, a: KNode): KNode {
  const angle = reduce(m, a);
  return quotient(m, hasBit(m, angle.quarter, 1), sine(m, angle), cosine(m, angle));
}

function tanWide(m: Math32, w: Math64, a: KNode): KNode {
  return bySize(m, w, a, ({ quarter, rest }) => {
    const square = w.mul(rest, rest);
    const s = w.mul(rest, w.poly(square, SIN_WIDE));
    const c = w.poly(square, COS_WIDE);
    return m.e.cast(quotient(w, hasBit(m, wholeOf(m, quarter).bits, 1), s, c), 'float32');
  });
}

// atan, atan2, asin, acos in arithmetic: the reductions of fdlibm's s_atan.c, e_asin.c and e_acos.c (Sun Microsystems, 1993), its
// coefficients for float64, minimax fits for float32.

/** (atan t - t) / t^3 in t^2, |t| <= 7/16; 2^-29 for float32. */
const ATAN: Coefficients = {
  float32: [-0.333333045, 0.199977785, -0.142300919, 0.104934365, -0.0582386963],
  float64: [
    -0.3333333333333293, 0.19999999999876483, -0.14285714272503466, 0.11111110405462356, -0.09090887133436507,
    0.0769187620504483, -0.06661073137387531, 0.058335701337905735, -0.049768779946159324, 0.036531572744216916,
    -0.016285820115365782,
  ],
};
/** (asin s - s) / s^3 in s^2, |s| <= 1/2; 2^-27 and 2^-57 (interpolated at Chebyshev points). */
const ASIN: Coefficients = {
  float32: [0.166667521, 0.0749530643, 0.0454697721, 0.0241807755, 0.0421664044],
  float64: [
    0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989,
    0.017352392720869973, 0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358,
    0.01740087944269402, -0.014851887071247204, 0.028757851367421566,
  ],
};

/** pi, pi/2, atan 1/2 and atan 3/2 to 70 bits, as sums of two float64. */
const PI: readonly [number, number] = [Math.PI, 1.2246467991473532e-16];
const HALF_PI: readonly [number, number] = [Math.PI / 2, 6.123233995736766e-17];
const CENTRES: readonly (readonly [number, number])[] = [
  [0, 0],
  [0.4636476090008061, 2.2698777452961687e-17],
  [Math.PI / 4, 3.061616997868383e-17],
  [0.982793723247329, 1.3903311031230998e-17],
  HALF_PI,
];

/** A number in two parts of the dtype. */
function parts(m: FloatMath, [high, low]: readonly [number, number]): readonly [number, number] {
  if (m.t === 'float64') return [high, low];
  const single = Math.fround(high);
  return [single, high - single];
}

/** atan a = high + low for a >= 0: around the centre c = 0, 1/2, 1, 3/2 or infinity, atan a = atan c + atan((a - c) / (1 + a c)). */
function atanParts(m: FloatMath, a: KNode): { readonly high: KNode; readonly low: KNode } {
  const tests = [7 / 16, 11 / 16, 19 / 16, 39 / 16].map((limit) => m.lt(a, limit));
  const centre = choose(m, tests.slice(0, 3), [0, 0.5, 1, 1.5]);
  const finite = tests[3]!;
  const p = m.where(finite, m.sub(a, centre), -1);
  const q = m.where(finite, m.add(m.mul(centre, a), 1), a);
  const t = m.div(p, q);
  const square = m.mul(t, t);
  const bend = m.mul(m.mul(t, square), m.poly(square, m.pick(ATAN)));
  const base = (i: 0 | 1): KNode =>
    choose(
      m,
      tests,
      CENTRES.map((c) => parts(m, c)[i]),
    );
  return { high: base(0), low: m.add(t, m.add(base(1), bend)) };
}

export function atan(m: FloatMath, x: KNode): KNode {
  const { high, low } = atanParts(m, m.abs(x));
  return withSign(m, m.add(high, low), signOf(m, x));
}

export function atan2(m: FloatMath, y: KNode, x: KNode): KNode {
  const { e } = m;
  const [a, b] = [m.abs(y), m.abs(x)];
  const zero = m.eq(a, 0);
  // 0/0 means 0 here and inf/inf means 1.
  const same = e.and(m.eq(a, b), e.or(zero, m.eq(a, Number.POSITIVE_INFINITY)));
  const { high, low } = atanParts(m, m.where(same, m.where(zero, 0, 1), m.div(a, b)));
  const [piHigh, piLow] = parts(m, PI);
  const left = m.sub(piHigh, m.sub(high, m.sub(piLow, low)));
  return withSign(m, m.where(isNegative(m, x), left, m.add(high, low)), signOf(m, y));
}

/**
 * Below 1/2 asin a = a + a bend. Above, asin a = pi/2 - 2 asin(root) with root = sqrt((1 - a) / 2) = head + rest, and
 * asin(root) = root + root bend.
 */
function arc(m: FloatMath, a: KNode): { near: KNode; root: KNode; bend: KNode; head: KNode; rest: KNode } {
  const near = m.lt(a, 0.5);
  const square = m.where(near, m.mul(a, a), m.mul(m.sub(1, a), 0.5));
  const root = m.sqrt(square);
  const head = headOf(m, root);
  // The addend only avoids 0/0.
  const rest = m.div(m.sub(square, m.mul(head, head)), m.add(m.add(root, head), 2 ** -100));
  return { near, root, bend: m.mul(square, m.poly(square, m.pick(ASIN))), head, rest };
}

export function asin(m: FloatMath, x: KNode): KNode {
  const a = m.abs(x);
  const { near, root, bend, head, rest } = arc(m, a);
  const [high, low] = parts(m, HALF_PI);
  const small = m.sub(m.mul(m.add(root, root), bend), m.sub(low, m.add(rest, rest)));
  const far = m.sub(high / 2, m.sub(small, m.sub(high / 2, m.add(head, head))));
  return withSign(m, m.where(near, m.add(a, m.mul(a, bend)), far), signOf(m, x));
}

export function acos(m: FloatMath, x: KNode): KNode {
  const { near, root, bend, head, rest } = arc(m, m.abs(x));
  const [high, low] = parts(m, HALF_PI);
  const middle = m.sub(high, m.sub(x, m.sub(low, m.mul(x, bend))));
  const product = m.mul(root, bend);
  const right = m.add(head, m.add(product, rest));
  const left = m.sub(high, m.add(root, m.sub(product, low)));
  const half = m.where(m.lt(0, x), right, left);
  return m.where(near, middle, m.add(half, half));
}

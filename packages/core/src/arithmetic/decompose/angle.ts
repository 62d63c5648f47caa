/**
 * Angles modulo a quarter turn, exactly, over the whole range: the first half of sin, cos and tan.
 *
 * An angle is multiplied by pieces of 2/pi short enough that every product is exact, and multiples of four quarter turns are
 * dropped from each product (M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric functions", SIGNUM
 * Newsletter 18(1), 1983). Sums start with the largest piece: whatever cancels is exact, and what is left rounds once.
 */
import type { FloatMath, Math32, Math64 } from '../float-math.ts';
import type { KNode } from '../../ir/ir.ts';

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
export function turnsOfSingle(w: Math64, a: KNode): Turns {
  const products = Array.from({ length: 7 }, (_, i) => {
    const p = w.mul(a, twoOverPiDigits(1 + 29 * i, 29) * 2 ** (-29 * (i + 1)));
    return i > 4 ? p : i > 2 ? smallModulo4(w, p) : modulo4(w, p);
  });
  const quarter = quarters(w, products, 5);
  const [first, ...others] = products as [KNode, ...KNode[]];
  return { quarter, rest: w.mul(total(w, [w.sub(first, quarter), ...others]), Math.PI / 2) };
}

/** pi/2 in two parts: products of the first, of 25 bits, with a number of quarter turns below 2^28 are exact. */
const HALF_PI = [1.5707963109016418, 1.5893254773528196e-8] as const;
/** Angles from which on that is not enough. */
const FEW_TURNS = 2 ** 22;

/** The same for angles below 2^22 (J. Hart's and W. J. Cody's way of taking off a multiple in parts). */
export function fewTurnsOfSingle(w: Math64, a: KNode): Turns {
  const quarter = w.nearest(w.mul(a, 2 / Math.PI));
  return { quarter, rest: w.muladd(quarter, -HALF_PI[1], w.muladd(quarter, -HALF_PI[0], a)) };
}

/**
 * A function of a float32 angle by its turns. Engines with branches need those of large angles only where there is one (the CPU's
 * emitter sees it by the length of that side), so both are offered.
 */
export function bySize(m: Math32, w: Math64, a: KNode, f: (turns: Turns) => KNode): KNode {
  const wide = m.e.cast(a, 'float64');
  const large = f(turnsOfSingle(w, wide));
  return m.caps.simt ? large : m.where(m.le(FEW_TURNS, a), large, f(fewTurnsOfSingle(w, wide)));
}

/** Turns of a float32 angle in float32 numbers. */
export function angleOf(m: Math32, wide: Math64, { quarter, rest }: Turns): Angle {
  const { e } = m;
  const high = e.cast(rest, 'float32');
  return { quarter: m.wholeOf(quarter).bits, high, low: e.cast(wide.sub(rest, e.cast(high, 'float64')), 'float32') };
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
 * A float64 angle: scaled by 2^(-WIDTH q) below 2^TOP, and to an integer where q > 0, so that the digits of 2/pi before those used give
 * multiples of 4; cut into two parts of 26 bits, times pieces of 27 bits of 2/pi * 2^(WIDTH q) modulo 4.
 */
export function reduceDouble(m: Math64, a: KNode): Angle {
  const classes = Array.from({ length: CLASSES }, (_, q) => q);
  const tests = classes.slice(0, -1).map((q) => m.lt(a, 2 ** (TOP + WIDTH * q)));
  const each = (value: (q: number) => number): KNode => m.choose(tests, classes.map(value));
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
export function reduceInteger(m: Math32, a: KNode): Angle {
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
  // Infinity and NaN have no rest.
  const large = m.where(m.lt(a, Number.POSITIVE_INFINITY), m.mul(turns, Math.PI / 2), Number.NaN);
  return {
    quarter: e.where(small, 0, e.bitcast(quarter, 'int32')),
    high: m.where(small, a, large),
    low: m.c(0),
  };
}

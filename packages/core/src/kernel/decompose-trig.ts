/**
 * sin, cos, tan in arithmetic.
 *
 * The argument becomes n quarter turns plus a rest. For float32 results computed in float64 the reduction is exact enough over
 * the whole range: 2/pi is kept modulo 4 in pieces of 28 bits for each range of exponents, so that every product with the
 * 24 significant bits of the argument is exact (the idea of Payne and Hanek, "Radian reduction for trigonometric
 * functions", SIGNUM 18(1), 1983, in floating point). For float64 results it is the three-part reduction of fdlibm's
 * e_rem_pio2.c, good to |x| < 1.6e6; the error grows beyond.
 */
import { type FloatMath, inverseFactorials } from './decompose-math.ts';
import type { KNode } from './ir.ts';

/** Bits 26, 54, 82, 110 after the point of 2/pi * 2^(24 q) mod 4, for q = 0 .. 4. */
const TWO_OVER_PI: readonly (readonly number[])[] = [
  [0.6366197615861893, 3.4308817386627197, 0.0826718807220459, 0.15368376672267914, 1.957837924361229],
  [1.0781392056902206e-8, 4.927628582951371e-9, 9.160267044894255e-9, 1.2388105652405557e-8, 1.995295595413893e-10],
  [
    1.6153797803925804e-17, 4.639410300449943e-17, 1.6743671465675638e-17, 1.189288975942558e-17,
    2.2184695756228728e-17,
  ],
  [7.696704847356705e-26, 1.708199820166447e-25, 8.848601467090371e-26, 8.153999425207559e-26, 5.253174220030402e-26],
];

/** pi/2 in parts of 33 bits (fdlibm, e_rem_pio2.c) and of 8 to 11 bits for float32 (Cephes, sinf.c). */
const PIO2 = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21];
const PIO2_32 = [1.5703125, 0.0004837512969970703, 7.549789954891882e-8];

interface Reduced {
  /** Quarter turns modulo 4: 0, 1, 2 or 3. */
  readonly quadrant: KNode;
  /** The rest in radians, at most about pi/4 in size. */
  readonly rest: KNode;
}

function reduce(m: FloatMath, x: KNode): Reduced {
  const wholeRange = m.t === 'float64' && !m.fine;
  const { n, rest } = wholeRange ? reduceExactly(m, x) : reduceInParts(m, x, m.t === 'float32' ? PIO2_32 : PIO2);
  return { quadrant: modulo4(m, n), rest };
}

function modulo4(m: FloatMath, x: KNode): KNode {
  return m.sub(x, m.mul(m.floor(m.mul(x, 0.25)), 4));
}

function reduceInParts(m: FloatMath, x: KNode, parts: readonly number[]): { n: KNode; rest: KNode } {
  const n = m.round(m.mul(x, 2 / Math.PI));
  let rest = x;
  for (const part of parts) rest = m.muladd(n, -part, rest);
  return { n, rest };
}

function reduceExactly(m: FloatMath, x: KNode): { n: KNode; rest: KNode } {
  const size = m.abs(x);
  const limits = [2 ** 48, 2 ** 72, 2 ** 96, 2 ** 120];
  const choose = (values: readonly number[]): KNode => {
    let chosen = m.c(values[0] as number);
    limits.forEach((limit, i) => {
      chosen = m.where(m.lt(size, limit), chosen, values[i + 1] as number);
    });
    return chosen;
  };
  const scaled = m.mul(x, choose([1, 2 ** -24, 2 ** -48, 2 ** -72, 2 ** -96]));
  const products = TWO_OVER_PI.map((row) => m.mul(scaled, choose(row)));
  const [first, second, third, fourth] = products as [KNode, KNode, KNode, KNode];
  // Centred, so that small arguments keep their precision.
  const centred = (p: KNode): KNode => m.sub(p, m.mul(m.round(m.mul(p, 0.25)), 4));
  const turns = m.add(centred(first), centred(second));
  const n = m.round(turns);
  const fraction = m.add(m.add(m.sub(turns, n), third), fourth);
  return { n, rest: m.mul(fraction, Math.PI / 2) };
}

/** Signed inverse factorials of every second power. */
function alternating(first: number, count: number): number[] {
  const inverse = inverseFactorials(first + 2 * count);
  return Array.from({ length: count }, (_, k) => (k % 2 === 0 ? 1 : -1) * (inverse[first + 2 * k] as number));
}

function sinRest(m: FloatMath, r: KNode): KNode {
  const z = m.mul(r, r);
  const tail = m.poly(z, alternating(3, m.fine ? 8 : 5));
  return m.muladd(m.mul(m.mul(r, z), tail), -1, r);
}

function cosRest(m: FloatMath, r: KNode): KNode {
  const z = m.mul(r, r);
  const tail = m.poly(z, alternating(4, m.fine ? 8 : 5));
  return m.muladd(m.mul(z, z), tail, m.muladd(z, -0.5, 1));
}

function bySquare(m: FloatMath, x: KNode, shift: 0 | 1): KNode {
  const { quadrant, rest } = reduce(m, x);
  const k = shift === 0 ? quadrant : modulo4(m, m.add(quadrant, 1));
  const odd = m.e.or(m.eq(k, 1), m.eq(k, 3));
  const value = m.where(odd, cosRest(m, rest), sinRest(m, rest));
  return m.where(m.le(2, k), m.neg(value), value);
}

const TINY = 1e-10;

export function sin(m: FloatMath, x: KNode): KNode {
  return m.where(m.lt(m.abs(x), TINY), x, bySquare(m, x, 0));
}

export function cos(m: FloatMath, x: KNode): KNode {
  return bySquare(m, x, 1);
}

export function tan(m: FloatMath, x: KNode): KNode {
  const { quadrant, rest } = reduce(m, x);
  const odd = m.e.or(m.eq(quadrant, 1), m.eq(quadrant, 3));
  const [s, c] = [sinRest(m, rest), cosRest(m, rest)];
  const ratio = m.div(m.where(odd, m.neg(c), s), m.where(odd, s, c));
  return m.where(m.lt(m.abs(x), TINY), x, ratio);
}

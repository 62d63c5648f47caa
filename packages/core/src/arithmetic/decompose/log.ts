/**
 * log, log2, log10, log1p in arithmetic.
 *
 * x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and log(1 + f) = f + bend. n ln 2 + f is added first and what that
 * loses is kept.
 */
import { type Coefficients, type FloatMath, LN2 } from '../float-math.ts';
import type { KNode } from '../../ir/ir.ts';

/** (log(1 + f) - f + f^2/2) / f^3, minimax, 2^-27 of the logarithm. */
const CUBIC = [
  0.333333164, -0.250008106, 0.20002304, -0.16624561, 0.141808733, -0.131283954, 0.128834099, -0.0786252022,
];
/** (2 atanh s - 2 s) / s^3 in s^2, |s| <= 0.172; 2^-57. */
const ATANH = [
  0.666666666666667, 0.3999999999989607, 0.28571428627528794, 0.22222210881932927, 0.1818290749767122,
  0.1533111258796017, 0.1462395660821188,
];

/** log(1 + f) - f + f^2/2: for float32 as in Cephes' logf.c, for float64 with s = f / (2 + f) as in fdlibm's e_log.c. */
function cubicRest(m: FloatMath, f: KNode, square: KNode): KNode {
  if (m.t === 'float32') return m.mul(m.mul(square, f), m.poly(f, CUBIC));
  const s = m.div(f, m.add(f, 2));
  const z = m.mul(s, s);
  return m.mul(s, m.add(m.mul(square, 0.5), m.mul(z, m.poly(z, ATANH))));
}

/** log(1 + f) - f. */
function bend(m: FloatMath, f: KNode): KNode {
  const square = m.mul(f, f);
  return m.sub(cubicRest(m, f, square), m.mul(square, 0.5));
}

/** n ln 2 + f + small. */
function join(m: FloatMath, n: KNode, f: KNode, small: KNode): KNode {
  const [high, low] = m.pick(LN2) as [number, number];
  const base = m.mul(n, high);
  const sum = m.add(base, f);
  return m.add(sum, m.add(m.lost(base, f, sum), m.add(m.mul(n, low), small)));
}

/** -infinity at the pole, NaN below it; infinity and NaN stay. */
function edges(m: FloatMath, x: KNode, pole: number, inside: KNode): KNode {
  const above = m.where(m.lt(x, Number.POSITIVE_INFINITY), inside, x);
  return m.where(m.le(x, pole), m.where(m.lt(x, pole), Number.NaN, Number.NEGATIVE_INFINITY), above);
}

export function log(m: FloatMath, x: KNode): KNode {
  const { n, mantissa } = m.split(x, Math.SQRT1_2);
  const f = m.sub(mantissa, 1);
  return edges(m, x, 0, join(m, n, f, bend(m, f)));
}

/** The logarithm of u = 1 + x, with what the sum lost added back: log(u + c) = log u + c / u. Tiny x are their own result. */
export function log1p(m: FloatMath, x: KNode): KNode {
  const u = m.add(x, 1);
  const lost = m.where(m.lt(1, x), m.sub(1, m.sub(u, x)), m.sub(x, m.sub(u, 1)));
  const { n, mantissa } = m.split(u, Math.SQRT1_2, false);
  const f = m.sub(mantissa, 1);
  const value = join(m, n, f, m.add(m.div(lost, u), bend(m, f)));
  return m.where(m.lt(m.abs(x), m.t === 'float32' ? 2 ** -25 : 2 ** -54), x, edges(m, x, -1, value));
}

/** log2(e) in two parts, the first short. */
const LOG2E: Coefficients = {
  float32: [1.4423828125, Math.LOG2E - 1.4423828125],
  float64: [1.4426950216293335, 1.9259629911266175e-8],
};

/** 1 / ln 10 and log10(2), each in two parts as LOG2E: products of the first parts with a head and with n are exact. */
const LOG10E: Coefficients = {
  float32: [0.434326171875, Math.LOG10E - 0.434326171875],
  float64: [0.43429448176175356, 1.414982685385801e-10],
};
const LOG10_2: Coefficients = {
  float32: [0.30103302001953125, -3.0243555500547862e-6],
  float64: [0.30102999566395283, 2.8363394551044964e-14],
};

/**
 * x = 2^n (1 + f), and log(1 + f) in two parts, the first short: f - h^2/2 for the head h of f, and the rest (FreeBSD's e_log2.c).
 */
function parts(m: FloatMath, x: KNode): { readonly n: KNode; readonly head: KNode; readonly tail: KNode } {
  const { n, mantissa } = m.split(x, Math.SQRT1_2);
  const f = m.sub(mantissa, 1);
  const h = m.head(f);
  const half = m.mul(m.mul(h, h), 0.5);
  const halfRest = m.mul(m.mul(m.sub(f, h), m.add(f, h)), 0.5);
  const high = m.sub(f, half);
  const lost = m.sub(m.sub(f, high), half);
  const low = m.add(m.sub(cubicRest(m, f, m.mul(f, f)), halfRest), lost);
  const head = m.head(high);
  return { n, head, tail: m.add(m.sub(high, head), low) };
}

/** n + log2(e) log(1 + f). */
export function log2(m: FloatMath, x: KNode): KNode {
  const [log2eHigh, log2eLow] = m.pick(LOG2E) as [number, number];
  const { n, head, tail } = parts(m, x);
  const product = m.mul(head, log2eHigh);
  const sum = m.add(n, product);
  const small = m.add(m.mul(head, log2eLow), m.mul(tail, Math.LOG2E));
  return edges(m, x, 0, m.add(sum, m.add(m.lost(n, product, sum), small)));
}

/** n log10(2) + log10(e) log(1 + f), exact for powers of ten. */
export function log10(m: FloatMath, x: KNode): KNode {
  const [log10eHigh, log10eLow] = m.pick(LOG10E) as [number, number];
  const [log10of2High, log10of2Low] = m.pick(LOG10_2) as [number, number];
  const { n, head, tail } = parts(m, x);
  const [base, product] = [m.mul(n, log10of2High), m.mul(head, log10eHigh)];
  const sum = m.add(base, product);
  const small = m.add(m.mul(n, log10of2Low), m.add(m.mul(head, log10eLow), m.mul(tail, Math.LOG10E)));
  return edges(m, x, 0, m.add(sum, m.add(m.lost(base, product, sum), small)));
}

/**
 * pow in arithmetic: |a|^b = 2^(b log2 |a|), then C99's special cases (Annex F.9.4.4).
 *
 * The logarithm needs about eight bits more than a float32 result and eleven more than a float64 one. For float32 they come for free in
 * float64; otherwise log2 |a| is computed in two parts as in fdlibm's e_pow.c (Sun Microsystems, 1993), whose coefficients these are.
 */
import { exp2Small } from './exp.ts';
import { type Coefficients, type FloatMath, Math32, type Math64 } from '../float-math.ts';
import type { KNode } from '../../ir/ir.ts';

/** log2((1 + s) / (1 - s)) / s in s^2, |s| <= 0.172, 2^-37; and 2^r, |r| <= 1/2, 2^-34. Minimax fits. */
const LOG2_WIDE = [2.885390081790168, 0.9617966732476302, 0.5770836018888738, 0.4116717484779502, 0.34074745301691456];
const EXP2_WIDE = [
  0.9999999999613783, 0.6931471807297953, 0.24022651201150572, 0.055504103503693135, 0.009618026848436486,
  0.0013333924021085974, 0.00015469422092864233, 1.5201819967116137e-5,
];

/** (log((1 + s) / (1 - s)) - 2 s) 3 / (2 s^5) - ...: the terms of s^4 and on, e_pow.c's L1 to L6. */
const TERMS: Coefficients = {
  float32: [0.6, 0.428571433, 0.333333343, 0.272728115, 0.230660751, 0.206975013],
  float64: [
    0.5999999999999946, 0.4285714285785502, 0.33333332981837743, 0.272728123808534, 0.23066074577556175,
    0.20697501780033842,
  ],
};
/** 2 / (3 ln 2), the same in two parts, and log2(3/2) in two parts. */
const SCALES: Coefficients = {
  float32: [0.9617967, 0.96191406, -0.000117368574, 0.5849609375, 1.56322085e-6],
  float64: [0.9617966939259756, 0.9617967009544373, -7.028461650952758e-9, 0.5849624872207642, 1.350039202129749e-8],
};

const { POSITIVE_INFINITY: INF } = Number;
/** Beyond this the result is 0 or infinity. */
const LIMIT: Coefficients = { float32: [200], float64: [1100] };

/** log2 where it is infinite or NaN, `inside` elsewhere. */
function edges(m: FloatMath, size: KNode, inside: KNode): KNode {
  return m.where(m.lt(size, INF), m.where(m.eq(size, 0), -INF, inside), size);
}

/** size^b of float32 in float64. */
function sizeWide(m: Math32, w: Math64, size: KNode, b: KNode): KNode {
  const { e } = m;
  const [limit] = m.pick(LIMIT) as [number];
  const { n, mantissa } = m.split(size, Math.SQRT1_2);
  const x = e.cast(mantissa, 'float64');
  const s = w.div(w.sub(x, 1), w.add(x, 1));
  const log = w.add(w.mul(s, w.poly(w.mul(s, s), LOG2_WIDE)), e.cast(edges(m, size, n), 'float64'));
  const y = w.clamp(w.mul(e.cast(b, 'float64'), log), -limit, limit);
  const whole = w.nearest(y);
  return m.scale(e.cast(w.poly(w.sub(y, whole), EXP2_WIDE), 'float32'), m.wholeOf(whole));
}

/** log2 of a positive finite number in two parts, the first of them short. */
function log2Parts(m: FloatMath, size: KNode): { readonly high: KNode; readonly low: KNode } {
  const [scale, scaleHigh, scaleLow, baseHigh, baseLow] = m.pick(SCALES) as [number, number, number, number, number];
  const { n, mantissa: x } = m.split(size, Math.sqrt(0.75));
  // Around the centre 1 or 3/2: s = (x - c) / (x + c) in two parts.
  const upper = m.lt(Math.sqrt(1.5), x);
  const centre = m.where(upper, 1.5, 1);
  const [difference, sum] = [m.sub(x, centre), m.add(x, centre)];
  const inverse = m.div(1, sum);
  const s = m.mul(difference, inverse);
  const head = m.head(s);
  const sumHead = m.head(sum);
  const sumTail = m.sub(x, m.sub(sumHead, centre));
  const tail = m.mul(inverse, m.sub(m.sub(difference, m.mul(head, sumHead)), m.mul(head, sumTail)));
  // 3 + s^2 + s^4 (...) in two parts, then times s.
  const square = m.mul(s, s);
  const series = m.add(m.mul(m.mul(square, square), m.poly(square, m.pick(TERMS))), m.mul(tail, m.add(head, s)));
  const headSquare = m.mul(head, head);
  const factor = m.head(m.add(m.add(headSquare, 3), series));
  const factorTail = m.sub(series, m.sub(m.sub(factor, 3), headSquare));
  const main = m.mul(head, factor);
  const rest = m.add(m.mul(tail, factor), m.mul(factorTail, s));
  const log = m.head(m.add(main, rest));
  const logTail = m.sub(rest, m.sub(log, main));
  // Times 2 / (3 ln 2), plus log2 c and the exponent.
  const scaled = m.mul(log, scaleHigh);
  const scaledTail = m.add(m.add(m.mul(log, scaleLow), m.mul(logTail, scale)), m.where(upper, baseLow, 0));
  const base = m.where(upper, baseHigh, 0);
  const high = m.head(m.add(m.add(m.add(scaled, scaledTail), base), n));
  return { high, low: m.sub(scaledTail, m.sub(m.sub(m.sub(high, n), base), scaled)) };
}

/** size^b in the dtype itself. */
function sizePlain(m: FloatMath, size: KNode, b: KNode): KNode {
  const { e } = m;
  const [limit] = m.pick(LIMIT) as [number];
  const { high, low } = log2Parts(m, size);
  const head = m.head(b);
  const product = m.mul(head, high);
  const tail = m.add(m.mul(m.sub(b, head), high), m.mul(b, low));
  const regular = e.and(m.lt(0, size), m.lt(size, INF));
  const y = m.where(regular, m.add(product, tail), m.mul(b, edges(m, size, size)));
  const inside = e.and(regular, m.lt(m.abs(y), limit));
  const main = m.where(inside, product, m.clamp(y, -limit, limit));
  const rest = m.where(inside, tail, 0);
  const n = m.whole(m.where(inside, y, main));
  const near = m.sub(main, n.value);
  const r = m.add(near, rest);
  return m.scale(exp2Small(m, r, m.lost(near, rest, r)), n);
}

export function pow(m: FloatMath, a: KNode, b: KNode): KNode {
  const { e } = m;
  const size = m.abs(a);
  // A large finite exponent instead of an infinite one: 1 to it is 1.
  const limited = m.clamp(b, -1e30, 1e30);
  const magnitude =
    m instanceof Math32 && m.wide !== null ? sizeWide(m, m.wide, size, limited) : sizePlain(m, size, limited);
  const whole = m.eq(m.floor(b), b);
  const half = m.mul(b, 0.5);
  const negative = e.and(e.and(whole, e.not(m.eq(m.floor(half), half))), m.isNegative(a));
  const signed = m.where(negative, m.neg(magnitude), magnitude);
  const undefinedRoot = e.and(e.and(m.lt(a, 0), e.not(whole)), m.lt(size, INF));
  const result = m.where(undefinedRoot, Number.NaN, signed);
  return m.where(e.or(m.eq(a, 1), m.eq(b, 0)), 1, result);
}

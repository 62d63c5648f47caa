/**
 * atan, atan2, asin, acos in arithmetic, with the reduction points and coefficients of fdlibm's s_atan.c (Sun
 * Microsystems, 1993); asin and acos through atan2.
 */
import type { FloatMath } from './decompose-math.ts';
import type { KNode } from './ir.ts';

// biome-ignore format: coefficients
const COEFFICIENTS = [
  0.3333333333333293, -0.19999999999876483, 0.14285714272503466, -0.11111110405462356,
  0.09090887133436507, -0.0769187620504483, 0.06661073137387531, -0.058335701337905735,
  0.049768779946159324, -0.036531572744216916, 0.016285820115365782,
];

/** atan(p / q) for 0 <= p <= q, q > 0. */
function atanRatio(m: FloatMath, p: KNode, q: KNode): KNode {
  // Around 0, 1/2 or 1: atan(p/q) = atan(c) + atan((p - c q) / (q + c p)).
  const near0 = m.le(p, m.mul(q, 7 / 16));
  const near1 = m.lt(m.mul(q, 11 / 16), p);
  const c = m.where(near0, 0, m.where(near1, 1, 0.5));
  const base = m.where(near0, 0, m.where(near1, Math.PI / 4, Math.atan(0.5)));
  const t = m.div(m.sub(p, m.mul(c, q)), m.add(q, m.mul(c, p)));
  const z = m.mul(t, t);
  const bend = m.mul(m.mul(t, z), m.poly(z, COEFFICIENTS));
  return m.add(base, m.sub(t, bend));
}

export function atan2(m: FloatMath, y: KNode, x: KNode): KNode {
  const { e } = m;
  const [a, b] = [m.abs(y), m.abs(x)];
  const inf = Number.POSITIVE_INFINITY;
  const steep = m.lt(b, a);
  const bothZero = m.eq(m.max(a, b), 0);
  const bothInfinite = m.eq(m.min(a, b), inf);
  const oneInfinite = m.eq(m.max(a, b), inf);
  let p = m.where(steep, b, a);
  let q = m.where(steep, a, b);
  // 0/0 means 0 here, inf/inf means 1, and anything over infinity 0.
  p = m.where(bothInfinite, 1, m.where(oneInfinite, 0, p));
  q = m.where(e.or(bothZero, oneInfinite), 1, q);
  const ratio = atanRatio(m, p, q);
  const upper = m.where(steep, m.sub(Math.PI / 2, ratio), ratio);
  const whole = m.where(m.isNegative(x), m.sub(Math.PI, upper), upper);
  const signed = m.copySign(whole, y);
  return m.where(e.or(m.isNaN(x), m.isNaN(y)), Number.NaN, signed);
}

export function atan(m: FloatMath, x: KNode): KNode {
  const size = m.abs(x);
  const steep = m.lt(1, size);
  const infinite = m.eq(size, Number.POSITIVE_INFINITY);
  const p = m.where(steep, 1, size);
  const q = m.where(steep, size, 1);
  const ratio = m.where(infinite, 0, atanRatio(m, p, m.where(infinite, 1, q)));
  const value = m.copySign(m.where(steep, m.sub(Math.PI / 2, ratio), ratio), x);
  return m.where(m.isNaN(x), x, m.where(m.lt(size, 1e-20), x, value));
}

/** sqrt(1 - x^2) without cancellation. */
function cofactor(m: FloatMath, x: KNode): KNode {
  return m.sqrt(m.mul(m.sub(1, x), m.add(x, 1)));
}

export function asin(m: FloatMath, x: KNode): KNode {
  const value = atan2(m, x, cofactor(m, x));
  return m.where(m.lt(1, m.abs(x)), Number.NaN, m.where(m.lt(m.abs(x), 1e-20), x, value));
}

export function acos(m: FloatMath, x: KNode): KNode {
  return m.where(m.lt(1, m.abs(x)), Number.NaN, atan2(m, cofactor(m, x), x));
}

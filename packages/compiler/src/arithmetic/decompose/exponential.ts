/**
 * Exponentials, logarithms and what is made of them, in arithmetic: exp and log with their relatives, sinh, cosh and tanh, erf, pow.
 *
 * exp, exp2, expm1: x = n ln 2 + r with |r| <= ln(2)/2, ln 2 in two parts (W. J. Cody and W. Waite, *Software Manual for the Elementary Functions*,
 * 1980), a polynomial for e^r - 1, and the power of two. Coefficients of float32 are minimax fits (Lawson's reweighted least squares),
 * those of float64 interpolate at Chebyshev points; the relative error is given for each.
 */
import type { KNode } from '../../ir/ir.ts';
import type { Coefficients, FloatMath, Math32, Math64, Whole } from '../float-math.ts';
import { headOf, inverseSquare, isNegative, powerOf, signOf, wholeOf, withSign } from './parts.ts';

/** ln 2 in two parts: products of the first with whole numbers are exact (float64: fdlibm's e_exp.c and e_log.c). */
const LN2: Coefficients = {
  float32: [0.693145751953125, 1.42860677e-6],
  float64: [0.6931471803691238, 1.9082149292705877e-10],
};

const FACTORIALS = [
  0.16666666666666669, 0.041666666666666664, 0.008333333333330039, 0.0013888888888886537, 0.00019841269863171557,
  2.4801587317228724e-5, 2.7557268276905696e-6, 2.7557282838800484e-7, 2.5100472505694996e-8, 2.09112987659402e-9,
];
/** (e^r - 1 - r) / r^2; 2^-28 and 2^-60 of e^r. */
const EXP: Coefficients = {
  float32: [0.49999994, 0.166665211, 0.0416682921, 0.00836872123, 0.0013818742],
  float64: [0.5, ...FACTORIALS],
};
/** (e^r - 1 - r - r^2/2) / r^3; 2^-31 and 2^-60. */
const EXPM1: Coefficients = {
  float32: [0.166666672, 0.0416664705, 0.0083332397, 0.00139344379, 0.000199149901],
  float64: FACTORIALS,
};
/** (2^r - 1 - r) / r on |r| <= 1/2; 2^-28 and 2^-56. */
const EXP2: Coefficients = {
  float32: [-0.306852788, 0.240226507, 0.055503156, 0.00961809605, 0.00134049437, 0.000154469759],
  float64: [
    -0.3068528194400547, 0.24022650695910072, 0.055504108664821625, 0.00961812910762848, 0.0013333558146406117,
    0.00015403530393370558, 1.5252733842009231e-5, 1.3215486808929518e-6, 1.0178056855501161e-7, 7.054897189206508e-9,
    4.455859112330208e-10, 2.572952812566595e-11,
  ],
};

/** x = n ln 2 + r + lost. */
export interface Reduced {
  readonly n: Whole;
  readonly r: KNode;
  readonly lost: KNode;
}

export function reduce(m: FloatMath, x: KNode): Reduced {
  const { n, near } = split(m, x, 0);
  const far = m.mul(n.value, lowOf(m));
  const r = m.sub(near, far);
  return { n, r, lost: m.sub(m.sub(near, r), far) };
}

/** n and r alone; `plus` as in `wholeProduct`. */
function reduceRoughly(m: FloatMath, x: KNode, plus: number): { readonly n: Whole; readonly r: KNode } {
  const { n, near } = split(m, x, plus);
  return { n, r: m.muladd(n.value, -lowOf(m), near) };
}

/** x less the first part, exactly. */
function split(m: FloatMath, x: KNode, plus: number): { readonly n: Whole; readonly near: KNode } {
  const n = m.wholeProduct(x, Math.LOG2E, plus);
  return { n, near: m.muladd(n.value, -m.pick(LN2)[0]!, x) };
}

function lowOf(m: FloatMath): number {
  return m.pick(LN2)[1]!;
}

/** e^r - 1 to about one unit. */
function expm1Small(m: FloatMath, r: KNode): KNode {
  return m.muladd(m.mul(r, r), m.poly(r, m.pick(EXP)), r);
}

/** e^r. Rounded at every step, a polynomial in r alone would miss by more than a unit. */
function expSmall(m: FloatMath, r: KNode): KNode {
  return m.fuses ? m.poly(r, [1, 1, ...m.pick(EXP)]) : m.add(expm1Small(m, r), 1);
}

/** e^(r + lost) - 1 in two parts. */
function expm1Parts(m: FloatMath, { r, lost }: Reduced): { readonly high: KNode; readonly low: KNode } {
  const square = m.mul(r, r);
  const cube = m.mul(m.mul(square, r), m.poly(r, m.pick(EXPM1)));
  const tail = m.add(m.mul(square, 0.5), m.add(cube, lost));
  const high = m.add(r, tail);
  return { high, low: m.lost(r, tail, high) };
}

/** Arguments beyond which exp is certainly 0 or infinite. */
const EXP_RANGE: Coefficients = { float32: [-104, 89], float64: [-746, 710] };
const EXP2_RANGE: Coefficients = { float32: [-151, 128], float64: [-1076, 1024] };
/** Arguments beyond which expm1 is -1 or infinite. */
const EXPM1_RANGE: Coefficients = { float32: [-18, 89], float64: [-40, 710] };

function limit(m: FloatMath, x: KNode, range: Coefficients): KNode {
  const [low, high] = m.pick(range) as [number, number];
  return m.clamp(x, low, high);
}

export function exp(m: FloatMath, x: KNode): KNode {
  const { n, r } = reduceRoughly(m, limit(m, x, EXP_RANGE), 254);
  return m.scale(expSmall(m, r), n);
}

/** 2^(r + lost) for |r| <= 1/2. */
function exp2Small(m: FloatMath, r: KNode, lost: KNode | null): KNode {
  const bend = m.mul(r, m.poly(r, m.pick(EXP2)));
  return m.add(m.add(r, lost === null ? bend : m.add(bend, m.mul(lost, Math.LN2))), 1);
}

export function exp2(m: FloatMath, x: KNode): KNode {
  const y = limit(m, x, EXP2_RANGE);
  const n = m.wholeProduct(y, 1, 254);
  return m.scale(exp2Small(m, m.sub(y, n.value), null), n);
}

/** Half of (2^n - 1) + 2^n (e^r - 1), doubled at the end so that 2^n may be just too large. Tiny x are their own result. */
export function expm1(m: FloatMath, x: KNode): KNode {
  const reduced = reduce(m, limit(m, x, EXPM1_RANGE));
  const { high, low } = expm1Parts(m, reduced);
  const power = powerOf(m, reduced.n, -1);
  const base = m.sub(power, 0.5);
  const part = m.mul(power, high);
  const sum = m.add(base, part);
  const rest = m.add(m.sub(m.sub(power, base), 0.5), m.add(m.lost(base, part, sum), m.mul(power, low)));
  const half = m.add(sum, rest);
  return m.where(m.lt(m.abs(x), m.t === 'float32' ? 2 ** -25 : 2 ** -54), x, m.add(half, half));
}

// log, log2, log10, log1p in arithmetic.
//
// x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and log(1 + f) = f + bend. n ln 2 + f is added first, and its
// rounding error is kept.

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

/** The logarithm of u = 1 + x, corrected by the sum's rounding error: log(u + c) = log u + c / u. Tiny x are their own result. */
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
  const h = headOf(m, f);
  const half = m.mul(m.mul(h, h), 0.5);
  const halfRest = m.mul(m.mul(m.sub(f, h), m.add(f, h)), 0.5);
  const high = m.sub(f, half);
  const lost = m.sub(m.sub(f, high), half);
  const low = m.add(m.sub(cubicRest(m, f, m.mul(f, f)), halfRest), lost);
  const head = headOf(m, high);
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

// sinh, cosh, tanh in arithmetic: polynomials near zero, else from e^|x| in two parts.

/** (tanh x - x) / x^3 in x^2, |x| <= 0.625; 2^-27 and 2^-56. */
const TANH: Coefficients = {
  float32: [-0.333332807, 0.133314058, -0.0537365153, 0.0206281673, -0.00569229666],
  float64: [
    -0.3333333333333333, 0.13333333333333042, -0.05396825396789699, 0.021869488519008305, -0.008863235103240878,
    0.0035921217511549622, -0.0014557754120478055, 0.0005896606577757043, -0.0002375906496055562, 9.257116129556769e-5,
    -3.12011014257974e-5, 6.485163482793113e-6,
  ],
};
/** (sinh x - x) / x^3 in x^2, |x| <= 1; 2^-31, and the Taylor series to 2^-59. */
const SINH: Coefficients = {
  float32: [0.166666672, 0.00833331048, 0.000198428956, 2.78221319e-6],
  float64: [
    0.16666666666666666, 0.008333333333333333, 0.0001984126984126984, 0.0000027557319223985893, 2.505210838544172e-8,
    1.6059043836821613e-10, 7.647163731819816e-13, 2.8114572543455206e-15,
  ],
};

/** Where e^x is infinite, and half of where tanh is one. */
const LIMITS: Coefficients = { float32: [90, 9.5], float64: [711, 19.5] };

/** x + x^3 P(x^2): odd functions that are close to x. */
function oddPoly(m: FloatMath, x: KNode, coefs: readonly number[]): KNode {
  const square = m.mul(x, x);
  return m.add(x, m.mul(m.mul(x, square), m.poly(square, coefs)));
}

/** e^a = 2^n (one + rest) and e^-a = 2^n inverse, for a >= 0. */
function bothWays(m: FloatMath, a: KNode): { n: Whole; one: KNode; rest: KNode; inverse: KNode } {
  const reduced = reduce(m, m.min(a, m.pick(LIMITS)[0]!));
  const { high, low } = expm1Parts(m, reduced);
  const one = m.add(high, 1);
  const rest = m.add(m.add(m.sub(1, one), high), low);
  return { n: reduced.n, one, rest, inverse: m.div(inverseSquare(m, reduced.n), one) };
}

export function sinh(m: FloatMath, x: KNode): KNode {
  const a = m.abs(x);
  const { n, one, rest, inverse } = bothWays(m, a);
  const large = m.mul(m.mul(m.add(one, m.sub(rest, inverse)), powerOf(m, n, -2)), 2);
  return withSign(m, m.where(m.lt(a, 1), oddPoly(m, a, m.pick(SINH)), large), signOf(m, x));
}

export function cosh(m: FloatMath, x: KNode): KNode {
  const { n, one, rest, inverse } = bothWays(m, m.abs(x));
  return m.mul(m.mul(m.add(one, m.add(rest, inverse)), powerOf(m, n, -2)), 2);
}

/** Above 0.625 as 1 - w with w = 2 / (e^2a + 1). */
export function tanh(m: FloatMath, x: KNode): KNode {
  const a = m.min(m.abs(x), m.pick(LIMITS)[1]!);
  const { n, r } = reduceRoughly(m, m.add(a, a), 127);
  const power = powerOf(m, n);
  const base = m.add(power, 1);
  const part = m.mul(power, expm1Small(m, r));
  const sum = m.add(base, part);
  const w = m.div(2, sum);
  const one = m.sub(1, w);
  const rest = m.mul(m.mul(w, m.lost(base, part, sum)), m.mul(w, 0.5));
  const large = m.add(one, m.add(m.sub(m.sub(1, one), w), rest));
  return withSign(m, m.where(m.lt(a, 0.625), oddPoly(m, a, m.pick(TANH)), large), signOf(m, x));
}

// erf in arithmetic.
//
// float32: x + x P(x^2) below 1, a polynomial in |x| - 2.36 above, minimax fits by Lawson's reweighted least squares. float64: the Maclaurin series
// below 1 (Abramowitz and Stegun 7.1.5); above, erfc(z) = t exp(-z^2 + P(t)) with t = 2 / (2 + z), the form of *Numerical Recipes* (3rd
// edition, 6.2.2); P is interpolated at Chebyshev points with 300-bit arithmetic, absolute error of erf below 2e-17.

/** (erf x - x) / x in x^2, |x| <= 1, 2^-24.6 of erf. */
const NEAR = [0.128379121, -0.37612322, 0.112801515, -0.0267105773, 0.00491675548, -0.000562834262];
/** erf(CENTRE + t), a number of float32 at t = 0, on [1, 3.92], 2^-24.8; erf is one above. */
const CENTRE = 2.36000681;
// biome-ignore format: the longest list
const FAR = [
  0.999154806, 0.00430135848, -0.0101518584, 0.0145352324, -0.0137619767, 0.00864623953, -0.00314966589, 3.6023499e-5,
  0.000680104829, -0.000337625592, 1.80774168e-5, 3.64141197e-5, -9.17840771e-6,
];

/** The sum of coefs[k] x^k, even and odd powers separately: for long polynomials, which halves the chain of dependent steps. */
function splitPoly(m: FloatMath, x: KNode, coefs: readonly number[]): KNode {
  const square = m.mul(x, x);
  const [even, odd] = [0, 1].map((first) => coefs.filter((_, k) => k % 2 === first)) as [number[], number[]];
  return m.muladd(m.poly(square, odd), x, m.poly(square, even));
}

function erf32(m: FloatMath, x: KNode): KNode {
  const a = m.min(m.abs(x), 3.92);
  const near = m.muladd(x, m.poly(m.mul(x, x), NEAR), x);
  const t = m.sub(a, CENTRE);
  const [one, ...rest] = FAR as [number, ...number[]];
  const far = withSign(m, m.muladd(splitPoly(m, t, rest), t, one), signOf(m, x));
  return m.where(m.lt(a, 1), near, far);
}

/** 2 / sqrt(pi) * (-1)^k / (k! (2k + 1)). */
const SERIES = /* @__PURE__ */ Array.from({ length: 18 }, (_, k) => {
  let factorial = 1;
  for (let n = 1; n <= k; n++) factorial *= -n;
  return 2 / (Math.sqrt(Math.PI) * factorial * (2 * k + 1));
});
/** P in u = t mapped from [1/4, 2/3] to [-1, 1]. */
const TAIL = [
  -0.7274922853522042, 0.2765835893613121, 0.010174695380256588, -0.003111699667421343, -0.00040147120417270124,
  9.56000637570717e-5, 1.6041266414347456e-5, -4.527152129332839e-6, -6.019926570516827e-7, 2.5643736304177233e-7,
  1.4524895006242228e-8, -1.4606504947092647e-8, 5.088309962259204e-10, 7.277727100018668e-10, -1.0252591370548987e-10,
  -2.4942356969093246e-11, 6.872112256756665e-12,
];

function erf64(m: FloatMath, x: KNode): KNode {
  const a = m.min(m.abs(x), 6);
  const near = m.mul(a, m.poly(m.mul(a, a), SERIES));
  const t = m.div(2, m.add(a, 2));
  const u = m.muladd(t, 4.8, -2.2);
  const far = m.sub(1, m.mul(t, exp(m, m.sub(m.poly(u, TAIL), m.mul(a, a)))));
  return withSign(m, m.where(m.lt(a, 1), near, far), signOf(m, x));
}

export function erf(m: FloatMath, x: KNode): KNode {
  return m.t === 'float32' ? erf32(m, x) : erf64(m, x);
}

// pow in arithmetic: |a|^b = 2^(b log2 |a|), then C99's special cases (Annex F.9.4.4).
//
// The logarithm needs about eight bits more than a float32 result and eleven more than a float64 one. For float32 they come for free in
// float64; otherwise log2 |a| is computed in two parts as in fdlibm's e_pow.c (Sun Microsystems, 1993), whose coefficients these are.

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

const INF = Infinity;
/** Beyond this the result is 0 or infinity. */
const LIMIT: Coefficients = { float32: [200], float64: [1100] };

/** log2 where it is infinite or NaN, `inside` elsewhere. */
function powEdges(m: FloatMath, size: KNode, inside: KNode): KNode {
  return m.where(m.lt(size, INF), m.where(m.eq(size, 0), -INF, inside), size);
}

/** size^b of float32 in float64. */
function sizeWide(m: Math32, w: Math64, size: KNode, b: KNode): KNode {
  const { e } = m;
  const [limit] = m.pick(LIMIT) as [number];
  const { n, mantissa } = m.split(size, Math.SQRT1_2);
  const x = e.cast(mantissa, 'float64');
  const s = w.div(w.sub(x, 1), w.add(x, 1));
  const log = w.add(w.mul(s, w.poly(w.mul(s, s), LOG2_WIDE)), e.cast(powEdges(m, size, n), 'float64'));
  const y = w.clamp(w.mul(e.cast(b, 'float64'), log), -limit, limit);
  const whole = w.nearest(y);
  return m.scale(e.cast(w.poly(w.sub(y, whole), EXP2_WIDE), 'float32'), wholeOf(m, whole));
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
  const head = headOf(m, s);
  const sumHead = headOf(m, sum);
  const sumTail = m.sub(x, m.sub(sumHead, centre));
  const tail = m.mul(inverse, m.sub(m.sub(difference, m.mul(head, sumHead)), m.mul(head, sumTail)));
  // 3 + s^2 + s^4 (...) in two parts, then times s.
  const square = m.mul(s, s);
  const series = m.add(m.mul(m.mul(square, square), m.poly(square, m.pick(TERMS))), m.mul(tail, m.add(head, s)));
  const headSquare = m.mul(head, head);
  const factor = headOf(m, m.add(m.add(headSquare, 3), series));
  const factorTail = m.sub(series, m.sub(m.sub(factor, 3), headSquare));
  const main = m.mul(head, factor);
  const rest = m.add(m.mul(tail, factor), m.mul(factorTail, s));
  const log = headOf(m, m.add(main, rest));
  const logTail = m.sub(rest, m.sub(log, main));
  // Times 2 / (3 ln 2), plus log2 c and the exponent.
  const scaled = m.mul(log, scaleHigh);
  const scaledTail = m.add(m.add(m.mul(log, scaleLow), m.mul(logTail, scale)), m.where(upper, baseLow, 0));
  const base = m.where(upper, baseHigh, 0);
  const high = headOf(m, m.add(m.add(m.add(scaled, scaledTail), base), n));
  return { high, low: m.sub(scaledTail, m.sub(m.sub(m.sub(high, n), base), scaled)) };
}

/** size^b in the dtype itself. */
function sizePlain(m: FloatMath, size: KNode, b: KNode): KNode {
  const { e } = m;
  const [limit] = m.pick(LIMIT) as [number];
  const { high, low } = log2Parts(m, size);
  const head = headOf(m, b);
  const product = m.mul(head, high);
  const tail = m.add(m.mul(m.sub(b, head), high), m.mul(b, low));
  const regular = e.and(m.lt(0, size), m.lt(size, INF));
  const y = m.where(regular, m.add(product, tail), m.mul(b, powEdges(m, size, size)));
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
  // A large finite exponent in place of an infinite one, so that a power of 1 is 1.
  const limited = m.clamp(b, -1e30, 1e30);
  const magnitude = m.isSingle() && m.wide !== null ? sizeWide(m, m.wide, size, limited) : sizePlain(m, size, limited);
  const whole = m.eq(m.floor(b), b);
  const half = m.mul(b, 0.5);
  const negative = e.and(e.and(whole, e.not(m.eq(m.floor(half), half))), isNegative(m, a));
  const signed = m.where(negative, m.neg(magnitude), magnitude);
  const undefinedRoot = e.and(e.and(m.lt(a, 0), e.not(whole)), m.lt(size, INF));
  const result = m.where(undefinedRoot, Number.NaN, signed);
  return m.where(e.or(m.eq(a, 1), m.eq(b, 0)), 1, result);
}

/**
 * exp, exp2, expm1 in arithmetic.
 *
 * x = n ln 2 + r with |r| <= ln(2)/2, ln 2 in two parts (W. J. Cody and W. Waite, *Software Manual for the Elementary Functions*,
 * 1980), a polynomial for e^r - 1, and the power of two. Coefficients of float32 are minimax fits (Lawson's reweighted least squares),
 * those of float64 interpolate at Chebyshev points; the relative error is given for each.
 */
import { type Coefficients, type FloatMath, LN2, type Whole } from '../float-math.ts';
import type { KNode } from '../../ir/ir.ts';

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
export function reduceRoughly(m: FloatMath, x: KNode, plus: number): { readonly n: Whole; readonly r: KNode } {
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
export function expm1Small(m: FloatMath, r: KNode): KNode {
  return m.muladd(m.mul(r, r), m.poly(r, m.pick(EXP)), r);
}

/** e^r. Rounded at every step, a polynomial in r alone would miss by more than a unit. */
function expSmall(m: FloatMath, r: KNode): KNode {
  return m.fuses ? m.poly(r, [1, 1, ...m.pick(EXP)]) : m.add(expm1Small(m, r), 1);
}

/** e^(r + lost) - 1 in two parts. */
export function expm1Parts(m: FloatMath, { r, lost }: Reduced): { readonly high: KNode; readonly low: KNode } {
  const square = m.mul(r, r);
  const cube = m.mul(m.mul(square, r), m.poly(r, m.pick(EXPM1)));
  const tail = m.add(m.mul(square, 0.5), m.add(cube, lost));
  const high = m.add(r, tail);
  return { high, low: m.lost(r, tail, high) };
}

/** Arguments where exp is 0 or infinite for certain. */
const EXP_RANGE: Coefficients = { float32: [-104, 89], float64: [-746, 710] };
const EXP2_RANGE: Coefficients = { float32: [-151, 128], float64: [-1076, 1024] };
/** Arguments where expm1 is -1 or infinite. */
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
export function exp2Small(m: FloatMath, r: KNode, lost: KNode | null): KNode {
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
  const power = m.power(reduced.n, -1);
  const base = m.sub(power, 0.5);
  const part = m.mul(power, high);
  const sum = m.add(base, part);
  const rest = m.add(m.sub(m.sub(power, base), 0.5), m.add(m.lost(base, part, sum), m.mul(power, low)));
  const half = m.add(sum, rest);
  return m.where(m.lt(m.abs(x), m.t === 'float32' ? 2 ** -25 : 2 ** -54), x, m.add(half, half));
}

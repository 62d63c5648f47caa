/** Samples over whole floating-point formats, and errors relative to the exact value: what accuracy is measured with. */
import { makeRandom } from './random.ts';

export type FloatType = 'float32' | 'float64';

interface Format {
  /** Digits of the significand. */
  readonly digits: number;
  /** Exponents of the smallest normal number and of the largest. */
  readonly least: number;
  readonly most: number;
}

const formats: Readonly<Record<FloatType, Format>> = {
  float32: { digits: 24, least: -126, most: 127 },
  float64: { digits: 53, least: -1022, most: 1023 },
};

/** The nearest number of the format. */
export function inFormat(type: FloatType, x: number): number {
  return type === 'float32' ? Math.fround(x) : x;
}

/** True for what engines may take for zero: numbers below the normal ones. */
export function isDenormal(type: FloatType, x: number): boolean {
  return x !== 0 && Math.abs(x) < 2 ** formats[type].least;
}

/** One unit in the last place at `x`, that of the smallest normal number below. */
function unitAt(type: FloatType, x: number): number {
  const { digits, least, most } = formats[type];
  const size = Math.abs(x);
  if (!(size >= 2 ** least)) return 2 ** (least - digits + 1);
  let exponent = Math.min(most, Math.floor(Math.log2(size)));
  // Logarithms round.
  if (2 ** exponent > size) exponent--;
  else if (exponent < most && 2 ** (exponent + 1) <= size) exponent++;
  return 2 ** (exponent - digits + 1);
}

/** Error in units in the last place at `size`, by default those of the exact value. Infinity is the number behind the largest. */
export function unitsOff(type: FloatType, actual: number, exact: number, size: number = exact): number {
  const near = inFormat(type, exact);
  if (Number.isNaN(near) || Number.isNaN(actual))
    return Number.isNaN(near) && Number.isNaN(actual) ? 0 : Number.POSITIVE_INFINITY;
  // Halves of large numbers, so that nothing overflows here.
  const scale = Math.max(Math.abs(actual), Math.abs(exact)) > 1 ? 0.5 : 1;
  const limit = 2 ** formats[type].most;
  const clip = (x: number): number => Math.max(-limit, Math.min(limit, x * scale));
  return Math.abs(clip(actual) - clip(exact)) / (unitAt(type, size) * scale);
}

/** Where a function is sampled. */
export interface Range {
  /** Where it bends: most samples lie there. */
  readonly from: number;
  readonly to: number;
  /** Where its formulas change; neighbours are taken on both sides. */
  readonly places?: readonly number[];
}

const neighbours = 6;
/** Draws of each kind: anywhere, near 1, and in the range. */
const draws = 1000;

/** Some thousands of numbers of the format: all exponents and signs, the range densely, places closely, zeros, infinities and NaN. */
export function samples(type: FloatType, { from, to, places = [] }: Range, seed: number): number[] {
  const random = makeRandom(seed);
  const { digits, least, most } = formats[type];
  const out = [0, -0, 1, -1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];
  const largest = (2 - 2 ** (1 - digits)) * 2 ** most;
  const tiny = 2 ** (least - digits + 1);
  out.push(largest, -largest, 2 ** least, -(2 ** least), tiny, -tiny, 2 ** least - tiny, tiny - 2 ** least);
  const sign = (): number => (random() < 0.5 ? -1 : 1);
  const anywhere = (low: number, high: number): number => {
    const exponent = low + Math.floor(random() * (high - low + 1));
    // Two steps: powers of two below the normal numbers lose digits otherwise.
    const half = Math.trunc(exponent / 2);
    return sign() * (1 + random()) * 2 ** half * 2 ** (exponent - half);
  };
  for (let i = 0; i < draws; i++) {
    out.push(anywhere(least - digits + 1, most), anywhere(-30, 10), from + (to - from) * random());
  }
  for (const place of [1, ...places]) {
    const unit = unitAt(type, place);
    for (let k = -neighbours; k <= neighbours; k++) out.push(inFormat(type, place) + k * unit);
  }
  return out.map((x) => inFormat(type, x));
}

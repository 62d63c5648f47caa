/** Functions of numbers whose accuracy docs/numerics.md promises: where they are sampled, what is exact, and the bounds. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { erf, erfc, erfinv, lgamma, logistic, polygamma, pow, softplus } from '../oracle/special.ts';
import type { Range } from '../oracle/units.ts';

export interface AccuracyRow {
  readonly name: string;
  readonly run: (...x: Tensor[]) => Tensor;
  /** In float64. */
  readonly exact: (...x: number[]) => number;
  /** Of each argument. */
  readonly ranges: readonly Range[];
  /** Most units in the last place in float32: on engines with float64, and on others. */
  readonly float32: readonly [number, number];
  /** Most error in float64, in 1e-15 of the value. Left out: not promised, or no reference. */
  readonly float64?: number;
  /** Arguments that count; all if left out. */
  readonly domain?: (...x: number[]) => boolean;
  /** Powers on the way leave the normal numbers where the value does not. */
  readonly powers?: boolean;
  /** What the units are those of; the exact value if left out. */
  readonly size?: (...x: number[]) => number;
}

function row(
  name: string,
  run: (x: Tensor) => Tensor,
  exact: (x: number) => number,
  range: Range,
  float32: readonly [number, number],
  float64?: number,
): AccuracyRow {
  const known = { name, run: (...[x]: Tensor[]) => run(x as Tensor), exact: (...[x]: number[]) => exact(x as number) };
  return { ...known, ranges: [range], float32, ...(float64 === undefined ? {} : { float64 }) };
}

const one = [1, 5] as const;
const two = [2, 5] as const;
const { SQRT2, SQRT1_2, LN2, PI } = Math;
const halves = (step: number, most: number): number[] =>
  Array.from({ length: most }, (_, k) => ((k + 1) * step) / 2).flatMap((x) => [x, -x]);
const wide: Range = { from: -4, to: 4 };
const natural: Range = { from: -105, to: 95, places: [...halves(LN2, 8), 88.72284, -87.33655, -103.97208] };
const unit: Range = { from: -1, to: 1, places: [0.5, -0.5, -1, SQRT1_2, -SQRT1_2] };
const angles: Range = { from: -40, to: 40, places: [...halves(PI / 2, 24), 16367173 * 2 ** 72, 2.5e6, 1e22] };
const positive: Range = { from: 0, to: 20, places: [0.5, 1.4616321, 1.5, 2, 2.5, 6.5, 8.5] };

const primitives: readonly AccuracyRow[] = [
  row('exp', pg.exp, Math.exp, natural, one, 1),
  row('exp2', pg.exp2, (x) => 2 ** x, { from: -152, to: 130, places: [-126, -149, 128, ...halves(1, 6)] }, one, 1),
  row('expm1', pg.expm1, Math.expm1, { ...natural, from: -20 }, one, 1),
  row('log', pg.log, Math.log, { from: 0.2, to: 4, places: [SQRT2, SQRT1_2] }, one, 1),
  row('log2', pg.log2, Math.log2, { from: 0.2, to: 4, places: [SQRT2, SQRT1_2] }, one, 1),
  row('log10', pg.log10, Math.log10, { from: 0.2, to: 4, places: [SQRT2, SQRT1_2, 10, 100, 1000] }, one, 1),
  row('log1p', pg.log1p, Math.log1p, { from: -1, to: 4, places: [-1, SQRT2 - 1, SQRT1_2 - 1, 2 ** -25] }, one, 1),
  row('sin', pg.sin, Math.sin, angles, one, 1),
  row('cos', pg.cos, Math.cos, angles, one, 1),
  row('tan', pg.tan, Math.tan, angles, one, 1),
  row('asin', pg.asin, Math.asin, unit, one, 1),
  row('acos', pg.acos, Math.acos, unit, one, 1),
  row('atan', pg.atan, Math.atan, { ...wide, places: [7 / 16, 11 / 16, 19 / 16, 39 / 16] }, one, 1),
  row('sinh', pg.sinh, Math.sinh, { from: -92, to: 92, places: [-1, 89.41599] }, one, 1),
  row('cosh', pg.cosh, Math.cosh, { from: -92, to: 92, places: [89.41599] }, one, 1),
  row('tanh', pg.tanh, Math.tanh, { from: -11, to: 11, places: [0.625, -0.625, 9.5] }, one, 1),
  row('erf', pg.erf, erf, { ...wide, places: [3.92, -1, -3.92] }, two, 3),
  row('sqrt', pg.sqrt, Math.sqrt, { from: 0, to: 4 }, [0.5000001, 5], 1),
  row('rsqrt', pg.rsqrt, (x) => 1 / Math.sqrt(x), { from: 0, to: 4 }, [1.5, 5], 1),
  row('reciprocal', pg.reciprocal, (x) => 1 / x, wide, [0.5000001, 5], 1),
  {
    name: 'pow',
    run: (...[x, y]) => pg.pow(x as Tensor, y as Tensor),
    exact: (...[x, y]) => pow(x as number, y as number),
    ranges: [
      { from: 0, to: 3 },
      { from: -40, to: 40, places: [0.5, 2, -1, 3] },
    ],
    float32: [2, 2],
    float64: 1,
  },
  {
    name: 'atan2',
    run: (...[y, x]) => pg.atan2(y as Tensor, x as Tensor),
    exact: (...[y, x]) => Math.atan2(y as number, x as number),
    ranges: [wide, wide],
    float32: two,
    float64: 1,
  },
  {
    name: 'fmod',
    run: (...[x, y]) => pg.fmod(x as Tensor, y as Tensor),
    exact: (...[x, y]) => (x as number) % (y as number),
    ranges: [{ from: -1000, to: 1000 }, wide],
    float32: [0, 0],
  },
];

/** A function of the gamma family. Below 0, where the units are those of the reflection formula's terms, it is a row of its own. */
function gamma(
  name: string,
  run: (x: Tensor) => Tensor,
  f: (x: number) => number,
  bounds: readonly [number, number],
): AccuracyRow[] {
  // Next to zeros the oracle is not good enough: known values are there. Poles are whole numbers; suites/special.ts has them.
  const known = (x: number): boolean => !Number.isInteger(x) && !(Math.abs(f(x)) < 1e-5 && Math.abs(x) < 3);
  const [above, below] = bounds;
  const at = row(name, run, f, positive, [above, above]);
  const negative: Range = { from: -12, to: 0, places: [-0.5, -1.5, -10.5] };
  return [
    { ...at, domain: (...[x = 0]) => !(x <= 0) && (x > 3 || known(x)) },
    {
      ...at,
      name: `${name} below 0`,
      ranges: [negative],
      float32: [below, below],
      domain: (...[x = 0]) => x < 0 && x > -500 && known(x),
      size: (...[x = 0]) => Math.max(1, Math.abs(f(1 - x)), Math.abs(f(x))),
    },
  ];
}

const special: readonly AccuracyRow[] = [
  row('erfc', pg.erfc, erfc, { from: -4, to: 10.5, places: [0.5, 10.5] }, [5, 5]),
  row('erfinv', pg.erfinv, erfinv, unit, [5, 5]),
  ...gamma('lgamma', pg.lgamma, lgamma, [5, 5]),
  ...gamma('digamma', pg.digamma, (x) => polygamma(0, x), [5, 5]),
  ...[1, 2, 3].flatMap((n) =>
    gamma(
      `polygamma ${n}`,
      (x) => pg.polygamma(n, x),
      (x) => polygamma(n, x),
      [5 + n, 5 + 2 * n],
    ),
  ),
];

const composedBound = [3, 3] as const;

const composed: readonly AccuracyRow[] = [
  row('sigmoid', pg.sigmoid, logistic, natural, composedBound, 1),
  {
    ...row('silu', pg.silu, (x) => x * logistic(x), natural, composedBound, 1),
    // Farther out the logistic function is below the normal numbers, and has few digits.
    domain: (...[x = 0]) => !(x < -85),
  },
  row('softplus', (x) => pg.softplus(x), softplus, natural, composedBound, 1),
  row('logSigmoid', pg.logSigmoid, (x) => -softplus(-x), natural, composedBound, 1),
  row(
    'elu',
    (x) => pg.elu(x),
    (x) => (x > 0 ? x : Math.expm1(x)),
    natural,
    composedBound,
    1,
  ),
  row('asinh', pg.asinh, Math.asinh, wide, composedBound, 1),
  row('acosh', pg.acosh, Math.acosh, { from: 1, to: 4 }, composedBound, 1),
  row('atanh', pg.atanh, Math.atanh, unit, composedBound, 1),
  row('cbrt', pg.cbrt, Math.cbrt, wide, composedBound, 1),
  {
    name: 'hypot',
    run: (...[x, y]) => pg.hypot(x as Tensor, y as Tensor),
    exact: Math.hypot,
    ranges: [wide, wide],
    float32: composedBound,
    float64: 1,
  },
  {
    name: 'logAddExp',
    run: (...[x, y]) => pg.logAddExp(x as Tensor, y as Tensor),
    exact: (...[x = 0, y = 0]) => (x === y ? x + LN2 : Math.max(x, y) + Math.log1p(Math.exp(-Math.abs(x - y)))),
    ranges: [wide, wide],
    float32: composedBound,
    float64: 1,
    size: (...[x = 0, y = 0]) => Math.max(Math.abs(x), Math.abs(y), 1),
  },
];

export const accuracyRows: readonly AccuracyRow[] = [...primitives, ...special, ...composed];

/** Functions of numbers whose accuracy docs/numerics.md promises: where they are sampled, what is exact, and the bounds. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { binaryRows } from '../operations/elementwise/binary.ts';
import { rowNamed } from '../operations/elementwise/row.ts';
import { unaryRows } from '../operations/elementwise/unary.ts';
import { functionOf } from '../operations/row.ts';
import { polygamma } from '../oracle/special.ts';
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

/** A function of one number, with the formula of its row in operations/. */
function row(name: string, range: Range, float32: readonly [number, number], float64?: number): AccuracyRow {
  const { f } = rowNamed(unaryRows, name);
  return { ...known(name, [range], float32, float64), exact: (...[x]) => f(x as number) };
}

/** The same of two numbers. */
function pair(
  name: string,
  ranges: readonly [Range, Range],
  float32: readonly [number, number],
  float64?: number,
): AccuracyRow {
  const { f } = rowNamed(binaryRows, name);
  return { ...known(name, ranges, float32, float64), exact: (...[x, y]) => f(x as number, y as number, 'float64') };
}

function known(
  name: string,
  ranges: readonly Range[],
  float32: readonly [number, number],
  float64: number | undefined,
): Omit<AccuracyRow, 'exact'> {
  const run = functionOf(name);
  return { name, run: (...x) => run(...x), ranges, float32, ...(float64 === undefined ? {} : { float64 }) };
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
  row('exp', natural, one, 1),
  row('exp2', { from: -152, to: 130, places: [-126, -149, 128, ...halves(1, 6)] }, one, 1),
  row('expm1', { ...natural, from: -20 }, one, 1),
  row('log', { from: 0.2, to: 4, places: [SQRT2, SQRT1_2] }, one, 1),
  row('log2', { from: 0.2, to: 4, places: [SQRT2, SQRT1_2] }, one, 1),
  row('log10', { from: 0.2, to: 4, places: [SQRT2, SQRT1_2, 10, 100, 1000] }, one, 1),
  row('log1p', { from: -1, to: 4, places: [-1, SQRT2 - 1, SQRT1_2 - 1, 2 ** -25] }, one, 1),
  row('sin', angles, one, 1),
  row('cos', angles, one, 1),
  row('tan', angles, one, 1),
  row('asin', unit, one, 1),
  row('acos', unit, one, 1),
  row('atan', { ...wide, places: [7 / 16, 11 / 16, 19 / 16, 39 / 16] }, one, 1),
  row('sinh', { from: -92, to: 92, places: [-1, 89.41599] }, one, 1),
  row('cosh', { from: -92, to: 92, places: [89.41599] }, one, 1),
  row('tanh', { from: -11, to: 11, places: [0.625, -0.625, 9.5] }, one, 1),
  row('erf', { ...wide, places: [3.92, -1, -3.92] }, two, 3),
  row('sqrt', { from: 0, to: 4 }, [0.5000001, 5], 1),
  row('rsqrt', { from: 0, to: 4 }, [1.5, 5], 1),
  row('reciprocal', wide, [0.5000001, 5], 1),
  pair(
    'pow',
    [
      { from: 0, to: 3 },
      { from: -40, to: 40, places: [0.5, 2, -1, 3] },
    ],
    [2, 2],
    1,
  ),
  pair('atan2', [wide, wide], two, 1),
  pair('fmod', [{ from: -1000, to: 1000 }, wide], [0, 0]),
];

/** A function that knows its last value: it is asked several times for one. */
function remembered(f: (x: number) => number): (x: number) => number {
  let last: readonly [x: number, value: number] = [Number.NaN, f(Number.NaN)];
  return (x) => {
    if (!Object.is(x, last[0])) last = [x, f(x)];
    return last[1];
  };
}

/**
 * A function of the gamma family: its order, if it has one, and its bounds. Below 0, where the units are those of the reflection formula's terms,
 * it is a row of its own.
 */
function gamma(name: string, order: number | null, bounds: readonly [number, number]): AccuracyRow[] {
  const f = remembered(order === null ? rowNamed(unaryRows, name).f : (x) => polygamma(order, x));
  // Next to zeros the oracle is not good enough: known values are there. Poles are whole numbers; suites/special.ts has them.
  const known = (x: number): boolean => !Number.isInteger(x) && !(Math.abs(f(x)) < 1e-5 && Math.abs(x) < 3);
  const [above, below] = bounds;
  const at: AccuracyRow =
    order === null
      ? row(name, positive, [above, above])
      : {
          name: `${name} ${order}`,
          run: (...[x]) => pg.polygamma(order, x as Tensor),
          exact: (...[x]) => f(x as number),
          ranges: [positive],
          float32: [above, above],
        };
  const negative: Range = { from: -12, to: 0, places: [-0.5, -1.5, -10.5] };
  return [
    { ...at, domain: (...[x = 0]) => !(x <= 0) && (x > 3 || known(x)) },
    {
      ...at,
      name: `${at.name} below 0`,
      ranges: [negative],
      float32: [below, below],
      domain: (...[x = 0]) => x < 0 && x > -500 && known(x),
      size: (...[x = 0]) => Math.max(1, Math.abs(f(x)), Math.abs(f(1 - x))),
    },
  ];
}

const special: readonly AccuracyRow[] = [
  row('erfc', { from: -4, to: 10.5, places: [0.5, 10.5] }, [5, 5]),
  row('erfinv', unit, [5, 5]),
  ...gamma('lgamma', null, [5, 5]),
  ...gamma('digamma', null, [5, 5]),
  ...[1, 2, 3].flatMap((n) => gamma('polygamma', n, [5 + n, 5 + 2 * n])),
];

const composedBound = [3, 3] as const;

const composed: readonly AccuracyRow[] = [
  row('sigmoid', natural, composedBound, 1),
  {
    ...row('silu', natural, composedBound, 1),
    // Farther out the logistic function is below the normal numbers, and has few digits.
    domain: (...[x = 0]) => !(x < -85),
  },
  row('softplus', natural, composedBound, 1),
  row('logSigmoid', natural, composedBound, 1),
  row('elu', natural, composedBound, 1),
  row('asinh', wide, composedBound, 1),
  row('acosh', { from: 1, to: 4 }, composedBound, 1),
  row('atanh', unit, composedBound, 1),
  row('cbrt', wide, composedBound, 1),
  pair('hypot', [wide, wide], composedBound, 1),
  {
    ...pair('logAddExp', [wide, wide], composedBound, 1),
    size: (...[x = 0, y = 0]) => Math.max(Math.abs(x), Math.abs(y), 1),
  },
];

export const accuracyRows: readonly AccuracyRow[] = [...primitives, ...special, ...composed];

/**
 * Values that are exact whatever stands beside them: logarithms of powers, and remainders and their slopes with special values among the
 * operands. NaN outside of domains, however far.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import type { Target } from '../target.ts';
import { arrayOf } from '../host.ts';
import { makeRandom, type Random } from '../oracle/random.ts';

type Float = 'float32' | 'float64';

interface Exact {
  readonly name: string;
  readonly run: (...xs: [Tensor, Tensor]) => Tensor;
  readonly f: (x: number, y: number) => number;
  readonly draw: (dtype: Float) => readonly (readonly number[])[];
  /** Left out on engines without float64: formulas in float32 alone are within a few units there (docs/numerics.md). */
  readonly needs?: 'float64';
}

/** From `first` to `last`, both included. */
function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

const powersOfTwo = (dtype: Float): number[] =>
  (dtype === 'float32' ? range(-126, 127) : range(-1022, 1023)).map((k) => 2 ** k);
const powersOfTen = (dtype: Float): number[] =>
  (dtype === 'float32' ? range(-37, 38) : range(-307, 308)).map((k) => Number(`1e${k}`));

const specials = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -0, 1, -1];

/** Numbers of 2^-spread .. 2^spread, and one special value among fifty of them. */
function mixed(random: Random, count: number, spread: number): number[] {
  return Array.from({ length: count }, () => {
    const [sign, mantissa, exponent] = [random() < 0.5 ? -1 : 1, 1 + random(), (2 * random() - 1) * spread];
    const special = specials[Math.floor(random() * specials.length)]!;
    return random() < 0.02 ? special : sign * mantissa * 2 ** exponent;
  });
}

/** Pairs of numbers; in a third of them the first is a multiple of the second, or its neighbour. */
function pairs(spread: number): (dtype: Float) => readonly (readonly number[])[] {
  return (dtype) => {
    const random = makeRandom(spread);
    const [a, b] = [mixed(random, 1031, spread), mixed(random, 1031, spread)] as const;
    const step = dtype === 'float32' ? 2 ** -23 : 2 ** -52;
    for (let i = 0; i < a.length; i += 3) a[i] = Math.fround(b[i]!) * (1 + (i % 97)) * (1 + ((i % 9) / 3 - 1) * step);
    return [a, b];
  };
}

/** The rest of a division with the sign of the divisor; a rest of 0 too. */
function modulo(x: number, y: number): number {
  const rest = x % y;
  if (rest === 0) return y < 0 ? -0 : 0;
  return rest < 0 === y < 0 ? rest : rest + y;
}

/** The whole quotient, for quotients of less than 2^50. */
function truncated(x: number, y: number): number {
  return Math.round((x - (x % y)) / y);
}

function floored(x: number, y: number): number {
  const rest = x % y;
  if (Number.isNaN(rest)) return Math.floor(x / y);
  return truncated(x, y) - (rest !== 0 && rest < 0 !== y < 0 ? 1 : 0);
}

/** Numbers far below every domain. */
function below(dtype: Float): readonly (readonly number[])[] {
  const random = makeRandom(7);
  const far = dtype === 'float32' ? 127 : 1023;
  return [Array.from({ length: 515 }, () => -(1 + random()) * 2 ** (random() * far))];
}

/** Slopes by the divisor, where the operands are numbers. */
function divisorSlope(f: (x: Tensor, y: Tensor) => Tensor): (x: Tensor, y: Tensor) => Tensor {
  return (x, y) => pg.grad((d: Tensor) => pg.sum(f(x, d)))(y);
}
const numbered = (f: (x: number, y: number) => number) => (x: number, y: number) =>
  Number.isFinite(x) && y !== 0 && !Number.isNaN(y) ? f(x, y) : Number.NaN;

const rows: readonly Exact[] = [
  { name: 'log2 of powers of two', run: pg.log2, f: Math.log2, draw: (d) => [powersOfTwo(d)] },
  {
    name: 'log10 of powers of ten',
    run: pg.log10,
    f: (x) => Math.round(Math.log10(x)),
    draw: (d) => [powersOfTen(d)],
    needs: 'float64',
  },
  ...[3, 20, 60].flatMap((spread): Exact[] => [
    { name: `fmod of numbers around 2^${spread}`, run: pg.fmod, f: (x, y) => x % y, draw: pairs(spread) },
    { name: `remainder of numbers around 2^${spread}`, run: pg.remainder, f: modulo, draw: pairs(spread) },
  ]),
  { name: 'floorDivide', run: pg.floorDivide, f: floored, draw: pairs(5) },
  { name: 'slope of fmod', run: divisorSlope(pg.fmod), f: numbered((x, y) => -truncated(x, y)), draw: pairs(5) },
  {
    name: 'slope of remainder',
    run: divisorSlope(pg.remainder),
    f: numbered((x, y) => -floored(x, y)),
    draw: pairs(5),
  },
  ...[pg.acosh, pg.log, pg.log2, pg.log10, pg.log1p, pg.sqrt, pg.rsqrt, pg.acos, pg.asin, pg.atanh, pg.erfinv].map(
    (run): Exact => ({
      name: `${run.name} far below its domain`,
      run: (x) => run(x),
      f: () => Number.NaN,
      draw: below,
    }),
  ),
];

async function check(row: Exact, dtype: Float): Promise<undefined> {
  const round = dtype === 'float32' ? Math.fround : (x: number): number => x;
  const args = row.draw(dtype).map((xs) => xs.map(round));
  const result = pg.scope(() => {
    const [x, y] = args.map((data) => pg.tensor(data, { dtype })) as [Tensor, Tensor];
    return row.run(x, y);
  });
  const { data } = await arrayOf(result);
  const [first, second = first] = args as [number[], number[]];
  for (const [i, x] of first.entries()) {
    const expected = round(row.f(x, second[i]!));
    if (data[i] !== expected && !(Number.isNaN(data[i]) && Number.isNaN(expected)))
      throw new Error(
        `element ${i}, of ${args.map((xs) => xs[i]).join(' and ')}, is ${data[i]} where ${expected} is expected`,
      );
  }
}

export function exactCases(target: Target): ConformanceCase[] {
  return rows.flatMap((row) =>
    (['float32', 'float64'] as const)
      .filter((dtype) => target.holds(dtype) && target.holds(row.needs ?? dtype))
      .map((dtype) => ({ name: `exact / ${row.name} / ${dtype}`, run: () => check(row, dtype) })),
  );
}

/** Values and derivatives at special points, up to the second order, forward and reverse: special-points-values.ts says what they are. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import type { Target } from '../target.ts';
import { arrayOf } from '../host.ts';
import { specialPointsTable } from './special-points-values.ts';

/** Numbers of a line of the table, null where nothing is promised. */
function numbers(text: string): (number | null)[] {
  return text.split(' ').map((word) => {
    if (word === '.') return null;
    if (word === 'nan') return Number.NaN;
    return Number(word.replace('inf', 'Infinity'));
  });
}

const lines = specialPointsTable
  .trim()
  .split('\n')
  .map((line) => line.split(' | ') as [name: string, order: string, values: string]);
const specialPoints = numbers(lines[0]![2]) as number[];
const expected = new Map(lines.slice(1).map(([name, order, text]) => [`${name} ${order}`, numbers(text)]));

type Unary = (x: Tensor) => Tensor;

/** Those that are no function of the library by themselves. */
const withOptions: Readonly<Record<string, Unary>> = {
  'softplus with beta': (x) => pg.softplus(x, { beta: 2.5 }),
  'celu with alpha': (x) => pg.celu(x, { alpha: 2 }),
  'gelu tanh': (x) => pg.gelu(x, { approximate: 'tanh' }),
  'pow 3': (x) => pg.pow(x, 3),
  'pow 4': (x) => pg.pow(x, 4),
  'pow 2.5': (x) => pg.pow(x, 2.5),
  'pow -2': (x) => pg.pow(x, -2),
};

const reverse =
  (f: Unary): Unary =>
  (x) =>
    pg.grad((t: Tensor) => pg.sum(f(t)))(x) as Tensor;
const forward =
  (f: Unary): Unary =>
  (x) =>
    pg.jvp(f, [x], [pg.onesLike(x)])[1]!;

/** Relative, and absolute where values are small beside what they are made of. */
const tolerances = {
  float32: { rtol: 2e-5, atol: 1e-6, largest: 2 ** 128 },
  float64: { rtol: 1e-12, atol: 1e-14, largest: Number.MAX_VALUE },
};

async function check(f: Unary, name: string, dtype: 'float32' | 'float64'): Promise<undefined> {
  const round = dtype === 'float32' ? Math.fround : (x: number): number => x;
  const { rtol, atol, largest } = tolerances[dtype];
  const ways: readonly (readonly [way: string, order: 0 | 1 | 2, f: Unary])[] = [
    ['the value', 0, f],
    ['the derivative', 1, reverse(f)],
    ['the derivative, forward,', 1, forward(f)],
    ['the second derivative', 2, reverse(reverse(f))],
    ['the second derivative, forward over reverse,', 2, forward(reverse(f))],
  ];
  // Recorded together: one program for all.
  const x = pg.tensor([...specialPoints], { dtype });
  const results = ways.map(([, , run]) => pg.scope(() => run(x)));
  const halfSquare: Unary = (t) => pg.mul(pg.square(f(t)), 0.5);
  const bent = dtype === 'float64' ? pg.scope(() => reverse(reverse(halfSquare))(x)) : null;
  pg.dispose(x);
  for (const [at, [way, order]] of ways.entries()) {
    const values = expected.get(`${name} ${order}`)!;
    const { data } = await arrayOf(results[at]!);
    specialPoints.forEach((point, i) => {
      const exact = values[i]!;
      if (exact === null) return;
      const [got, wanted] = [data[i]!, round(exact)];
      if (Object.is(got, wanted) || Math.abs(got - wanted) <= rtol * Math.abs(wanted) + atol) return;
      // At the end of the range one rounding decides.
      const [a, b] = [got, wanted].map((v) => Math.sign(v) * Math.min(Math.abs(v), largest)) as [number, number];
      if (Math.abs(a) > largest / 2 && Math.abs(a - b) <= rtol * largest) return;
      throw new Error(`${way} at ${Object.is(point, -0) ? '-0' : point} is ${got} where ${wanted} is expected`);
    });
  }
  if (bent !== null) await checkBent(name, bent);
}

/**
 * The second derivative of f^2 / 2 is f'^2 + f f''. That of f alone comes from gradients that nothing was multiplied by: it does not see what becomes of NaN
 * and infinity in a rule where the gradient that comes in is differentiated.
 */
async function checkBent(name: string, result: Tensor): Promise<void> {
  const { data } = await arrayOf(result);
  const { rtol, atol } = tolerances.float64;
  specialPoints.forEach((point, i) => {
    const [y, slope, curve] = [0, 1, 2].map((order) => expected.get(`${name} ${order}`)![i]!);
    if (![y, slope, curve].every(Number.isFinite)) return;
    const [a, b] = [slope! ** 2, y! * curve!];
    if (Math.abs(data[i]! - (a + b)) <= rtol * (a + Math.abs(b)) + atol || data[i] === a + b) return;
    throw new Error(`the second derivative of half its square at ${point} is ${data[i]} where ${a + b} is expected`);
  });
}

export function specialPointCases(target: Target): ConformanceCase[] {
  return [...new Set(lines.slice(1).map(([name]) => name))].flatMap((name) => {
    const f = withOptions[name] ?? (pg as unknown as Readonly<Record<string, Unary>>)[name]!;
    return (['float32', 'float64'] as const)
      .filter((dtype) => target.holds(dtype))
      .map((dtype) => ({ name: `special points / ${name} / ${dtype}`, run: () => check(f, name, dtype) }));
  });
}

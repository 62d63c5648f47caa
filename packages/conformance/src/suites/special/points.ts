/** Values and derivatives at special points, up to the second order, forward and reverse: points-values.ts says what they are. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../../case.ts';
import type { Target } from '../../target.ts';
import { arrayOf } from '../../host.ts';
import { specialPointsTable } from './points-values.ts';
import { checkEntry, readTable, showPoint, specialTolerances } from './table.ts';

const { points, names, values: expected } = readTable(specialPointsTable);

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
    pg.grad((t: Tensor) => pg.sum(f(t)))(x);
const forward =
  (f: Unary): Unary =>
  (x) =>
    pg.jvp(f, [x], [pg.onesLike(x)])[1]!;

async function check(f: Unary, name: string, dtype: 'float32' | 'float64'): Promise<undefined> {
  const ways: readonly (readonly [way: string, order: 0 | 1 | 2, f: Unary])[] = [
    ['the value', 0, f],
    ['the derivative', 1, reverse(f)],
    ['the derivative, forward,', 1, forward(f)],
    ['the second derivative', 2, reverse(reverse(f))],
    ['the second derivative, forward over reverse,', 2, forward(reverse(f))],
  ];
  // Recorded together: one program for all.
  const x = pg.tensor([...points], { dtype });
  const results = ways.map(([, , run]) => pg.scope(() => run(x)));
  const halfSquare: Unary = (t) => pg.mul(pg.square(f(t)), 0.5);
  const bent = dtype === 'float64' ? pg.scope(() => reverse(reverse(halfSquare))(x)) : null;
  pg.dispose(x);
  for (const [at, [way, order]] of ways.entries()) {
    const { data } = await arrayOf(results[at]!);
    for (const [i, exact] of expected(name, order).entries())
      checkEntry(data[i]!, exact, dtype, () => `${way} at ${showPoint(points[i]!)}`);
  }
  if (bent !== null) await checkBent(name, bent);
}

/**
 * The second derivative of f^2 / 2 is f'^2 + f f''. That of f alone comes from gradients that nothing was multiplied by: it does not see what becomes of NaN
 * and infinity in a rule where the gradient that comes in is differentiated.
 */
async function checkBent(name: string, result: Tensor): Promise<void> {
  const { data } = await arrayOf(result);
  const { rtol, atol } = specialTolerances.float64;
  points.forEach((point, i) => {
    const [y, slope, curve] = [0, 1, 2].map((order) => expected(name, order)[i]!);
    if (![y, slope, curve].every(Number.isFinite)) return;
    const [a, b] = [slope! ** 2, y! * curve!];
    if (Math.abs(data[i]! - (a + b)) <= rtol * (a + Math.abs(b)) + atol || data[i] === a + b) return;
    throw new Error(`the second derivative of half its square at ${point} is ${data[i]} where ${a + b} is expected`);
  });
}

export function specialPointCases(target: Target): ConformanceCase[] {
  return names.flatMap((name) => {
    const f = withOptions[name] ?? (pg as unknown as Readonly<Record<string, Unary>>)[name]!;
    return (['float32', 'float64'] as const)
      .filter((dtype) => target.holds(dtype))
      .map((dtype) => ({ name: `special points / ${name} / ${dtype}`, run: () => check(f, name, dtype) }));
  });
}

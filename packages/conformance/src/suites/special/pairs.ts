/** Functions of two numbers, and losses, at special points: values and derivatives up to the second order. pairs-values.ts says what they are. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../../case.ts';
import type { Target } from '../../target.ts';
import { arrayOf } from '../../host.ts';
import { specialPairsTable } from './pairs-values.ts';
import { checkEntry, readTable, showPoint } from './table.ts';

const table = readTable(specialPairsTable);
const first = table.points.flatMap((p) => table.points.map(() => p));
const second = table.points.flatMap(() => table.points);

type Binary = (a: Tensor, b: Tensor) => Tensor;

/** Those that are no function of the library by themselves; losses are those of elements. */
const withOptions: Readonly<Record<string, Binary>> = {
  'smoothL1Loss with beta': (a, b) => pg.smoothL1Loss(a, b, { reduction: 'none', beta: 2 }),
  'binaryCrossEntropyWithLogits with posWeight': (a, b) =>
    pg.binaryCrossEntropyWithLogits(a, b, { reduction: 'none', posWeight: 3 }),
  // One class a row: its mean is the loss of the element.
  multiLabelSoftMarginLoss: (a, b) =>
    pg.multiLabelSoftMarginLoss(pg.unsqueeze(a, -1), pg.unsqueeze(b, -1), { reduction: 'none' }),
  'poissonNllLoss of rates': (a, b) => pg.poissonNllLoss(a, b, { reduction: 'none', logInput: false }),
  gaussianNllLoss: (a, b) => pg.gaussianNllLoss(a, pg.zerosLike(a), b, { reduction: 'none' }),
  'klDiv with logTarget': (a, b) => pg.klDiv(a, b, { reduction: 'none', logTarget: true }),
};

function functionOf(name: string): Binary {
  const own = withOptions[name];
  if (own !== undefined) return own;
  const f = (pg as unknown as Readonly<Record<string, (...args: unknown[]) => Tensor>>)[name]!;
  return name.endsWith('Loss') || name === 'klDiv' || name === 'binaryCrossEntropyWithLogits'
    ? (a, b) => f(a, b, { reduction: 'none' })
    : (a, b) => f(a, b);
}

/** The derivative by one of both numbers, element by element. */
const by =
  (f: Binary, which: 0 | 1): Binary =>
  (a, b) =>
    pg.grad((x: Tensor, y: Tensor) => pg.sum(f(x, y)), { argnums: which })(a, b);

/**
 * Numbers below the normal ones: devices may take them for 0, and in float32 their reciprocals, and their products with slopes, leave the range. So only
 * values are compared there.
 */
const isDenormal = (x: number): boolean => x !== 0 && Math.abs(x) < 2 ** -126;
/** A power whose slopes are those of x^-2 times y: out of range, though x^y and the product are not. */
const isTinyPower = (x: number, y: number): boolean => Math.abs(x) < 1e-20 && y !== 0 && Math.abs(y) < 1e-20;
/**
 * A finite number beyond 2^126 beside another, or beside the smallest normal one: a step of a derivative may be the reciprocal of the first, or a part of the
 * other. It is below the normal numbers then, and multiplied by the first. Devices that take the step for 0 lose a term of any size.
 */
function isLostStep(p: number, q: number): boolean {
  const [less, more] = [Math.abs(p), Math.abs(q)].sort((x, y) => x - y) as [number, number];
  return more > 2 ** 126 && more < Number.POSITIVE_INFINITY && (less > 2 ** 126 || less === 2 ** -126);
}

function isCompared(name: string, order: string, at: number, dtype: 'float32' | 'float64', flushes: boolean): boolean {
  if (dtype === 'float64') return true;
  const [p, q] = [first[at]!, second[at]!];
  if (isDenormal(p) || isDenormal(q)) return order === 'f' && !flushes;
  if (flushes && order !== 'f' && isLostStep(p, q)) return false;
  return order === 'f' || name !== 'pow' || !isTinyPower(p, q);
}

async function check(name: string, dtype: 'float32' | 'float64', flushes: boolean): Promise<undefined> {
  const f = functionOf(name);
  const ways: readonly (readonly [order: string, f: Binary])[] = [
    ['f', f],
    ['fa', by(f, 0)],
    ['fb', by(f, 1)],
    ['faa', by(by(f, 0), 0)],
    ['fab', by(by(f, 0), 1)],
    ['fab', by(by(f, 1), 0)],
    ['fbb', by(by(f, 1), 1)],
  ];
  // Recorded together: one program for all.
  const [a, b] = [pg.tensor(first, { dtype }), pg.tensor(second, { dtype })];
  const results = ways.map(([, run]) => pg.scope(() => run(a, b)));
  pg.dispose([a, b]);
  for (const [at, [order]] of ways.entries()) {
    const { data } = await arrayOf(results[at]!);
    for (const [i, exact] of table.values(name, order).entries())
      if (isCompared(name, order, i, dtype, flushes))
        checkEntry(data[i]!, exact, dtype, () => `${order} at (${showPoint(first[i]!)}, ${showPoint(second[i]!)})`);
  }
}

export function specialPairCases(target: Target): ConformanceCase[] {
  return table.names.flatMap((name) =>
    (['float32', 'float64'] as const)
      .filter((dtype) => target.holds(dtype))
      .map((dtype) => ({
        name: `special points / ${name} / ${dtype}`,
        run: () => check(name, dtype, target.flushesDenormals),
      })),
  );
}

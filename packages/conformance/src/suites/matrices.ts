/** Cholesky's factor and triangular equations (`@polygrad/core/linear-algebra`), beside loops in float64: specs without a row. */
import { cholesky, triangularSolve } from '@polygrad/core/linear-algebra';
import { matmul } from '../oracle/linear.ts';
import { at, build, count, type NDArray, nd } from '../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../oracle/random.ts';
import { floats, type OpSpec } from '../spec.ts';

/** A matrix of a batch, as rows. */
function rowsOf(x: NDArray, which: number, columns: number): number[][] {
  const rows = x.shape.at(-2)!;
  return Array.from({ length: rows }, (_, i) =>
    Array.from({ length: columns }, (_, j) => x.data[(which * rows + i) * columns + j]!),
  );
}

function each(x: NDArray, f: (rows: number[][]) => number[][]): NDArray {
  const n = x.shape.at(-1)!;
  const matrices = Array.from({ length: count(x.shape.slice(0, -2)) }, (_, which) => f(rowsOf(x, which, n)).flat());
  return nd(x.shape, matrices.flat());
}

/** The lower triangle L with L Lᵀ the symmetric part of a. */
function factorOf(a: readonly (readonly number[])[]): number[][] {
  const l = a.map((row) => row.map(() => 0));
  for (let i = 0; i < a.length; i++)
    for (let j = 0; j <= i; j++) {
      let rest = (a[i]![j]! + a[j]![i]!) / 2;
      for (let k = 0; k < j; k++) rest -= l[i]![k]! * l[j]![k]!;
      l[i]![j] = i === j ? Math.sqrt(rest) : rest / l[j]![j]!;
    }
  return l;
}

/** x xᵀ / n + 1, which is positive definite. */
function definite(r: Random, shape: readonly number[]): NDArray {
  const n = shape.at(-1)!;
  const x = sample(r, shape, uniform(-1, 1));
  const turned = build(shape, (index) => at(x, [...index.slice(0, -2), index.at(-1)!, index.at(-2)!]));
  const product = matmul(x, turned);
  return build(shape, (index) => at(product, index) / n + (index.at(-1) === index.at(-2) ? 1 : 0));
}

const factors = (upper: boolean): OpSpec => ({
  name: `cholesky${upper ? ', upper' : ''}`,
  dtypes: floats,
  more: [],
  instances: [
    [1, 1],
    [3, 3],
    [2, 2, 2],
    [32, 32],
    [3, 33, 33],
    [70, 70],
  ].map((shape) => ({
    label: `[${shape.join(', ')}]`,
    small: count(shape) <= 9,
    draw: (r: Random) => [definite(r, shape)],
  })),
  run: ([x]) => cholesky(x!, { upper }),
  oracle: ([x]) =>
    each(x!, (rows) => {
      const l = factorOf(rows);
      return upper ? l.map((_, i) => l.map((row) => row[i]!)) : l;
    }),
  terms: ([x]) => 4 * x!.shape.at(-1)!,
  gradient: { of: [0], order: 2 },
});

/** Solves a x = b row by row, for every column. */
function substituted(a: readonly number[][], b: readonly number[][], upper: boolean, ones: boolean): number[][] {
  const x = b.map((row) => row.map(() => 0));
  const order = a.map((_, i) => (upper ? a.length - 1 - i : i));
  for (const i of order)
    for (const column of b[0]!.keys()) {
      let rest = b[i]![column]!;
      for (const j of order) if (upper ? j > i : j < i) rest -= a[i]![j]! * x[j]![column]!;
      x[i]![column] = ones ? rest : rest / a[i]![i]!;
    }
  return x;
}

const equations = (upper: boolean, unitDiagonal: boolean): OpSpec => ({
  name: `triangularSolve${upper ? ', upper' : ''}${unitDiagonal ? ', ones' : ''}`,
  dtypes: floats,
  more: [],
  instances: [
    [[1, 1], 1],
    [[3, 3], 2],
    [[2, 2, 2], 3],
    [[32, 32], 4],
    [[2, 33, 33], 5],
    [[70, 70], 1],
  ].map(([shape, columns]) => ({
    label: `[${(shape as number[]).join(', ')}], ${columns as number} columns`,
    small: count(shape as number[]) <= 9,
    draw: (r: Random) => [
      definite(r, shape as number[]),
      sample(r, [...(shape as number[]).slice(0, -1), columns as number], uniform(-1, 1)),
    ],
  })),
  run: ([a, b]) => triangularSolve(a!, b!, { upper, unitDiagonal }),
  oracle: ([a, b]) => {
    const [n, columns] = [a!.shape.at(-1)!, b!.shape.at(-1)!];
    const found = Array.from({ length: count(a!.shape.slice(0, -2)) }, (_, which) =>
      substituted(rowsOf(a!, which, n), rowsOf(b!, which, columns), upper, unitDiagonal).flat(),
    );
    return nd(b!.shape, found.flat());
  },
  terms: ([a]) => 4 * a!.shape.at(-1)!,
  gradient: { of: [0, 1], order: 2 },
});

export function matrixSpecs(): OpSpec[] {
  return [
    factors(false),
    factors(true),
    equations(false, false),
    equations(true, false),
    equations(false, true),
    equations(true, true),
  ];
}

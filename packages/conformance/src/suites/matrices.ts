/**
 * Factors, equations, determinants, least squares, eigenvalues and singular values (`@polygrad/core/linear-algebra`), beside loops in float64: specs without a row.
 */
import { square, transpose } from '@polygrad/core/functions';
import {
  cholesky,
  det,
  eigh,
  inv,
  lstsq,
  pinv,
  qr,
  slogDet,
  solve,
  svd,
  triangularSolve,
} from '@polygrad/core/linear-algebra';
import type { Tensor } from '@polygrad/core';
import { gamma } from '../compare.ts';
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

/** A matrix as far from singular as those of `definite`, whose rows need exchanging. */
function general(r: Random, shape: readonly number[]): NDArray {
  const x = definite(r, shape);
  const n = shape.at(-1)!;
  return build(shape, (index) => at(x, [...index.slice(0, -2), (index.at(-2)! + (n >> 1)) % n, index.at(-1)!]));
}

/** Solves a x = b by Gauss-Jordan with exchanged rows; also the sign of the determinant and the logarithm of its magnitude. */
function eliminated(a: readonly number[][], b: readonly number[][]): { x: number[][]; sign: number; log: number } {
  const rows = a.map((row, i) => [...row, ...b[i]!]);
  let [sign, log] = [1, 0];
  for (let c = 0; c < a.length; c++) {
    let p = c;
    for (let i = c + 1; i < a.length; i++) if (Math.abs(rows[i]![c]!) > Math.abs(rows[p]![c]!)) p = i;
    const line = rows[p]!;
    if (p !== c) sign = -sign;
    rows[p] = rows[c]!;
    const pivot = line[c]!;
    sign *= Math.sign(pivot);
    log += Math.log(Math.abs(pivot));
    rows[c] = line.map((value) => value / pivot);
    for (let i = 0; i < a.length; i++) {
      const factor = rows[i]![c]!;
      if (i !== c) rows[i] = rows[i]!.map((value, j) => value - factor * rows[c]![j]!);
    }
  }
  return { x: rows.map((row) => row.slice(a.length)), sign, log };
}

const identity = (n: number): number[][] =>
  Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => (i === j ? 1 : 0)));

/** What elimination makes of each matrix of a batch. */
function eliminatedEach(a: NDArray, b: NDArray | null): readonly ReturnType<typeof eliminated>[] {
  const n = a.shape.at(-1)!;
  const one = identity(n);
  return Array.from({ length: count(a.shape.slice(0, -2)) }, (_, which) =>
    eliminated(rowsOf(a, which, n), b === null ? one : rowsOf(b, which, b.shape.at(-1)!)),
  );
}

const shapes: readonly (readonly number[])[] = [
  [1, 1],
  [3, 3],
  [2, 2, 2],
  [4, 4],
  [32, 32],
  [2, 33, 33],
  [70, 70],
];

/** A function of general matrices, and of a right side where there is one. */
const ofGeneral = (
  name: string,
  columns: number,
  run: OpSpec['run'],
  oracle: (a: NDArray, b: NDArray | null) => NDArray,
): OpSpec => ({
  name,
  dtypes: floats,
  more: [],
  instances: shapes.map((shape) => ({
    label: `[${shape.join(', ')}]`,
    small: count(shape) <= 16,
    draw: (r: Random) => [
      general(r, shape),
      ...(columns === 0 ? [] : [sample(r, [...shape.slice(0, -1), columns], uniform(-1, 1))]),
    ],
  })),
  run,
  oracle: ([a, b]) => oracle(a!, b ?? null),
  terms: ([a]) => 4 * a!.shape.at(-1)!,
  gradient: { of: columns === 0 ? [0] : [0, 1], order: 2 },
});

const generals: readonly OpSpec[] = [
  ofGeneral(
    'solve',
    3,
    ([a, b]) => solve(a!, b!),
    (a, b) =>
      nd(
        b!.shape,
        eliminatedEach(a, b).flatMap(({ x }) => x.flat()),
      ),
  ), // prettier-ignore
  ofGeneral(
    'inv',
    0,
    ([a]) => inv(a!),
    (a) =>
      nd(
        a.shape,
        eliminatedEach(a, null).flatMap(({ x }) => x.flat()),
      ),
  ),
  ofGeneral(
    'det',
    0,
    ([a]) => det(a!),
    (a) =>
      nd(
        a.shape.slice(0, -2),
        eliminatedEach(a, null).map(({ sign, log }) => sign * Math.exp(log)),
      ),
  ), // prettier-ignore
  ofGeneral(
    'slogDet',
    0,
    ([a]) => slogDet(a!).logAbsDet,
    (a) =>
      nd(
        a.shape.slice(0, -2),
        eliminatedEach(a, null).map(({ log }) => log),
      ),
  ), // prettier-ignore
];

/**
 * What elimination in float32 may lose of results that are near to `result`, element by element: matrices near to singular ones lose more. For solutions x of a x = b, and for inverses,
 * it is |a⁻¹| |a| |x|, times 4 n roundings. Source: Higham, "Accuracy and Stability of Numerical Algorithms" (2002), theorem 9.5, with factors near those of partial
 * pivoting; a determinant loses its own magnitude times the trace of |a⁻¹| |a|.
 */
export function lostByElimination(a: NDArray, result: NDArray): NDArray {
  const n = a.shape.at(-1)!;
  const size = (x: number[][]): number[][] => x.map((row) => row.map(Math.abs));
  const times = (x: number[][], y: number[][]): number[][] =>
    x.map((row) => y[0]!.map((_, j) => row.reduce((sum, value, k) => sum + value * y[k]![j]!, 0)));
  const bound = gamma(4 * n);
  const lost = eliminatedEach(a, null).flatMap(({ x: inverse }, which) => {
    const spread = times(size(inverse), size(rowsOf(a, which, n)));
    if (result.shape.length < a.shape.length)
      return [bound * Math.abs(result.data[which]!) * spread.reduce((sum, row, i) => sum + row[i]!, 0)];
    return times(spread, size(rowsOf(result, which, result.shape.at(-1)!))).flatMap((row) => row.map((x) => bound * x));
  });
  return nd(result.shape, lost);
}

/** Factors by Householder's reflections, row by row as LAPACK: orthonormal columns and a triangle, of as many rows as columns or more. */
function reflected(a: readonly number[][]): { q: number[][]; r: number[][] } {
  const [m, n] = [a.length, a[0]!.length];
  const r = a.map((row) => [...row]);
  const q = identity(a.length);
  for (let c = 0; c < Math.min(n, m - 1); c++) {
    const norm = Math.hypot(...r.slice(c).map((row) => row[c]!));
    const first = r[c]![c]!;
    const v = r.map((row, i) => (i < c ? 0 : i === c ? first + (first < 0 ? -norm : norm) : row[c]!));
    const squares = v.reduce((sum, x) => sum + x * x, 0);
    for (let j = 0; j < n; j++) {
      const product = v.reduce((sum, x, i) => sum + x * r[i]![j]!, 0);
      for (let i = c; i < m; i++) r[i]![j]! -= (2 * product * v[i]!) / squares;
    }
    for (const row of q) {
      const product = v.reduce((sum, x, i) => sum + x * row[i]!, 0);
      for (let i = c; i < m; i++) row[i]! -= (2 * product * v[i]!) / squares;
    }
  }
  const square = r.slice(0, n).map((row, i) => row.map((value, j) => (j < i ? 0 : value)));
  return { q: q.map((row) => row.slice(0, n)), r: square };
}

/** What is as far from dependent columns as the matrices of `general`, with rows below. */
function tall(r: Random, shape: readonly number[]): NDArray {
  const [batch, [m, n]] = [shape.slice(0, -2), shape.slice(-2) as [number, number]];
  const x = general(r, [...batch, m, m]);
  return build([...batch, m, n], (index) => at(x, index));
}

/** A function of matrices with independent columns. */
const ofColumns = (
  name: string,
  columns: number,
  run: OpSpec['run'],
  oracle: (a: number[][], b: number[][] | null) => number[][],
): OpSpec => ({
  name,
  dtypes: floats,
  more: [],
  instances: [
    [1, 1],
    [3, 2],
    [2, 2, 2],
    [33, 17],
    [2, 20, 20],
    [100, 5],
  ].map((shape) => ({
    label: `[${shape.join(', ')}]`,
    small: count(shape) <= 9,
    draw: (r: Random) => [
      tall(r, shape),
      ...(columns === 0 ? [] : [sample(r, [...shape.slice(0, -1), columns], uniform(-1, 1))]),
    ],
  })),
  run,
  oracle: ([a, b]) => {
    const [batch, n] = [a!.shape.slice(0, -2), a!.shape.at(-1)!];
    const found = Array.from({ length: count(batch) }, (_, which) =>
      oracle(rowsOf(a!, which, n), b === undefined ? null : rowsOf(b, which, columns)),
    );
    return nd([...batch, found[0]!.length, found[0]![0]!.length], found.flat(2));
  },
  terms: ([a]) => 4 * a!.shape.at(-2)!,
  gradient: { of: columns === 0 ? [0] : [0, 1], order: 2 },
});

const columnSpecs: readonly OpSpec[] = [
  ofColumns(
    'qr, columns',
    0,
    ([a]) => qr(a!).q,
    (a) => reflected(a).q,
  ), // prettier-ignore
  ofColumns(
    'qr, triangle',
    0,
    ([a]) => qr(a!, { mode: 'r' }).r,
    (a) => reflected(a).r,
  ), // prettier-ignore
  ofColumns(
    'lstsq',
    2,
    ([a, b]) => lstsq(a!, b!),
    (a, b) => {
      const { q, r } = reflected(a);
      const products = r.map((_, i) => b![0]!.map((_, j) => q.reduce((sum, row, k) => sum + row[i]! * b![k]![j]!, 0)));
      return substituted(r, products, true, false);
    },
  ),
];

/** Eigenvalues of a symmetric matrix in ascending order and their vectors, as rows, by Jacobi's rotations. */
function rotated(a: readonly (readonly number[])[]): { values: number[]; vectors: number[][] } {
  const n = a.length;
  const x = a.map((row) => [...row]);
  const v = identity(n);
  const turn = (one: number[], other: number[], cos: number, sin: number): void => {
    for (const j of one.keys()) [one[j], other[j]] = [cos * one[j]! - sin * other[j]!, sin * one[j]! + cos * other[j]!];
  };
  for (let sweep = 0; sweep < 12; sweep++)
    for (let p = 0; p < n; p++)
      for (let q = p + 1; q < n; q++) {
        const angle = Math.atan2(2 * x[p]![q]!, x[q]![q]! - x[p]![p]!) / 2;
        const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
        turn(x[p]!, x[q]!, cos, sin);
        for (const row of x) [row[p], row[q]] = [cos * row[p]! - sin * row[q]!, sin * row[p]! + cos * row[q]!];
        turn(v[p]!, v[q]!, cos, sin);
      }
  const order = [...x.keys()].sort((i, j) => x[i]![i]! - x[j]![j]!);
  return { values: order.map((i) => x[i]![i]!), vectors: order.map((i) => v[i]!) };
}

/** A matrix whose eigenvalues, and singular values, lie about 1 apart, so that their vectors are as exact as they are. */
function spread(r: Random, shape: readonly number[]): NDArray {
  const x = sample(r, shape, uniform(-0.3, 0.3));
  return build(shape, (index) => at(x, index) + (index.at(-1) === index.at(-2) ? index.at(-1)! + 1 : 0));
}

/** The transpose. */
const across = (a: readonly (readonly number[])[]): number[][] => a[0]!.map((_, j) => a.map((row) => row[j]!));

const product = (a: readonly (readonly number[])[], b: readonly (readonly number[])[]): number[][] =>
  a.map((row) => across(b).map((column) => row.reduce((sum, x, k) => sum + x * column[k]!, 0)));

/** A function of matrices one by one; vectors are compared by their squares, which have no sign to choose. */
const ofSpread = (
  name: string,
  shapes: readonly (readonly number[])[],
  run: (a: Tensor) => Tensor,
  oracle: (a: number[][]) => number[] | number[][],
): OpSpec<1> => ({
  name,
  dtypes: floats,
  more: [],
  instances: shapes.map((shape) => ({
    label: `[${shape.join(', ')}]`,
    small: count(shape) <= 9,
    draw: (r: Random) => [spread(r, shape)],
  })),
  run: ([a]) => run(a),
  oracle: ([a]) => {
    const batch = a.shape.slice(0, -2);
    const found = Array.from({ length: count(batch) }, (_, which) => oracle(rowsOf(a, which, a.shape.at(-1)!)));
    const [first] = found as [number[] | number[][]];
    const inner = typeof first[0] === 'number' ? [first.length] : [first.length, (first[0] as number[]).length];
    return nd([...batch, ...inner], found.flat(2));
  },
  terms: ([a]) => 4 * Math.max(...a.shape.slice(-2)),
  gradient: { of: [0], order: 2 },
});

const squares: readonly (readonly number[])[] = [
  [1, 1],
  [3, 3],
  [2, 2, 2],
  [2, 17, 17],
  [40, 40],
];
const oblongs: readonly (readonly number[])[] = [
  [1, 1],
  [3, 2],
  [2, 2, 2],
  [2, 4],
  [2, 20, 11],
  [15, 33],
];

/** The symmetric matrix of which `eigh` reads the lower triangle. */
const symmetric = (a: readonly (readonly number[])[]): number[][] =>
  a.map((row, i) => row.map((_, j) => a[Math.max(i, j)]![Math.min(i, j)]!));

/** Singular values in descending order, of the fewer rows or columns, with vectors of these. */
function singularOf(a: readonly (readonly number[])[]): { values: number[]; vectors: number[][] } {
  const other = across(a);
  const { values, vectors } = rotated(a.length < other.length ? product(a, other) : product(other, a));
  return { values: values.map(Math.sqrt).reverse(), vectors: vectors.reverse() };
}

const spectralSpecs: readonly OpSpec[] = [
  ofSpread(
    'eigh, values',
    squares,
    (a) => eigh(a).values,
    (a) => rotated(symmetric(a)).values,
  ),
  ofSpread(
    'eigh, vectors',
    squares,
    (a) => square(eigh(a).vectors),
    (a) => across(rotated(symmetric(a)).vectors).map((row) => row.map((x) => x * x)),
  ),
  ofSpread(
    'svd, values',
    oblongs,
    (a) => svd(a).s,
    (a) => singularOf(a).values,
  ),
  ofSpread(
    'svd, vectors',
    oblongs,
    (a) => {
      const { u, vt } = svd(a);
      return square(a.shape.at(-2)! < a.shape.at(-1)! ? transpose(u) : vt);
    },
    (a) => singularOf(a).vectors.map((row) => row.map((x) => x * x)),
  ),
  ofSpread(
    'pinv',
    oblongs,
    (a) => pinv(a),
    (a) => {
      const [m, other] = [a.length, across(a)];
      const inverse = (x: number[][]): number[][] => eliminated(x, identity(x.length)).x;
      return m < other.length ? product(other, inverse(product(a, other))) : product(inverse(product(other, a)), other);
    },
  ),
];

export function matrixSpecs(): OpSpec[] {
  return [
    factors(false),
    factors(true),
    equations(false, false),
    equations(true, false),
    equations(false, true),
    equations(true, true),
    ...generals,
    ...columnSpecs,
    ...spectralSpecs,
  ];
}

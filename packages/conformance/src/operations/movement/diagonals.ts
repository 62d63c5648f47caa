/** Triangles and diagonals of matrices, taken and put. */
import * as pg from '@polygrad/core';
import { at, build, nd } from '../../oracle/ndarray.ts';
import { integer, sample } from '../../oracle/random.ts';
import { operand, sums } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool } from '../../programs/pool.ts';
import type { Value } from '../../programs/program.ts';
import type { OpSpec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { type Move, moved, movementRow, moveSpec, part } from './row.ts';

function diag(pool: Pool): Made | null {
  const x = pool.pick((v) => (v.shape.length === 1 || v.shape.length === 2) && v.data.length < 100);
  if (x === null) return null;
  const offset = pool.c.pick([0, 1, -1, -2]);
  const [low, high] = [Math.max(0, -offset), Math.max(0, offset)];
  const n = x.shape.length === 1 ? x.data.length + Math.abs(offset) : 0;
  const size = n > 0 ? n : Math.max(0, Math.min(x.shape[0]! - low, (x.shape[1] ?? 0) - high));
  return moved(x, [{ offset }], (a) =>
    x.shape.length === 1
      ? build([n, n], ([i, j]) => (j - i === offset ? a.data[Math.min(i, j)]! : 0))
      : build([size], ([i]) => at(a, [i + low, i + high])),
  );
}

function trace(pool: Pool): Made | null {
  const x = operand(pool, 2, 8, (v) => isFloat(v.dtype) || v.dtype === 'int32');
  if (x === null) return null;
  const offset = pool.c.pick([0, 1, -1]);
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  return {
    ...moved(x, offset === 0 ? [] : [{ offset }], (a) =>
      build(x.shape.slice(0, -2), (index) => {
        let sum = 0;
        for (let i = 0; i < rows; i++)
          if (i + offset >= 0 && i + offset < columns) sum += at(a, [...index, i, i + offset]);
        return sum;
      }),
    ),
    ...sums(x.dtype),
  };
}

const offsets = [0, 1, -2];
const diagonals = (offset: number): Move[] => [
  {
    name: `diag of a vector, offset ${offset}`,
    shape: [3],
    run: (x) => pg.diag(x, { offset }),
    f: (x) =>
      build([3 + Math.abs(offset), 3 + Math.abs(offset)], ([r, c]) => (c - r === offset ? at(x, [Math.min(r, c)]) : 0)),
  },
  {
    name: `diag of a matrix, offset ${offset}`,
    shape: [4, 3],
    run: (x) => pg.diag(x, { offset }),
    f: (x) => {
      const on: number[] = [];
      for (let r = 0; r < 4; r++) if (r + offset >= 0 && r + offset < 3) on.push(at(x, [r, r + offset]));
      return nd([on.length], on);
    },
  },
];

const embedded = (offset: number): Move[] => [
  {
    name: `diagEmbed, offset ${offset}`,
    shape: [2, 2],
    run: (x) => pg.diagEmbed(x, { offset, axis1: 0, axis2: -1 }),
    f: (x) =>
      build([2 + Math.abs(offset), 2, 2 + Math.abs(offset)], ([r, b, c]) =>
        c - r === offset ? at(x, [b, Math.min(r, c)]) : 0,
      ),
  },
  {
    name: `diagEmbed with axes exchanged, offset ${offset}`,
    shape: [2, 3],
    run: (x) => pg.diagEmbed(x, { offset, axis1: 2, axis2: 1 }),
    f: (x) =>
      build([2, 3 + Math.abs(offset), 3 + Math.abs(offset)], ([b, c, r]) =>
        c - r === offset ? at(x, [b, Math.min(r, c)]) : 0,
      ),
  },
];

/** Above or below a diagonal. */
const triangle =
  (upper: boolean) =>
  (pool: Pool, x: Value): Made => {
    const diagonal = pool.c.pick([0, 1, -1, 2, -3]);
    return moved(x, [{ diagonal }], (a) =>
      build(a.shape, (index) => {
        const [i, j] = index.slice(-2) as [number, number];
        return (upper ? j - i >= diagonal : j - i <= diagonal) ? at(a, index) : 0;
      }),
    );
  };

const traceSpec: OpSpec<1> = {
  name: 'trace of matrices',
  dtypes: ['float32', 'float64', 'int32'],
  instances: [{ label: '[2,3,3]', small: true, draw: (r) => [sample(r, [2, 3, 3], integer(-99, 99))] }],
  run: ([x]) => pg.trace(x),
  oracle: ([x]) => build([2], ([b]) => [0, 1, 2].reduce((sum, i) => sum + at(x, [b, i, i]), 0)),
  result: (dtype) => (dtype === 'int8' || dtype === 'int16' ? 'int32' : dtype),
  gradient: { of: [0], order: 2 },
};

export const diagonalRows: readonly OperationRow[] = [
  movementRow({
    name: 'tril',
    cases: [
      {
        name: 'tril',
        shape: [4, 4],
        run: (x) => pg.tril(x),
        f: (x) => build([4, 4], ([i, j]) => (j <= i ? at(x, [i, j]) : 0)),
      },
    ],
    rank: 2,
    make: triangle(false),
  }),
  movementRow({
    name: 'triu',
    cases: [
      part({
        name: 'triu above the diagonal',
        shape: [3, 4],
        run: (x) => pg.triu(x, { diagonal: 1 }),
        shapeOf: [3, 4],
        from: ([i = 0, j = 0]) => (j > i ? [i, j] : null),
      }),
    ],
    rank: 2,
    make: triangle(true),
  }),
  { name: 'diag', specs: offsets.flatMap(diagonals).map(moveSpec), calls: smooth(diag) },
  movementRow({
    name: 'diagEmbed',
    cases: offsets.flatMap(embedded),
    rank: 1,
    most: 7,
    make: (pool, x) => {
      const offset = pool.c.pick([0, 1, -2]);
      const size = (x.shape.at(-1) as number) + Math.abs(offset);
      return moved(x, [{ offset }], (a) =>
        build([...a.shape.slice(0, -1), size, size], (index) => {
          const [i, j] = index.slice(-2) as [number, number];
          return j - i === offset ? at(a, [...index.slice(0, -2), Math.min(i, j)]) : 0;
        }),
      );
    },
  }),
  movementRow({
    name: 'diagonal',
    cases: [
      part({
        name: 'diagonal below the main one',
        shape: [2, 4, 3],
        run: (x) => pg.diagonal(x, { offset: -1, axis1: 1, axis2: 2 }),
        shapeOf: [2, 3],
        from: ([b = 0, i = 0]) => [b, i + 1, i],
      }),
    ],
    rank: 2,
    make: (pool, x) => {
      const offset = pool.c.pick([0, 1, -1]);
      const [r, k] = x.shape.slice(-2) as [number, number];
      const size = Math.max(0, Math.min(r + Math.min(0, offset), k - Math.max(0, offset)));
      return moved(x, [{ offset, axis1: -2, axis2: -1 }], (a) =>
        build([...a.shape.slice(0, -2), size], (index) => {
          const i = index[index.length - 1]!;
          return at(a, [...index.slice(0, -1), i - Math.min(0, offset), i + Math.max(0, offset)]);
        }),
      );
    },
  }),
  { name: 'trace', specs: [traceSpec], calls: smooth(trace) },
];

/** Elements repeated: stretched axes, tiles, each one several times. */
import * as pg from '@polygrad/core';
import { along } from '../../oracle/lines.ts';
import { at, broadcastTo, build, reshape } from '../../oracle/ndarray.ts';
import { withAxis } from '../../programs/operands.ts';
import type { Made, Pool } from '../../programs/pool.ts';
import { type OperationRow, smooth } from '../row.ts';
import { moved, movementRow, part } from './row.ts';

function repeat(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length < 6 && v.data.length < 1000);
  if (x === null) return null;
  const by = x.shape.map(() => pool.c.pick([1, 2, 3]));
  if (pool.c.seldom(3) || x.shape.length === 0) by.unshift(pool.c.pick([2, 1]));
  const lead = by.length - x.shape.length;
  return moved(x, [by], (a) => {
    const full = reshape(a, [...new Array<number>(lead).fill(1), ...a.shape]);
    return by.reduce((y, k, i) => along(y, i, k * full.shape[i]!, (q) => q % full.shape[i]!), full);
  });
}

/** Counts of their own for the elements of an axis. */
function repeatEach(pool: Pool): Made | null {
  const found = withAxis(pool);
  if (found === null || found.n > 20) return null;
  const { x, axis, written, n } = found;
  const counts = Array.from({ length: n }, () => pool.c.nat(3));
  const from = counts.flatMap((k, i) => new Array<number>(k).fill(i));
  return moved(x, [counts, { axis: written }], (a) => along(a, axis, from.length, (i) => from[i]!));
}

/** Axes of one element stretched, the others kept by -1. */
function stretched(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length < 7 && v.data.length < 1000);
  if (x === null) return null;
  const shape = x.shape.map((n) => (n === 1 ? pool.c.pick([3, 1, 2]) : n));
  const lead = pool.c.pick([[], [2], [1, 3]]);
  const written = [...lead, ...shape.map((n, i) => (n === x.shape[i] && pool.c.nat(2) === 0 ? -1 : n))];
  return moved(x, [written], (a) => broadcastTo(a, [...lead, ...shape]));
}

export const repeatRows: readonly OperationRow[] = [
  movementRow({
    name: 'broadcastTo',
    cases: [
      {
        name: 'broadcastTo',
        shape: [3, 1],
        run: (x) => pg.broadcastTo(x, [2, 3, 4]),
        f: (x) => broadcastTo(x, [2, 3, 4]),
      },
    ],
    most: 7,
    make: (pool, x) => {
      const shape = x.shape.map((n) => (n === 1 && pool.c.nat(2) === 0 ? pool.c.pick([3, 2, 5]) : n));
      if (x.shape.length < 5) for (let i = pool.c.nat(3); i > 0; i--) shape.unshift(pool.c.pick([2, 1, 3]));
      return moved(x, [shape], (a) => broadcastTo(a, shape));
    },
  }),
  { name: 'expand', specs: [], calls: smooth(stretched) },
  movementRow({
    name: 'tile',
    cases: [
      {
        name: 'tile',
        shape: [2, 3],
        run: (x) => pg.tile(x, [2, 2]),
        f: (x) => build([4, 6], ([i, j]) => at(x, [i % 2, j % 3])),
      },
    ],
    rank: 1,
    make: (pool, x) => {
      const by = x.shape.map(() => pool.c.pick([1, 2, 3]));
      return moved(x, [by], (a) =>
        by.reduce((y, k, axis) => along(y, axis, k * a.shape[axis]!, (i) => i % a.shape[axis]!), a),
      );
    },
  }),
  { name: 'repeat', specs: [], calls: smooth(repeat) },
  movementRow({
    name: 'repeatInterleave',
    cases: [
      part({
        name: 'repeatInterleave',
        shape: [2, 3],
        run: (x) => pg.repeatInterleave(x, 2, { axis: 1 }),
        shapeOf: [2, 6],
        from: ([i = 0, j = 0]) => [i, Math.floor(j / 2)],
      }),
    ],
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const k = pool.c.pick([2, 1, 3]);
      return moved(x, [k, { axis: written }], (a) => along(a, axis, k * a.shape[axis]!, (i) => Math.floor(i / k)));
    },
    others: [repeatEach],
  }),
];

/** The same elements with their axes in another order, or reversed. */
import * as pg from '@polygrad/core';
import { along } from '../../oracle/lines.ts';
import { at, build, flip, nd, permute, reshape } from '../../oracle/ndarray.ts';
import type { Made, Pool } from '../../programs/pool.ts';
import type { OperationRow } from '../row.ts';
import { type Move, moved, movementRow, part } from './row.ts';

/** Axes swapped, or rolled as a flat list. */
function swapped(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length >= 2);
  if (x === null) return null;
  const [[i, first], [j, second]] = [pool.axis(x.shape.length), pool.axis(x.shape.length)];
  const axes = x.shape.map((_, k) => (k === i ? j : k === j ? i : k));
  return moved(x, [first, second], (a) => permute(a, axes));
}

function rolledFlat(pool: Pool): Made | null {
  const x = pool.pick((v) => v.data.length > 0 && v.data.length < 4000);
  if (x === null) return null;
  const by = pool.c.between(-5, 70);
  const n = x.data.length;
  return moved(x, [by], (a) =>
    nd(
      a.shape,
      a.data.map((_, i) => a.data[(((i - by) % n) + n) % n]!),
    ),
  );
}

export const axisRows: readonly OperationRow[] = [
  movementRow({
    name: 'permute',
    large: true,
    cases: [
      { name: 'permute', shape: [2, 3, 4], run: (x) => pg.permute(x, [2, 0, 1]), f: (x) => permute(x, [2, 0, 1]) },
      {
        name: 'permute then reshape',
        shape: [2, 3, 4],
        run: (x) => pg.reshape(pg.permute(x, [2, 1, 0]), [6, 4]),
        f: (x) => reshape(permute(x, [2, 1, 0]), [6, 4]),
      },
    ],
    rank: 1,
    make: (pool, x) => {
      const axes = pool.c.shuffled(x.shape.map((_, i) => i)).reverse();
      return moved(x, [axes], (a) => permute(a, axes));
    },
  }),
  movementRow({
    name: 'transpose',
    large: true,
    cases: [
      { name: 'transpose odd matrix', shape: [33, 17], run: (x) => pg.transpose(x), f: (x) => permute(x, [1, 0]) },
    ],
    rank: 2,
    make: (_, x) => {
      const axes = x.shape.map((_n, i) => i);
      axes.push(...axes.splice(-2).reverse());
      return moved(x, [], (a) => permute(a, axes));
    },
    others: [swapped],
  }),
  movementRow({
    name: 'moveAxis',
    cases: [{ name: 'moveAxis', shape: [2, 3, 4], run: (x) => pg.moveAxis(x, 0, -1), f: (x) => permute(x, [1, 2, 0]) }],
    rank: 2,
    make: (pool, x) => {
      const [from, to] = [pool.c.nat(x.shape.length), pool.c.nat(x.shape.length)];
      const axes = x.shape.map((_, i) => i).filter((i) => i !== from);
      axes.splice(to, 0, from);
      return moved(x, [from, to], (a) => permute(a, axes));
    },
  }),
  movementRow({
    name: 'flip',
    large: true,
    cases: [{ name: 'flip', shape: [3, 4], run: (x) => pg.flip(x, [1]), f: (x) => flip(x, [1]) }],
    rank: 1,
    make: (pool, x) => {
      const axes = pool.c.some(
        x.shape.map((_, i) => i),
        1,
      );
      return moved(x, [axes], (a) => flip(a, axes));
    },
  }),
  movementRow({
    name: 'roll',
    cases: [
      part({
        name: 'roll along two axes',
        shape: [3, 4],
        run: (x) => pg.roll(x, [1, -1], [0, 1]),
        shapeOf: [3, 4],
        from: ([i = 0, j = 0]) => [(i + 2) % 3, (j + 1) % 4],
      }),
    ],
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const n = x.shape[axis]!;
      const by = pool.c.between(-5, 5);
      return moved(x, [by, written], (a) => along(a, axis, n, (i) => (((i - by) % n) + n) % n));
    },
    others: [rolledFlat],
  }),
  movementRow({
    name: 'rot90',
    // A quarter turn takes element (r, c) of [h, w] to (w - 1 - c, r).
    cases: [
      {
        name: 'rot90',
        shape: [2, 3],
        run: (x) => pg.rot90(x),
        f: (x) => build([3, 2], ([r, c]) => at(x, [c, 2 - r])),
      },
      {
        name: 'rot90 twice',
        shape: [2, 3],
        run: (x) => pg.rot90(x, 2),
        f: (x) => build([2, 3], ([r, c]) => at(x, [1 - r, 2 - c])),
      },
      {
        name: 'rot90 back',
        shape: [2, 3],
        run: (x) => pg.rot90(x, -1),
        f: (x) => build([3, 2], ([r, c]) => at(x, [1 - c, r])),
      },
      {
        name: 'rot90 of other axes',
        shape: [2, 3, 4],
        run: (x) => pg.rot90(x, 5, [2, 0]),
        // From axis 2 towards axis 0.
        f: (x) => build([4, 3, 2], ([a, b, c]) => at(x, [1 - c, b, a])),
      },
    ],
    rank: 2,
    make: (pool, x) => {
      const turns = pool.c.between(-1, 3);
      let f: Move['f'] = (a) => a;
      for (let i = 0; i < ((turns % 4) + 4) % 4; i++) {
        const g = f;
        f = (a) => {
          const b = g(a);
          return flip(permute(b, [1, 0, ...b.shape.map((_, k) => k).slice(2)]), [0]);
        };
      }
      return moved(x, [turns], f);
    },
  }),
];

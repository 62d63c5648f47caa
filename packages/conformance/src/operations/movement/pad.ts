/** Borders around a tensor, of every kind; negative ones cut. */
import * as pg from '@polygrad/core';
import { along } from '../../oracle/lines.ts';
import { at, build } from '../../oracle/ndarray.ts';
import type { Made, Pool } from '../../programs/pool.ts';
import type { Arg, Value } from '../../programs/program.ts';
import type { OperationRow } from '../row.ts';
import { type Move, moved, movementRow } from './row.ts';

/** The position in an axis of n from which a position beyond its ends takes its value; null outside. */
export function bordered(mode: string, i: number, n: number): number | null {
  if (i >= 0 && i < n) return i;
  if (mode === 'constant') return null;
  if (mode === 'replicate') return i < 0 ? 0 : n - 1;
  if (mode === 'circular') return ((i % n) + n) % n;
  if (mode === 'reflect') return i < 0 ? -i : 2 * (n - 1) - i;
  return i < 0 ? -i - 1 : 2 * n - 1 - i;
}

function padCall(pool: Pool, x: Value): Made | null {
  const mode = pool.c.pick(['constant', 'constant', 'reflect', 'replicate', 'circular', 'symmetric']);
  const most = (n: number): number => (mode === 'reflect' ? n - 1 : mode === 'constant' ? 3 : n);
  const widths = x.shape.map((n) => [pool.c.nat(Math.min(3, most(n)) + 1), pool.c.nat(Math.min(3, most(n)) + 1)]);
  if (mode !== 'constant' && x.shape.includes(0)) return null;
  if (mode === 'constant' && pool.c.seldom(4))
    widths.forEach((w, i) => {
      if (x.shape[i]! > 1) w[0] = -1;
    });
  const value = mode !== 'constant' ? 0 : x.dtype.includes('int') ? pool.c.pick([0, 1, 7]) : pool.c.pick([0, 0.5, -2]);
  if (x.dtype === 'bool' && value !== 0) return null;
  const options: Arg = mode === 'constant' ? { value } : { mode };
  return moved(x, x.dtype === 'bool' && mode === 'constant' ? [widths] : [widths, options], (a) =>
    widths.reduce(
      (y, [low, high], axis) =>
        along(
          y,
          axis,
          x.shape[axis]! + (low as number) + (high as number),
          (i) => bordered(mode, i - (low as number), x.shape[axis]!),
          value,
        ),
      a,
    ),
  );
}

const borders = [
  // What is left closes the circle; the others reach into what is cut.
  ['circular', [-2, 3], [2, 3, 4, 2, 3, 4]],
  ['circular', [2, -1], [2, 3, 0, 1, 2, 3]],
  ['reflect', [-2, 3], [2, 3, 4, 3, 2, 1]],
  ['reflect', [4, -2], [4, 3, 2, 1, 0, 1, 2]],
  ['symmetric', [-3, 4], [3, 4, 4, 3, 2, 1]],
  ['symmetric', [-7, 5], [2, 1, 0]],
  ['replicate', [3, -4], [0, 0, 0, 0]],
  ['replicate', [-6, 4], [4, 4, 4]],
] as const;

export const padRows: readonly OperationRow[] = [
  movementRow({
    name: 'pad',
    rank: 1,
    cases: [
      {
        name: 'pad with a value',
        shape: [2, 3],
        run: (x) =>
          pg.pad(
            x,
            [
              [1, 0],
              [2, 1],
            ],
            { value: 7 },
          ),
        f: (x) => build([3, 6], ([i, j]) => (i >= 1 && j >= 2 && j < 5 ? at(x, [i - 1, j - 2]) : 7)),
      },
      ...borders.map(
        ([mode, widths, places]): Move => ({
          name: `pad in mode ${mode} by ${widths}`,
          shape: [2, 5],
          run: (x) => pg.pad(x, [[0, 0], widths], { mode }),
          f: (x) => build([2, places.length], ([i, j]) => at(x, [i, places[j]!])),
        }),
      ),
      {
        name: 'pad after arithmetic keeps the pad value',
        shape: [3],
        run: (x) => pg.pad(x.add(1), [[1, 1]]),
        f: (x) => build([5], ([i]) => (i >= 1 && i <= 3 ? at(x, [i - 1]) + 1 : 0)),
      },
    ],
    make: padCall,
  }),
];

/** Parts of a tensor by position, and a tensor taken apart along an axis. */
import * as pg from '@polygrad/core';
import { along } from '../../oracle/lines.ts';
import { at, build, reshape } from '../../oracle/ndarray.ts';
import { integer, sample } from '../../oracle/random.ts';
import { withAxis } from '../../programs/operands.ts';
import type { Made, Pool } from '../../programs/pool.ts';
import type { Arg, Value } from '../../programs/program.ts';
import type { OpSpec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { moved, movementRow, moveSpec, part, without } from './row.ts';

/** Python's meaning of a range: positions it takes. */
function positions(n: number, start: number | null, stop: number | null, step: number): number[] {
  const cut = (v: number | null, other: number): number => {
    if (v === null) return other;
    const p = v < 0 ? v + n : v;
    return step > 0 ? Math.min(Math.max(p, 0), n) : Math.min(Math.max(p, -1), n - 1);
  };
  const from = cut(start, step > 0 ? 0 : n - 1);
  const to = cut(stop, step > 0 ? n : -1);
  const found: number[] = [];
  for (let i = from; step > 0 ? i < to : i > to; i += step) found.push(i);
  return found;
}

const end = (pool: Pool, n: number): number | null => (pool.c.nat(2) === 0 ? null : pool.c.between(-n - 1, n + 1));

function sliceCall(pool: Pool, x: Value): Made {
  const specs: Arg[] = [];
  const taken: number[][] = [];
  const dropped: number[] = [];
  for (const [axis, n] of x.shape.entries()) {
    const what = pool.c.nat(5);
    if (what === 4 && n > 0) {
      const i = pool.c.between(-n, n - 1);
      specs.push(i);
      taken.push([i < 0 ? i + n : i]);
      dropped.push(axis);
    } else if (what === 0) {
      specs.push(null);
      taken.push(Array.from({ length: n }, (_, i) => i));
    } else {
      const [start, stop] = [end(pool, n), end(pool, n)];
      const step = pool.c.pick([1, 2, -1, 3, -2, -3]);
      specs.push({ start, stop, step });
      taken.push(positions(n, start, stop, step));
    }
  }
  const kept = x.shape.map((_, i) => i).filter((i) => !dropped.includes(i));
  return moved(x, [specs], (a) => {
    const full = build(
      taken.map((t) => t.length),
      (index) =>
        at(
          a,
          index.map((i, axis) => taken[axis]![i]!),
        ),
    );
    return reshape(
      full,
      kept.map((i) => full.shape[i]!),
    );
  });
}

const atCall = (pool: Pool): Made | null => {
  const x = pool.pick((v) => v.shape.length > 0);
  if (x === null) return null;
  const made = sliceCall(pool, x);
  return { ...made, args: [made.args[0] as never, ...(made.args[1] as never[])] };
};

function chunk(pool: Pool): Made | null {
  const found = withAxis(pool);
  if (found === null || found.n === 0) return null;
  const { x, axis, written, n } = found;
  const pieces = pool.c.between(1, 4);
  const size = Math.ceil(n / pieces);
  const part = pool.c.nat(Math.ceil(n / size));
  const length = Math.min(size, n - part * size);
  return moved(x, [pieces, written], (a) => along(a, axis, length, (i) => i + part * size), part);
}

function unevenSplit(pool: Pool): Made | null {
  const found = withAxis(pool);
  if (found === null) return null;
  const { x, axis, written, n } = found;
  const first = pool.c.nat(n + 1);
  const second = pool.c.nat(n - first + 1);
  const sizes = [first, second, n - first - second];
  const part = pool.c.nat(3);
  const from = sizes.slice(0, part).reduce((a, b) => a + b, 0);
  return moved(x, [sizes, written], (a) => along(a, axis, sizes[part]!, (i) => i + from), part);
}

const atSpec: OpSpec<1> = {
  name: 'at',
  dtypes: ['float32', 'float64', 'int32'],
  instances: [{ label: '[4,5]', draw: (r) => [sample(r, [4, 5], integer(-99, 99))], small: true }],
  run: ([x]) => pg.at(x, -1, { start: 1, stop: 4 }),
  oracle: ([x]) => build([3], ([k]) => at(x, [3, 1 + k])),
  gradient: { of: [0], order: 2 },
};

export const partRows: readonly OperationRow[] = [
  movementRow({
    name: 'slice',
    large: true,
    cases: [
      {
        name: 'slice with step and negative index',
        shape: [6, 7],
        run: (x) =>
          pg.slice(x, [
            { start: 1, stop: -1, step: 2 },
            { start: -2, stop: 0, step: -2 },
          ]),
        f: (x) => build([2, 3], ([i, j]) => at(x, [1 + 2 * i, 5 - 2 * j])),
      },
    ],
    rank: 1,
    make: sliceCall,
  }),
  { name: 'at', specs: [atSpec], calls: smooth(atCall), notes: { goldens: 'as slice' } },
  movementRow({
    name: 'narrow',
    large: true,
    cases: [
      {
        name: 'narrow',
        shape: [5, 4],
        run: (x) => pg.narrow(x, 0, 1, 3),
        f: (x) => build([3, 4], ([i, j]) => at(x, [i + 1, j])),
      },
    ],
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const n = x.shape[axis]!;
      const start = pool.c.nat(n + 1);
      const length = pool.c.nat(n - start + 1);
      return moved(x, [written, start, length], (a) => along(a, axis, length, (i) => i + start));
    },
  }),
  movementRow({
    name: 'select',
    cases: [
      {
        name: 'select',
        shape: [5, 4],
        run: (x) => pg.select(x, 1, 2),
        f: (x) => build([5], ([i]) => at(x, [i, 2])),
      },
    ],
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const n = x.shape[axis]!;
      if (n === 0) return null;
      const at = pool.c.between(-n, n - 1);
      return moved(x, [written, at], (a) =>
        reshape(
          along(a, axis, 1, () => (at < 0 ? at + n : at)),
          without(a.shape, axis),
        ),
      );
    },
  }),
  movementRow({
    name: 'split',
    cases: [
      part({
        name: 'split, the second of three',
        shape: [2, 7],
        run: (x) => pg.split(x, [2, 4, 1], 1)[1]!,
        shapeOf: [2, 4],
        from: ([i = 0, j = 0]) => [i, j + 2],
      }),
    ],
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const n = x.shape[axis]!;
      if (n === 0) return null;
      const size = pool.c.between(1, n);
      const part = pool.c.nat(Math.ceil(n / size));
      return moved(
        x,
        [size, written],
        (a) => along(a, axis, Math.min(size, n - part * size), (i) => i + part * size),
        part,
      );
    },
    others: [unevenSplit],
  }),
  {
    name: 'chunk',
    specs: [
      moveSpec(
        part({
          name: 'chunk, the last smaller one',
          shape: [7, 2],
          run: (x) => pg.chunk(x, 3)[2]!,
          shapeOf: [1, 2],
          from: ([i = 0, j = 0]) => [i + 6, j],
        }),
      ),
    ],
    calls: smooth(chunk),
  },
  movementRow({
    name: 'unbind',
    cases: [
      part({
        name: 'unbind, put together the other way',
        shape: [3, 2],
        run: (x) => pg.stack(pg.unbind(x, 1), 0),
        shapeOf: [2, 3],
        from: ([i = 0, j = 0]) => [j, i],
      }),
    ],
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const n = x.shape[axis]!;
      if (n === 0 || n > 20) return null;
      const part = pool.c.nat(n);
      return moved(
        x,
        [written],
        (a) =>
          reshape(
            along(a, axis, 1, () => part),
            without(a.shape, axis),
          ),
        part,
      );
    },
  }),
];

/**
 * Kernels of users whose threads may be lanes of vectors, and kernels where that would show. They are compared with loops of JavaScript, for lengths
 * that fill vectors and lengths that do not.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { defineKernel } from '@polygrad/core/custom';
import { compared } from './order/values.ts';

const i32 = (shape: readonly number[], data: readonly number[]): Tensor =>
  pg.reshape(pg.tensor([...data], { dtype: 'int32' }), [...shape]);
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => ((i * 37) % 101) - 50);
const held = (v: number, n: number): number => Math.max(0, Math.min(v, n - 1));

const stencil = defineKernel({
  name: 'stencil',
  form: 'threads',
  inputs: { x: { dtype: 'int32', rank: 2 } },
  outputs: { near: 'x', inside: 'x', sum: 'x' },
  body: (k, { x }, { near, inside, sum }) => {
    const [i, j] = k.index;
    near.set(
      [i, j],
      x
        .at([i.sub(1), j.sub(2)])
        .mul(3)
        .sub(x.at([i, j.add(1)])),
    );
    inside.set([i, j], x.at([i.add(1), j.add(3)], 1000).add(j));
    const total = k.variable(0, 'int32');
    k.loop(3, (d) => total.set(total.value.mul(2).add(x.at([i, j.add(d).sub(1)]))));
    sum.set([i, j], total.value);
  },
});

async function stencils(rows: number, n: number): Promise<void> {
  const x = numbers(rows * n);
  const made = pg.scope(() => stencil({ x: i32([rows, n], x) }));
  const each = (f: (i: number, j: number) => number): number[] => x.map((_, at) => f(Math.floor(at / n), at % n));
  const at = (i: number, j: number): number => x[held(i, rows) * n + held(j, n)]!;
  const shape = [rows, n];
  await compared(made.near, { expected: each((i, j) => at(i - 1, j - 2) * 3 - at(i, j + 1)), shape });
  await compared(made.inside, {
    expected: each((i, j) => (i + 1 < rows && j + 3 < n ? at(i + 1, j + 3) : 1000) + j),
    shape,
  });
  await compared(made.sum, {
    expected: each((i, j) => (at(i, j - 1) * 2 + at(i, j)) * 2 + at(i, j + 1)),
    shape,
  });
}

const parting = defineKernel({
  name: 'parting',
  form: 'threads',
  inputs: { x: { dtype: 'int32', rank: 1 }, to: { dtype: 'int32', rank: 1 } },
  outputs: {
    gathered: 'x',
    moved: 'x',
    branched: 'x',
    counted: 'x',
    triples: ({ x }) => ({ shape: [x.shape[0]!, 3], dtype: 'int32' }),
  },
  grid: ({ x }) => x.shape,
  body: (k, { x, to }, { gathered, moved, branched, counted, triples }) => {
    const [i] = k.index;
    const v = x.at(to.at(i));
    gathered.set(i, v.mul(v).add(v).mul(3).sub(v).mul(v).add(7).mul(v).sub(i));
    moved.set(to.at(i), i);
    k.ifThen(
      x.at(i).less(0),
      () => branched.set(i, x.at(i).neg()),
      () => branched.set(i, x.at(to.at(i))),
    );
    const count = k.variable(0, 'int32');
    k.loop(to.at(i).minimum(9), (j) => count.set(count.value.add(j).add(x.at(j))));
    counted.set(i, count.value);
    for (let c = 0; c < 3; c++) triples.set([i, c], x.at(i).mul(c).add(i));
  },
});

async function partings(n: number): Promise<void> {
  const x = numbers(n);
  const to = x.map((_, i) => n - 1 - i);
  const made = pg.scope(() => parting({ x: i32([n], x), to: i32([n], to) }));
  const far = to.map((t) => x[t]!);
  await compared(made.gathered, { expected: far.map((v, i) => (((v * v + v) * 3 - v) * v + 7) * v - i) });
  await compared(made.moved, { expected: to });
  await compared(made.branched, { expected: x.map((v, i) => (v < 0 ? -v : far[i]!)) });
  const counted = to.map((t) => {
    let sum = 0;
    for (let j = 0; j < Math.min(t, 9); j++) sum += j + x[held(j, n)]!;
    return sum;
  });
  await compared(made.counted, { expected: counted });
  await compared(made.triples, { expected: x.flatMap((v, i) => [0, 1, 2].map((c) => v * c + i)), shape: [n, 3] });
}

const rowsInTurns = defineKernel({
  name: 'rowsInTurns',
  form: 'groups',
  threads: 32,
  inputs: { x: { dtype: 'int32', rank: 2 } },
  outputs: { y: 'x', z: 'x', running: 'x' },
  body: (k, { x }, { y, z, running }) => {
    const [row] = k.index;
    const n = x.size(1);
    const line = k.shared('int32', n);
    k.each(n, (i) => line.set(i, x.at([row, i]).mul(2)));
    k.barrier();
    k.each(n, (i) => y.set([row, i], line.at(i.sub(1)).add(line.at(i.neg().add(n - 1)))));
    k.barrier();
    // Each thread goes on with its own.
    k.each(n, (i) => line.set(i, line.at(i).add(i)));
    k.barrier();
    k.each(n, (i) => z.set([row, i], line.at(i)));
    // One thread alone, element after element: what it wrote before is what it reads.
    k.barrier();
    k.ifThen(k.thread.equal(0), () =>
      k.loop(n, (i) => {
        line.set(i, line.at(i.sub(1)).add(x.at([row, i])));
        running.set([row, i], line.at(i));
      }),
    );
  },
});

async function turns(n: number): Promise<void> {
  const rows = 3;
  const x = numbers(rows * n);
  const made = pg.scope(() => rowsInTurns({ x: i32([rows, n], x) }));
  const of = (f: (line: readonly number[]) => number[]): number[] =>
    Array.from({ length: rows }, (_, r) => f(x.slice(r * n, (r + 1) * n))).flat();
  const shape = [rows, n];
  await compared(made.y, {
    expected: of((line) => line.map((_, i) => 2 * (line[held(i - 1, n)]! + line[n - 1 - i]!))),
    shape,
  });
  await compared(made.z, { expected: of((line) => line.map((v, i) => 2 * v + i)), shape });
  await compared(made.running, {
    expected: of((line) => {
      let before = 2 * line[0]!;
      return line.map((v) => (before += v));
    }),
    shape,
  });
}

/** The cases: a name, and what runs it. */
export function laneCases(): readonly (readonly [string, () => Promise<void>])[] {
  return [
    ...(
      [
        [1, 1],
        [3, 5],
        [2, 33],
        [300, 7],
        [5, 700],
        [1, 4099],
      ] as const
    ).map(([rows, n]) => [`threads beside each other, ${rows} x ${n}`, () => stencils(rows, n)] as const),
    ...[1, 6, 67, 3001].map((n) => [`threads that part ways, ${n}`, () => partings(n)] as const),
    ...[1, 7, 64, 1001].map((n) => [`groups whose threads take turns, ${n}`, () => turns(n)] as const),
  ];
}

/**
 * What calls of a kernel of a user go through as those of other operations do: derivatives and batches against the composed operations, sizes one after
 * another, views.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { defineKernel } from '@polygrad/core/custom';
import { compared } from './order/values.ts';

const close = { rtol: 1e-5, atol: 1e-6 };

const f32 = (shape: readonly number[], data: readonly number[]): Tensor =>
  pg.reshape(pg.tensor([...data], { dtype: 'float32' }), [...shape]);

/** Numbers that look alike nowhere. */
const wave = (count: number): number[] => Array.from({ length: count }, (_, i) => Math.fround(Math.sin(i * 1.7) * 2));

const rowScaled = defineKernel({
  name: 'rowScaled',
  form: 'groups',
  inputs: { x: { dtype: 'float32', rank: 2 }, w: { dtype: 'float32', rank: 1 } },
  outputs: { y: ({ x }) => ({ shape: x.shape.slice(0, 1), dtype: 'float32' }), z: 'x' },
  grid: ({ x }) => x.shape.slice(0, 1),
  body: (k, { x, w }, { y, z }) => {
    const [row] = k.index;
    const n = x.size(1);
    const { sum } = k.fold(n, {
      start: { sum: 0 },
      step: ({ sum }, i) => ({
        sum: sum.add(
          x
            .at([row, i])
            .mul(x.at([row, i]))
            .mul(w.at(i)),
        ),
      }),
      combine: (a, b) => ({ sum: a.sum.add(b.sum) }),
    });
    y.set(row, sum);
    k.each(n, (i) => z.set([row, i], x.at([row, i]).mul(w.at(i))));
  },
  gradient: ({ inputs: { x, w }, grads: { y, z } }) => {
    const g = y.unsqueeze(1);
    return {
      x: g.mul(x).mul(w).mul(2).add(z.mul(w)),
      w: g.mul(x).mul(x).add(z.mul(x)).sum(0),
    };
  },
});

type Two = (x: Tensor, w: Tensor) => Tensor;
const byKernel: Two = (x, w) => {
  const { y, z } = pg.scope(() => rowScaled({ x, w }));
  return y.square().sum().add(z.sin().sum());
};
const composed: Two = (x, w) => x.mul(x).mul(w).sum(1).square().sum().add(x.mul(w).sin().sum());

/** Both functions give the same. */
async function alike(of: (f: Two) => Tensor): Promise<void> {
  const expected = pg.scope(() => of(composed));
  const data = await expected.data();
  expected.dispose();
  const tolerance = { rtol: 2e-4, atol: 2e-4 };
  await compared(
    pg.scope(() => of(byKernel)),
    {
      expected: Array.from(data as Float32Array, Number),
      shape: expected.shape,
      tolerance,
    },
  );
}

async function derivatives(): Promise<void> {
  const [x, w] = [(): Tensor => f32([2, 3], wave(6)), (): Tensor => f32([3], [0.5, 0.2, -0.4])];
  const single = (f: Two, argnums: number): Two => pg.grad(f, { argnums }) as Two;
  for (const at of [0, 1]) {
    await alike((f) => single(f, at)(x(), w()));
    await alike((f) => single((a, b) => single(f, at)(a, b).square().sum(), 1 - at)(x(), w()));
  }
  await alike((f) => pg.jvp((a: Tensor) => f(a, w()), [x()], [f32([2, 3], [1, 0, 0.5, 0, -1, 2])])[1]);
}

async function batches(): Promise<void> {
  const many = (): Tensor => f32([4, 2, 3], wave(24));
  const w = (): Tensor => f32([3], [0.5, 0.2, -0.4]);
  const ws = (): Tensor => f32([4, 3], wave(12));
  await alike((f) => pg.vmap(f, { inAxes: [0, null] })(many(), w()));
  await alike((f) => pg.vmap(f, { inAxes: [null, 0] })(f32([2, 3], wave(6)), ws()));
  await alike((f) => pg.vmap(pg.grad(f) as Two, { inAxes: [0, 0] })(many(), ws()));
  await alike((f) =>
    (
      pg.grad(
        (a: Tensor, b: Tensor) =>
          pg
            .vmap(f, { inAxes: [0, null] })(a, b)
            .sum(),
        { argnums: 1 },
      ) as Two
    )(many(), w()),
  );
  await alike((f) =>
    (
      pg.grad((a: Tensor, b: Tensor) =>
        pg
          .vmap(f, { inAxes: [0, null] })(a, b)
          .sum(),
      ) as Two
    )(many(), w()),
  );
  const twice = (f: Two): Two => pg.vmap(pg.vmap(f, { inAxes: [0, null] }), { inAxes: [0, 0] });
  await alike((f) => twice(f)(f32([2, 2, 2, 3], wave(24)), f32([2, 3], wave(6))));
  await alike((f) =>
    (pg.grad((a: Tensor, b: Tensor) => twice(f)(a, b).sum(), { argnums: 1 }) as Two)(
      f32([2, 2, 2, 3], wave(24)),
      f32([2, 3], wave(6)),
    ),
  );
}

/** Sizes that come one after another, and none at all. */
async function sizes(): Promise<void> {
  for (const n of [1, 2, 3, 17, 64, 65, 300, 0]) {
    const x = wave(2 * n);
    const { y, z } = pg.scope(() => rowScaled({ x: f32([2, n], x), w: pg.ones([n]) }));
    const sums = [0, 1].map((r) => x.slice(r * n, r * n + n).reduce((sum, v) => sum + v * v, 0));
    await compared(y, { expected: sums, tolerance: { rtol: 1e-5, atol: 1e-5 } });
    await compared(z, { expected: x, shape: [2, n] });
  }
  await compared(
    pg.scope(() => rowScaled({ x: pg.zeros([0, 3]), w: pg.ones([3]) }).z),
    { expected: [], shape: [0, 3] },
  );
}

/** Views: inputs that lie in other orders, and results that others go on with. */
async function views(): Promise<void> {
  const x = wave(12);
  const moved = Array.from({ length: 3 }, (_, c) => [x[3 + c]!, x[6 + c]!]).flat();
  await compared(
    pg.scope(() =>
      rowScaled({
        x: f32([4, 3], x)
          .transpose()
          .slice([
            { start: 0, stop: 3 },
            { start: 1, stop: 3 },
          ]),
        w: pg.ones([2]),
      }).z.add(1),
    ),
    {
      expected: moved.map((v) => Math.fround(v + 1)),
      shape: [3, 2],
      tolerance: close,
    },
  );
  const lazy = pg.scope(() => f32([4, 3], x).transpose());
  await lazy.data();
  await compared(
    pg.scope(() => rowScaled({ x: lazy, w: pg.ones([4]) }).z),
    {
      expected: Array.from({ length: 12 }, (_, i) => x[(i % 4) * 3 + Math.floor(i / 4)]!),
      shape: [3, 4],
    },
  );
  lazy.dispose();
}

export const callCases: readonly (readonly [string, () => Promise<void>])[] = [
  ['derivatives', derivatives],
  ['batches', batches],
  ['sizes', sizes],
  ['views', views],
];

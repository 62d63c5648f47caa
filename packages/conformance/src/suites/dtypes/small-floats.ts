/** 16-bit floats: sums in float32, one rounding per operation, gradients, random numbers below 1. */
import * as pg from '@polygrad/core';
import { nearest } from '../../oracle/formats.ts';
import { expectValues, read } from './values.ts';

export async function checkSmallFloat(dtype: 'float16' | 'bfloat16'): Promise<void> {
  const ones = pg.ones([4096], { dtype });
  await expectValues(
    'a sum above the integers of the format',
    pg.scope(() => ones.sum()),
    [4096],
    dtype,
  );
  await expectValues(
    'a mean',
    pg.scope(() => ones.mean()),
    [1],
    dtype,
  );
  const many = pg.full([70000], 1, { dtype });
  await expectValues(
    'a mean whose sum overflows',
    pg.scope(() => many.mean()),
    [1],
    dtype,
  );
  const third = nearest(dtype, 1 / 3);
  const x = pg.full([5], third, { dtype });
  // Rounded after each operation, fused or not.
  const step = (v: number): number => nearest(dtype, v);
  const wanted = step(step(step(third * third) + third) - step(third / 7));
  await expectValues(
    'a chain',
    pg.scope(() => x.mul(x).add(x).sub(x.div(7))),
    new Array<number>(5).fill(wanted),
    dtype,
  );
  const leaf = pg.tensor([1, 2, 3], { dtype, requiresGrad: true });
  pg.scope(() => leaf.mul(leaf).sum().backward());
  const { grad } = leaf;
  if (grad === null) throw new Error('no gradient');
  const values = await read(grad);
  if (grad.dtype !== dtype || values.join() !== '2,4,6') throw new Error(`gradient ${grad.dtype} ${values}`);
  leaf.dispose();
  const random = pg.rand([4000], { key: 3, dtype });
  const drawn = (await read(random)) as number[];
  if (drawn.some((v) => !(v >= 0 && v < 1))) throw new Error('a random number outside of [0, 1)');
  const mean = drawn.reduce((p, q) => p + q, 0) / drawn.length;
  if (Math.abs(mean - 0.5) > 0.02) throw new Error(`mean of random numbers ${mean}`);
  for (const t of [ones, many, x, random]) t.dispose();
}

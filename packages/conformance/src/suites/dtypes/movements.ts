/** Elements moved, filled in and picked, in every dtype. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { integerFormat } from '../../oracle/formats.ts';
import { draw, expectValues, type Integer } from './values.ts';

export async function checkMoving(dtype: DType): Promise<void> {
  const format = integerFormat(dtype);
  const x = format === null ? Array.from({ length: 24 }, (_, i) => (i - 12) / 8) : draw(dtype as Integer, 24, 'moved');
  const t = pg.tensor(x, { dtype, shape: [4, 6] });
  const at = (i: number, j: number): number | bigint => x[i * 6 + j] as number | bigint;
  const zero = format === null ? 0 : 0n;
  const check = (
    name: string,
    run: () => Tensor,
    shape: readonly [number, number],
    of: (i: number, j: number) => number | bigint,
  ): Promise<void> =>
    expectValues(
      `${name} of ${dtype}`,
      pg.scope(run),
      Array.from({ length: shape[0] * shape[1] }, (_, k) => of(Math.floor(k / shape[1]), k % shape[1])),
      dtype,
    );
  await check(
    'transpose',
    () => t.transpose().contiguous(),
    [6, 4],
    (i, j) => at(j, i),
  );
  await check(
    'flip',
    () => pg.flip(t, 1).contiguous(),
    [4, 6],
    (i, j) => at(i, 5 - j),
  );
  await check(
    'pad',
    () =>
      pg.pad(t, [
        [1, 0],
        [0, 2],
      ]),
    [5, 8],
    (i, j) => (i === 0 || j > 5 ? zero : at(i - 1, j)),
  );
  await check(
    'concat',
    () => pg.concat([t, t], 1),
    [4, 12],
    (i, j) => at(i, j % 6),
  );
  const places = pg.tensor([3, 0, 3], { dtype: 'int32' });
  await check(
    'take',
    () => pg.take(t, places, 0),
    [3, 6],
    (i, j) => at([3, 0, 3][i]!, j),
  );
  const one = format === null ? 1 : 1n;
  const added = pg.scope(() =>
    pg.indexAdd(pg.zeros([4, 6], { dtype }), places, pg.ones([3, 6], { dtype }), { axis: 0 }),
  );
  await expectValues(
    `indexAdd of ${dtype}`,
    added,
    Array.from({ length: 24 }, (_, k) => (k < 6 ? one : k < 18 ? zero : format === null ? 2 : 2n)),
    dtype,
  );
  t.dispose();
  places.dispose();
}

/** An axis that comes last may be a number by itself or a field of the options, in every function alike. */
import { beforeAll, expect, it } from 'vitest';
import { createReferenceEngine } from '@polygrad/testing';
import * as pg from '../index.ts';
import type { Tensor } from '../index.ts';

beforeAll(() => pg.setEngine(createReferenceEngine()));

const x = (): Tensor => pg.reshape(pg.arange(1, 25), [2, 3, 4]).cast('float32');
const at = (): Tensor => pg.tensor(new Array(24).fill(0), { dtype: 'int32' }).reshape([2, 3, 4]);

type Axis = number | { axis: number };
/** Calls with an axis that is not the default. */
const calls: Readonly<Record<string, (axis: Axis) => Tensor | Tensor[]>> = {
  categorical: (axis) => pg.categorical(x(), typeof axis === 'number' ? axis : { ...axis, key: 1 }),
  chunk: (axis) => pg.chunk(x(), 2, axis),
  concat: (axis) => pg.concat([x(), x()], axis),
  cosineSimilarity: (axis) => pg.cosineSimilarity(x(), x().add(1), axis),
  cumSum: (axis) => pg.cumSum(x(), axis),
  diff: (axis) => pg.diff(x(), axis),
  flip: (axis) => pg.flip(x(), axis),
  gather: (axis) => pg.gather(x(), at(), axis),
  glu: (axis) => pg.glu(x(), axis),
  indexAdd: (axis) => pg.indexAdd(x(), [0, 1], pg.ones([2, 3, 4]), axis),
  logSoftmax: (axis) => pg.logSoftmax(x(), axis),
  normalize: (axis) => pg.normalize(x(), axis),
  permutation: (axis) => {
    pg.seed(3);
    return pg.permutation(x(), axis);
  },
  repeatInterleave: (axis) => pg.repeatInterleave(x(), 2, axis),
  roll: (axis) => pg.roll(x(), 1, axis),
  scatterReduce: (axis) => pg.scatterReduce(x(), at(), pg.ones([2, 3, 4]), 'sum', axis),
  sort: (axis) => pg.sort(x(), axis),
  split: (axis) => pg.split(x(), 1, axis),
  squeeze: (axis) => pg.squeeze(x().narrow(0, 0, 1), axis),
  stack: (axis) => pg.stack([x(), x()], axis),
  sum: (axis) => pg.sum(x(), axis),
  take: (axis) => pg.take(x(), [0, 1], axis),
  topK: (axis) => pg.topK(x(), 1, axis)[0],
  unsqueeze: (axis) => pg.unsqueeze(x(), axis),
};

it.each(Object.keys(calls))('%s takes an axis in either form', async (name) => {
  const call = calls[name]!;
  const [bare, field] = [call(0), call({ axis: 0 })].map((t) => (Array.isArray(t) ? t : [t])) as [Tensor[], Tensor[]];
  const drawn = name === 'categorical';
  for (const [i, t] of bare.entries()) {
    expect(field[i]!.shape).toEqual(t.shape);
    if (!drawn) expect(await field[i]!.array()).toEqual(await t.array());
  }
  for (const wrong of [{ axes: 0 }, { axis: 7 }])
    expect(() => call(wrong as never)).toThrow(new RegExp(`\\[${name}\\]`));
});

it('of several axes, too', async () => {
  const t = pg.reshape(pg.arange(6), [1, 2, 1, 3]);
  expect(pg.squeeze(t, { axis: [0, 2] }).shape).toEqual([2, 3]);
  expect(pg.unsqueeze(t, { axis: [0, 2] }).shape).toEqual([1, 1, 1, 2, 1, 3]);
  expect(await pg.flip(t, { axis: [1, 3] }).array()).toEqual(await pg.flip(t, [1, 3]).array());
  expect(await pg.roll(t, [1, 1], { axis: [1, 3] }).array()).toEqual(await pg.roll(t, [1, 1], [1, 3]).array());
});

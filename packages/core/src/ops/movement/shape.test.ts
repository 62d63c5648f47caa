/** Other shapes and parts: slices, joints, borders in every mode, and what is refused. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { near, range, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

describe('shapes and parts', () => {
  it('puts quotients side by side without dividing by what lies beside them', async () => {
    const x = pg.tensor([4, -6], { dtype: 'int32' });
    const [quotient, rest] = [pg.floorDivide(x, x), pg.remainder(x, pg.add(x, 9))];
    expect(await values(pg.concat([quotient, pg.pad(rest, [[1, 0]])]))).toEqual([1, 1, 0, 4, 0]);
    expect(await values(pg.stack([quotient, quotient]))).toEqual([1, 1, 1, 1]);
  });

  it('slices as Python does', async () => {
    const x = pg.arange(10);
    expect(await values(pg.slice(x, [{ start: -3 }]))).toEqual([7, 8, 9]);
    expect(await values(pg.slice(x, [{ start: 8, stop: 2, step: -3 }]))).toEqual([8, 5]);
    expect(await values(pg.slice(x, [{ step: -4 }]))).toEqual([9, 5, 1]);
    expect(await values(pg.slice(x, [{ start: 5, stop: 2 }]))).toEqual([]);
    expect(await values(pg.slice(x, [{ start: -100, stop: 100, step: 9 }]))).toEqual([0, 9]);
    expect(() => pg.slice(x, [10])).toThrow(/\[slice\].*10/);
    expect(() => pg.slice(x, [0, 0])).toThrow(/\[slice\].*too many/);
    // A pair is no range: without start and stop it would be the whole axis.
    expect(() => pg.slice(x, [[2, 5]] as never)).toThrow(/\[slice\] bad slice of axis 0: \[2, 5\]; must be .*start: 0/);
    expect(() => pg.slice(x, [{ begin: 2 }] as never)).toThrow(/bad slice of axis 0: an object of begin;/);
    expect(() => pg.slice(x, { start: 2 } as never)).toThrow(/bad slices: an object; must be an array/);
  });

  it('cuts and joins', async () => {
    const x = pg.arange(7);
    expect(pg.split(x, 3).map((t) => t.shape[0])).toEqual([3, 3, 1]);
    expect(pg.split(x, [2, 5]).map((t) => t.shape[0])).toEqual([2, 5]);
    expect(pg.chunk(x, 3).map((t) => t.shape[0])).toEqual([3, 3, 1]);
    expect(() => pg.split(x, [2, 2])).toThrow(/\[split\].*4.*7/);
    expect(await values(pg.concat(pg.split(x, 3)))).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(pg.unbind(range([2, 3]), 1).length).toBe(3);
    expect(pg.stack([x, x], -1).shape).toEqual([7, 2]);
    expect(() => pg.stack([])).toThrow(/\[stack\].*empty/);
    expect(pg.concat([pg.ones([1]), pg.ones([1], { dtype: 'float64' })]).dtype).toBe('float64');
  });

  it('refuses widths that are no pairs', () => {
    expect(() => pg.pad(pg.ones([2, 2]), [[0, 0], -1] as never)).toThrow(/^\[pad\] .*widths of axis 1/);
    expect(() =>
      pg.pad(pg.ones([2, 2]), [
        [0, 0],
        [1, 1, 1],
      ] as never),
    ).toThrow(/^\[pad\] bad widths: \[1, 1, 1\]/);
  });

  it('pads in every mode', async () => {
    const x = pg.arange(4);
    expect(await values(pg.pad(x, [[2, 3]], { mode: 'reflect' }))).toEqual([2, 1, 0, 1, 2, 3, 2, 1, 0]);
    expect(await values(pg.pad(x, [[2, 3]], { mode: 'symmetric' }))).toEqual([1, 0, 0, 1, 2, 3, 3, 2, 1]);
    expect(await values(pg.pad(x, [[2, 1]], { mode: 'replicate' }))).toEqual([0, 0, 0, 1, 2, 3, 3]);
    expect(await values(pg.pad(x, [[1, 2]], { mode: 'circular' }))).toEqual([3, 0, 1, 2, 3, 0, 1]);
    expect(await values(pg.pad(x, [[-1, 1]]))).toEqual([1, 2, 3, 0]);
    expect(await values(pg.pad(x, [[-1, 2]], { mode: 'circular' }))).toEqual([1, 2, 3, 1, 2]);
    expect(pg.pad(pg.zeros([2, 2]), 1).shape).toEqual([4, 4]);
    expect(() => pg.pad(x, [[4, 0]], { mode: 'reflect' })).toThrow(/\[pad\].*at most 3/);
  });

  it('rolls, repeats, tiles', async () => {
    expect(await values(pg.roll(range([2, 3]), 1, 1))).toEqual([2, 0, 1, 5, 3, 4]);
    expect(await values(pg.roll(range([2, 3]), -2))).toEqual([2, 3, 4, 5, 0, 1]);
    expect(await values(pg.roll(range([2, 2]), [1, 1], [0, 1]))).toEqual([3, 2, 1, 0]);
    expect(await values(pg.repeatInterleave(range([2, 2]), 2, { axis: 1 }))).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
    expect(pg.tile(range([2]), [3, 2]).shape).toEqual([3, 4]);
  });

  it('refuses what does not fit', () => {
    const x = pg.zeros([2, 3]);
    expect(() => pg.reshape(x, [-1, -1])).toThrow(/\[reshape\].*-1/);
    expect(() => pg.reshape(x, [4, -1])).toThrow(/\[reshape\].*4 must divide 6/);
    expect(() => pg.broadcastTo(x, [3, 3])).toThrow(/\[broadcastTo\].*\[2, 3\] to \[3, 3\]/);
    expect(() => pg.squeeze(x, 0)).toThrow(/\[squeeze\].*size 2/);
    expect(() => pg.moveAxis(x, [0], [0, 1])).toThrow(/\[moveAxis\]/);
    expect(() => pg.narrow(x, 1, 2, 2)).toThrow(/\[narrow\]/);
    // As in NumPy and TensorFlow.
    expect(() => pg.transpose(x, [1, 0] as never)).toThrow(/\[transpose\] .*\[1, 0\].*permute\(x, axes\)/);
    expect(pg.expand(pg.zeros([3, 1]), [2, -1, 4]).shape).toEqual([2, 3, 4]);
  });

  it('handles eight axes', async () => {
    const x = range([2, 1, 2, 1, 2, 1, 2, 1]);
    const y = pg.permute(x, [7, 6, 5, 4, 3, 2, 1, 0]);
    expect(await values(y)).toEqual([0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15]);
    await near(pg.sum(y.mul(y), [0, 2, 4, 6]), [0, 64, 16, 144, 4, 100, 36, 196, 1, 81, 25, 169, 9, 121, 49, 225]);
  });
});

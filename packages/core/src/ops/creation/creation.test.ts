/** Tensors made from data and read back: what is taken, what is refused, and how they are shown. */
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

describe('tensor()', () => {
  it('takes typed arrays, booleans, bigints and scalars', async () => {
    expect(pg.tensor(new Float64Array(2)).dtype).toBe('float64');
    expect(pg.tensor(new Uint8Array([1, 2]), { dtype: 'float32' }).dtype).toBe('float32');
    expect(pg.tensor([[true], [false]]).dtype).toBe('bool');
    expect(pg.tensor(5).shape).toEqual([]);
    expect(await pg.tensor([[true], [false]]).array()).toEqual([[true], [false]]);
    expect(await pg.tensor([1, 2, 3, 4], { shape: [2, 2] }).array()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(pg.tensor([]).shape).toEqual([0]);
    expect(pg.tensor([[], []]).shape).toEqual([2, 0]);
  });

  it('takes typed arrays of other contexts: frames of a page, jsdom under jest', async () => {
    for (const name of [
      'Float32',
      'Float64',
      'Int8',
      'Int16',
      'Int32',
      'Uint8',
      'Uint16',
      'Uint32',
      'BigInt64',
      'BigUint64',
    ]) {
      const one = name.startsWith('Big') ? '1n' : '1';
      const t = pg.tensor(runInNewContext(`new ${name}Array([${one}])`));
      expect(t.dtype).toBe(name.replace('Big', '').toLowerCase());
      expect((await t.data())[0]).toEqual(one === '1' ? 1 : 1n);
    }
    // Bits, as from here.
    const half = pg.tensor(runInNewContext('new Uint16Array([0x3c00])'), { dtype: 'float16' });
    expect(await half.item()).toBe(1);
    expect(() => pg.tensor(runInNewContext('new DataView(new ArrayBuffer(4))'))).toThrow('[tensor] data is a DataView');
  });

  it('copies its data', async () => {
    const data = new Float32Array([1, 2]);
    const t = pg.tensor(data);
    data[0] = 9;
    expect(await values(t)).toEqual([1, 2]);
  });

  it('refuses what is no rectangle of numbers', () => {
    expect(() => pg.tensor([[1], 2] as never)).toThrow(/\[tensor\].*ragged/);
    expect(() => pg.tensor([1, true])).toThrow(/\[tensor\].*types/);
    expect(() => pg.tensor(['a'] as never)).toThrow(/\[tensor\].*no number/);
    expect(() => pg.tensor([1, 2, 3], { shape: [2] })).toThrow(/\[tensor\].*3.*2/);
    expect(() => pg.zeros([2, -1])).toThrow(/\[zeros\].*-1/);
    expect(() => pg.zeros([2 ** 16, 2 ** 16])).toThrow(/\[zeros\].*too many/);
  });

  it('reads one element only where there is one', async () => {
    expect(await pg.tensor([7]).item()).toBe(7);
    expect(pg.tensor([7]).itemSync()).toBe(7);
    await expect(pg.ones([2]).item()).rejects.toThrow(/\[item\].*\[2\]/);
  });

  it('is text without reading the device', () => {
    expect(String(pg.ones([2, 3]))).toBe('Tensor float32 [2, 3]');
  });
});

describe('formatArray', () => {
  const format = (data: number[], shape: number[], dtype: pg.DType = 'float32'): string =>
    pg.formatArray(dtype === 'int32' ? Int32Array.from(data) : Float32Array.from(data), shape, dtype);
  it('aligns as NumPy does', () => {
    expect(format([1, 2.5, -3, 10], [2, 2])).toBe('[[ 1.   2.5]\n [-3.  10. ]]');
    expect(format([1, 20], [2], 'int32')).toBe('[ 1 20]');
    expect(format([0.1, Number.NaN, Number.POSITIVE_INFINITY], [3])).toBe('[0.1 nan inf]');
    expect(format([], [0, 3])).toBe('[]');
    expect(format([5], [])).toBe('5.0');
    expect(format([1, 2, 3, 4, 5, 6, 7, 8], [2, 2, 2], 'int32')).toBe('[[[1 2]\n  [3 4]]\n\n [[5 6]\n  [7 8]]]');
    expect(
      format(
        Array.from({ length: 2000 }, (_, i) => i),
        [2000],
        'int32',
      ),
    ).toBe('[   0    1    2 ... 1997 1998 1999]');
    expect(format([1e-10, 1], [2])).toContain('e-10');
  });
});

describe('requiresGrad', () => {
  const x = pg.ones([2]);
  const int32 = { dtype: 'int32', requiresGrad: true } as const;
  const makers: readonly [string, (options: pg.CreationOptions) => pg.Tensor][] = [
    ['tensor', (o) => pg.tensor([1], o)],
    ['zeros', (o) => pg.zeros([2], o)],
    ['ones', (o) => pg.ones([2], o)],
    ['empty', (o) => pg.empty([2], o)],
    ['full', (o) => pg.full([2], 3, o)],
    ['zerosLike', (o) => pg.zerosLike(x, o)],
    ['onesLike', (o) => pg.onesLike(x, o)],
    ['fullLike', (o) => pg.fullLike(x, 3, o)],
    ['arange', (o) => pg.arange(3, o)],
    ['eye', (o) => pg.eye(2, o)],
    ['tri', (o) => pg.tri(2, o)],
    ['randint', (o) => pg.randint(0, 3, [2], o)],
    ['bernoulli', (o) => pg.bernoulli(0.5, [2], o)],
  ];

  it.each(makers)('of %s is refused for integers in its name, and taken for floats', (name, make) => {
    const before = pg.memory().numTensors;
    expect(() => make(int32)).toThrow(new RegExp(`^\\[${name}\\] dtype int32 and requiresGrad: `));
    expect(pg.memory().numTensors).toBe(before);
    const made = make({ dtype: 'float32', requiresGrad: true });
    expect(made.requiresGrad).toBe(true);
    pg.sum(pg.square(made)).backward();
    expect(made.grad?.shape).toEqual(made.shape);
  });
});

it('linspace is exact at both ends, symmetric, and reaches the largest numbers', async () => {
  const most = Number.MAX_VALUE;
  expect(await values(pg.linspace(-most, most, 3, { dtype: 'float64' }))).toEqual([-most, 0, most]);
  const wide = await values(pg.linspace(-3e38, 3e38, 5));
  expect(wide).toEqual([-3e38, -1.5e38, 0, 1.5e38, 3e38].map(Math.fround));
  const tenths = await values(pg.linspace(-0.1, 0.1, 1000));
  expect(tenths).toEqual(tenths.map((x) => -x).reverse());
  expect(await values(pg.linspace(3, 7, 1))).toEqual([3]);
  expect(await values(pg.linspace(3, 7, 2))).toEqual([3, 7]);
  expect(await values(pg.linspace(7, 3, 4, { dtype: 'float64' }))).toEqual([7, 7 - 4 / 3, 3 + 4 / 3, 3]);
});

/** Behaviour of operations beyond what the conformance suite draws: options, layouts, modes, errors; on the reference engine. */
import { describe, expect, it } from 'vitest';
import * as pg from '../index.ts';
import type { Tensor } from '../index.ts';
import { createReferenceEngine } from '../testing/index.ts';

await pg.setEngine(createReferenceEngine());

const f64 = (data: pg.NestedInput): Tensor => pg.tensor(data, { dtype: 'float64' });
const i32 = (data: pg.NestedInput): Tensor => pg.tensor(data, { dtype: 'int32' });
const range = (shape: readonly number[]): Tensor =>
  pg.reshape(
    pg.arange(
      shape.reduce((a, b) => a * b, 1),
      { dtype: 'float64' },
    ),
    shape,
  );

async function values(t: Tensor): Promise<number[]> {
  return Array.from((await t.data()) as Float64Array, Number);
}

async function near(t: Tensor, expected: readonly number[], digits = 10): Promise<void> {
  const actual = await values(t);
  expect(actual.length).toBe(expected.length);
  expected.forEach((value, i) => {
    if (Number.isFinite(value)) expect(actual[i]).toBeCloseTo(value, digits);
    else expect(actual[i]).toBe(value);
  });
}

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
    expect(format([5], [])).toBe('5.');
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

describe('numbers and dtypes', () => {
  it('meet tensors as weak scalars', () => {
    expect(i32([1]).add(2).dtype).toBe('int32');
    expect(f64([1]).mul(2).dtype).toBe('float64');
    expect(pg.sub(1, f64([1])).dtype).toBe('float64');
    expect(() => i32([1]).mul(0.5)).toThrow(/\[mul\].*0.5.*int32/);
    expect(() => pg.tensor([true]).add(1)).toThrow(/\[add\].*bool/);
    expect(() => pg.add(pg.ones([1]), i32([1]))).toThrow(/\[add\].*float32 and int32/);
    expect(() => pg.neg(pg.tensor([true]))).toThrow(/\[neg\].*bool/);
    expect(() => pg.add([1] as never, 1)).toThrow(/\[add\].*not a tensor.*array/);
    expect(() => pg.add(pg.ones([1]), undefined as never)).toThrow(/\[add\].*not a tensor or number.*undefined/);
  });

  it('divide and take functions of integers as float32', async () => {
    expect(i32([1]).div(2).dtype).toBe('float32');
    expect(await values(i32([1]).div(2))).toEqual([0.5]);
    expect(pg.exp(i32([0])).dtype).toBe('float32');
    expect(pg.mean(i32([1, 2])).dtype).toBe('float32');
    expect(pg.sum(pg.tensor([true, true])).dtype).toBe('int32');
    expect(await pg.sum(pg.tensor([true, true])).item()).toBe(2);
  });

  it('pow of numbers agrees with pow of tensors', async () => {
    const x = [-2, -1, -0.5, 0, 0.5, 3];
    for (const n of [0, 1, 2, 3, -1, 0.5, -0.5, 5]) {
      await near(
        pg.pow(f64(x), n),
        x.map((v) => (v === 1 ? 1 : v ** n)),
      );
    }
    expect(await values(pg.pow(i32([-3, 2, 10]), i32([3, 10, 0])))).toEqual([-27, 1024, 1]);
    expect(await values(pg.pow(i32([1, -1, 2]), i32([-3, -3, -1])))).toEqual([1, -1, 0]);
  });

  it('integer division rounds down and keeps the sign of the divisor', async () => {
    const a = i32([7, -7, 7, -7, 6]);
    const b = i32([2, 2, -2, -2, 3]);
    expect(await values(pg.floorDivide(a, b))).toEqual([3, -4, -4, 3, 2]);
    expect(await values(pg.remainder(a, b))).toEqual([1, 1, -1, -1, 0]);
    expect(await values(pg.fmod(a, b))).toEqual([1, -1, 1, -1, 0]);
  });
});

describe('composed functions against Math', () => {
  const xs = [-1e10, -50, -3, -1, -0.1, -1e-8, 0, 1e-8, 0.1, 1, 3, 50, 1e10];
  const close = async (t: Tensor, expected: readonly number[]): Promise<void> => {
    const actual = await values(t);
    expected.forEach((value, i) => {
      if (!Number.isFinite(value)) expect(actual[i]).toBe(value);
      else
        expect(Math.abs((actual[i] as number) - value)).toBeLessThanOrEqual(4e-15 * Math.max(Math.abs(value), 1e-300));
    });
  };
  it('cbrt', () =>
    close(pg.cbrt(f64([...xs, Number.POSITIVE_INFINITY])), [...xs.map(Math.cbrt), Number.POSITIVE_INFINITY]));
  it('asinh', () => close(pg.asinh(f64(xs)), xs.map(Math.asinh)));
  it('acosh', () => close(pg.acosh(f64([1, 1.5, 3, 1e10])), [1, 1.5, 3, 1e10].map(Math.acosh)));
  it('atanh', () => close(pg.atanh(f64([-0.9, -0.1, 0, 0.5])), [-0.9, -0.1, 0, 0.5].map(Math.atanh)));
  it('log10', () => close(pg.log10(f64([1e-5, 1, 1000])), [-5, 0, 3]));
  it('hypot does not overflow', async () => {
    await close(pg.hypot(f64([3, 1e200, 0, Number.NEGATIVE_INFINITY]), f64([4, 1e200, 0, Number.NaN])), [
      5,
      Math.SQRT2 * 1e200,
      0,
      Number.POSITIVE_INFINITY,
    ]);
  });
  it('logAddExp', () =>
    close(pg.logAddExp(f64([0, 1000, Number.NEGATIVE_INFINITY]), f64([0, 1000, Number.NEGATIVE_INFINITY])), [
      Math.LN2,
      1000 + Math.LN2,
      Number.NEGATIVE_INFINITY,
    ]));
  it('copysign sees the sign of zero', async () => {
    expect((await values(pg.copysign(f64([1, 1, 1]), f64([-0, 0, -2])))).map((v) => Math.sign(v))).toEqual([-1, 1, -1]);
  });
  it('gradients at delicate points', async () => {
    await near(pg.grad((x: Tensor) => pg.sum(pg.hypot(x, pg.zerosLike(x))))(f64([0, 2])), [0, 1]);
    await near(pg.grad((x: Tensor) => pg.std(x))(f64([3, 3])), [0, 0]);
    await near(pg.grad((x: Tensor) => pg.sum(pg.softplus(x)))(f64([0, 800, -800])), [0.5, 1, 0]);
    await near(pg.grad((x: Tensor) => pg.sum(pg.logSigmoid(x)))(f64([0, 800, -800])), [0.5, 0, 1]);
    await near(pg.grad((x: Tensor) => pg.sum(pg.sigmoid(x)))(f64([0, 800, -800])), [0.25, 0, 0]);
    await near(pg.grad((x: Tensor) => pg.sum(pg.elu(x)))(f64([800, -1])), [1, Math.exp(-1)]);
  });
});

describe('reductions over nothing', () => {
  it('have the identity, or say that they have none', async () => {
    const empty = pg.zeros([2, 0]);
    expect(await values(pg.sum(empty, 1))).toEqual([0, 0]);
    expect(await values(pg.prod(empty, 1))).toEqual([1, 1]);
    expect(await values(pg.any(empty, 1))).toEqual([0, 0]);
    expect(await values(pg.all(empty, 1))).toEqual([1, 1]);
    expect(await values(pg.mean(empty, 1))).toEqual([Number.NaN, Number.NaN]);
    expect(() => pg.max(empty, 1)).toThrow(/\[max\]/);
    expect(() => pg.argMin(empty, 1)).toThrow(/\[argMin\]/);
    expect(pg.sum(empty, 0).shape).toEqual([0]);
    expect(await values(pg.softmax(empty))).toEqual([]);
    expect(await pg.logSumExp(pg.full([2], Number.NEGATIVE_INFINITY)).item()).toBe(Number.NEGATIVE_INFINITY);
  });

  it('norms of every order', async () => {
    const x = f64([3, -4, 0]);
    await near(pg.norm(x, { p: 1 }), [7]);
    await near(pg.norm(x, { p: 0 }), [2]);
    await near(pg.norm(x, { p: Number.POSITIVE_INFINITY }), [4]);
    await near(pg.norm(x, { p: Number.NEGATIVE_INFINITY }), [0]);
    await near(pg.norm(x, { p: 3 }), [91 ** (1 / 3)]);
  });
});

describe('shapes and parts', () => {
  it('slices as Python does', async () => {
    const x = pg.arange(10);
    expect(await values(pg.slice(x, [{ start: -3 }]))).toEqual([7, 8, 9]);
    expect(await values(pg.slice(x, [{ start: 8, stop: 2, step: -3 }]))).toEqual([8, 5]);
    expect(await values(pg.slice(x, [{ step: -4 }]))).toEqual([9, 5, 1]);
    expect(await values(pg.slice(x, [{ start: 5, stop: 2 }]))).toEqual([]);
    expect(await values(pg.slice(x, [{ start: -100, stop: 100, step: 9 }]))).toEqual([0, 9]);
    expect(() => pg.slice(x, [10])).toThrow(/\[slice\].*10/);
    expect(() => pg.slice(x, [0, 0])).toThrow(/\[slice\].*too many/);
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

  it('pads in every mode', async () => {
    const x = pg.arange(4);
    expect(await values(pg.pad(x, [[2, 3]], { mode: 'reflect' }))).toEqual([2, 1, 0, 1, 2, 3, 2, 1, 0]);
    expect(await values(pg.pad(x, [[2, 3]], { mode: 'symmetric' }))).toEqual([1, 0, 0, 1, 2, 3, 3, 2, 1]);
    expect(await values(pg.pad(x, [[2, 1]], { mode: 'replicate' }))).toEqual([0, 0, 0, 1, 2, 3, 3]);
    expect(await values(pg.pad(x, [[1, 2]], { mode: 'circular' }))).toEqual([3, 0, 1, 2, 3, 0, 1]);
    expect(await values(pg.pad(x, [[-1, 1]]))).toEqual([1, 2, 3, 0]);
    expect(await values(pg.pad(x, [[-1, 2]], { mode: 'circular' }))).toEqual([1, 2, 3, 0, 1]);
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
    expect(pg.expand(pg.zeros([3, 1]), [2, -1, 4]).shape).toEqual([2, 3, 4]);
  });

  it('handles eight axes', async () => {
    const x = range([2, 1, 2, 1, 2, 1, 2, 1]);
    const y = pg.permute(x, [7, 6, 5, 4, 3, 2, 1, 0]);
    expect(await values(y)).toEqual([0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15]);
    await near(pg.sum(y.mul(y), [0, 2, 4, 6]), [0, 64, 16, 144, 4, 100, 36, 196, 1, 81, 25, 169, 9, 121, 49, 225]);
  });
});

describe('indexing', () => {
  it('takes negative indices and moves others to the ends', async () => {
    const x = pg.tensor([10, 20, 30]);
    expect(await values(pg.take(x, i32([-1, 5, -9, 1])))).toEqual([30, 30, 10, 20]);
    expect(
      pg.take(
        range([2, 3]),
        i32([
          [0, 1],
          [1, 0],
        ]),
        1,
      ).shape,
    ).toEqual([2, 2, 2]);
    expect(() => pg.take(x, pg.tensor([0.5]))).toThrow(/\[take\].*float32/);
  });

  it('gathers and scatters along an axis', async () => {
    const x = range([2, 3]);
    expect(await values(pg.gather(x, i32([[2, 0]]), 1))).toEqual([2, 0]);
    expect(await values(pg.takeAlongAxis(x, i32([[1], [2]]), 1))).toEqual([1, 5]);
    expect(await values(pg.takeAlongAxis(x, i32([[1]]), 1))).toEqual([1, 4]);
    expect(
      await values(
        pg.scatterAdd(
          pg.zeros([2, 3], { dtype: 'float64' }),
          i32([
            [0, 0],
            [2, 1],
          ]),
          f64([
            [1, 2],
            [3, 4],
          ]),
          1,
        ),
      ),
    ).toEqual([3, 0, 0, 0, 4, 3]);
  });

  it('embeds without gradient for the padding row', async () => {
    const w = f64([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    const g = pg.grad((t: Tensor) => pg.sum(pg.embedding(i32([1, 2, 1]), t, { paddingIndex: 1 })))(w);
    expect(await values(g)).toEqual([0, 0, 0, 0, 1, 1]);
  });

  it('masks and one-hot rows', async () => {
    expect(await values(pg.maskedFill(range([3]), pg.tensor([true, false, true]), -1))).toEqual([-1, 1, -1]);
    expect(await values(pg.oneHot(i32([1, 5, -1]), 3))).toEqual([0, 1, 0, 0, 0, 0, 0, 0, 0]);
    expect(await values(pg.diagonal(range([3, 4]), { offset: 1 }))).toEqual([1, 6, 11]);
    expect(await values(pg.diagonal(range([3, 4]), { offset: -1 }))).toEqual([4, 9]);
    expect(await values(pg.diagonal(range([2, 2]), { offset: 5 }))).toEqual([]);
    expect(await values(pg.arange(5, 0, -2))).toEqual([5, 3, 1]);
    expect(await values(pg.linspace(0, 1, 1))).toEqual([0]);
    expect(await values(pg.eye(2, 3, { diagonal: 1 }))).toEqual([0, 1, 0, 0, 0, 1]);
    expect(await values(pg.triu(pg.ones([2, 3]), { diagonal: 1 }))).toEqual([0, 1, 1, 0, 0, 1]);
  });
});

describe('products', () => {
  it('einsum', async () => {
    const a = range([2, 3]);
    const b = range([3, 4]);
    expect(await values(pg.einsum('ij,jk->ki', a, b))).toEqual(await values(pg.transpose(pg.matmul(a, b))));
    expect(await values(pg.einsum('ij->', a))).toEqual([15]);
    expect(await values(pg.einsum('ii->i', range([3, 3])))).toEqual([0, 4, 8]);
    expect(await values(pg.einsum('ii', range([3, 3])))).toEqual([12]);
    expect(await values(pg.einsum('i,j->ij', f64([1, 2]), f64([3, 4])))).toEqual([3, 4, 6, 8]);
    expect(await values(pg.einsum('bij,bjk,k->bi', range([2, 2, 2]), range([2, 2, 2]), f64([1, 1])))).toEqual([
      5, 17, 101, 145,
    ]);
    expect(await values(pg.einsum('ij,ij->ij', a, a))).toEqual([0, 1, 4, 9, 16, 25]);
    expect(() => pg.einsum('ij,jk->il', a, b)).toThrow(/\[einsum\].*'l'/);
    expect(() => pg.einsum('ij,jk->ik', a, a)).toThrow(/\[einsum\].*'j' has 3.*2/);
    expect(() => pg.einsum('ij->i', a, b)).toThrow(/\[einsum\].*1 operands.*2/);
  });

  it('tensordot, dot, inner, outer', async () => {
    expect(
      pg.tensordot(range([2, 3, 4]), range([4, 3, 5]), [
        [1, 2],
        [1, 0],
      ]).shape,
    ).toEqual([2, 5]);
    await near(pg.inner(range([2, 2]), range([2, 2])), [1, 3, 3, 13]);
    expect(pg.dot(range([2, 3]), range([4, 3, 5])).shape).toEqual([2, 4, 5]);
    await near(pg.gemm(range([2, 2]), range([2, 2]), { transA: true, alpha: 2, beta: 3, c: 1 }), [11, 15, 15, 23]);
    expect(() => pg.matmul(pg.ones([]), pg.ones([2]))).toThrow(/\[matmul\].*mul\(\)/);
  });
});

describe('convolution and pooling', () => {
  it('takes paddings, layouts and a bias', async () => {
    const x = range([1, 1, 4, 4]);
    const w = pg.ones([1, 1, 3, 3], { dtype: 'float64' });
    expect(pg.conv2d(x, w, { padding: 'same' }).shape).toEqual([1, 1, 4, 4]);
    expect(pg.conv2d(x, w, { padding: 'same', stride: 2 }).shape).toEqual([1, 1, 2, 2]);
    expect(
      pg.conv2d(x, w, {
        padding: [
          [1, 0],
          [2, 1],
        ],
      }).shape,
    ).toEqual([1, 1, 3, 5]);
    await near(pg.conv2d(x, w, { bias: f64([100]) }), [145, 154, 181, 190]);
    const nhwc = pg.conv2d(pg.permute(x, [0, 2, 3, 1]), w, { layout: 'nhwc' });
    expect(nhwc.shape).toEqual([1, 2, 2, 1]);
    await near(nhwc, [45, 54, 81, 90]);
    await near(pg.depthwiseConv2d(range([1, 2, 2, 2]), pg.ones([4, 1, 2, 2], { dtype: 'float64' })), [6, 6, 22, 22]);
    expect(() => pg.conv2d(x, w, { padding: 'around' as never })).toThrow(/\[conv2d\].*around/);
    expect(() => pg.conv2d(x, w, { stride: 0 })).toThrow(/\[conv2d\].*stride/);
    expect(() => pg.conv2d(x, w, { bias: f64([1, 2]) })).toThrow(/\[conv2d\].*bias/);
  });

  it('transposed convolution undoes the shapes of convolution', async () => {
    await near(pg.convTranspose1d(f64([[[1, 2]]]), f64([[[1, 10, 100]]]), { stride: 2 }), [1, 10, 102, 20, 200]);
    await near(
      pg.convTranspose1d(f64([[[1, 2]]]), f64([[[1, 10, 100]]]), { stride: 2, padding: 1, outputPadding: 1 }),
      [10, 102, 20, 200],
    );
  });

  it('pools with positions, ceiling and padding that does not count', async () => {
    const x = pg.neg(range([1, 1, 3, 3]));
    const [top, at] = pg.maxPool2d(x, 2, { stride: 2, padding: 1, returnIndices: true });
    await near(top, [0, -1, -3, -4]);
    expect(await values(at)).toEqual([0, 1, 3, 4]);
    await near(pg.maxPool2d(range([1, 1, 3, 3]), 2, { ceilMode: true }), [4, 5, 7, 8]);
    await near(pg.avgPool2d(range([1, 1, 3, 3]), 2, { ceilMode: true }), [2, 3.5, 6.5, 8]);
    await near(pg.avgPool2d(range([1, 1, 2, 2]), 2, { padding: 1, stride: 2 }), [0, 0.25, 0.5, 0.75]);
    await near(pg.avgPool2d(range([1, 1, 2, 2]), 2, { padding: 1, stride: 2, countIncludePad: false }), [0, 1, 2, 3]);
    await near(pg.maxPool2d(range([1, 2, 2, 1]), { kernelSize: 2, layout: 'nhwc' }), [3]);
    await near(pg.maxPool1d(range([1, 1, 5]), { kernelSize: 2, stride: 1, dilation: 2 }), [2, 3, 4]);
    expect(await values(pg.maxPool1d(i32([[[-5, -7]]]), 2, { padding: 1 }))).toEqual([-5, -7]);
    expect(() => pg.maxPool2d(range([1, 1, 2, 2]), 3)).toThrow(/\[maxPool2d\].*3/);
    await near(pg.globalAvgPool2d(range([1, 2, 2, 2])), [1.5, 5.5]);
  });
});

describe('normalisation', () => {
  it('batchNorm uses and updates running statistics', async () => {
    const x = f64([
      [1, 10],
      [3, 30],
    ]);
    const runningMean = f64([0, 0]);
    const runningVar = f64([1, 1]);
    const y = pg.batchNorm(x, {
      training: true,
      runningMean,
      runningVar,
      eps: 0,
      weight: f64([2, 1]),
      bias: f64([0, 5]),
    });
    await near(y, [-2, 4, 2, 6]);
    await near(runningMean, [0.2, 2]);
    // Unbiased variances are 2 and 200.
    await near(runningVar, [1.1, 20.9]);
    await near(pg.batchNorm(x, { runningMean: f64([1, 10]), runningVar: f64([4, 100]), eps: 0 }), [0, 0, 1, 2]);
    expect(() => pg.batchNorm(x)).toThrow(/\[batchNorm\].*statistics/);
  });

  it('does not put running statistics into the gradient', async () => {
    const runningMean = f64([0]);
    const runningVar = f64([1]);
    const f = (t: Tensor): Tensor =>
      pg.sum(pg.square(pg.batchNorm(t, { training: true, runningMean, runningVar })).mul(f64([[1], [2], [3]])));
    expect(await pg.gradCheck(f, [f64([[1], [2], [5]])])).toBe(true);
    expect(runningMean.requiresGrad).toBe(false);
  });

  it('groupNorm, instanceNorm, rmsNorm', async () => {
    await near(pg.groupNorm(f64([[1, 3, 10, 30]]), { groups: 2, eps: 0 }), [-1, 1, -1, 1]);
    await near(
      pg.instanceNorm(
        f64([
          [
            [1, 3],
            [5, 5],
          ],
        ]),
        { eps: 1e-12 },
      ),
      [-1, 1, 0, 0],
      5,
    );
    await near(pg.rmsNorm(f64([[3, 4]]), { eps: 0 }), [3 / Math.sqrt(12.5), 4 / Math.sqrt(12.5)]);
    expect(() => pg.groupNorm(pg.ones([1, 3]), { groups: 2 })).toThrow(/\[groupNorm\].*3.*2/);
    expect(() => pg.layerNorm(pg.ones([2, 3]), { normalizedShape: [2] })).toThrow(/\[layerNorm\].*\[2\].*\[2, 3\]/);
  });
});

describe('losses', () => {
  const logits = f64([
    [1, 2, 3],
    [0, 0, 0],
    [3, 0, -1],
  ]);
  const logs = [
    [1, 2, 3],
    [0, 0, 0],
    [3, 0, -1],
  ].map((row) => {
    const total = Math.log(row.reduce((s, v) => s + Math.exp(v), 0));
    return row.map((v) => v - total);
  }) as [number, number, number][];
  const target = i32([2, 0, 1]);
  const picked = [logs[0]?.[2], logs[1]?.[0], logs[2]?.[1]].map((v) => -(v as number)) as [number, number, number];

  it('crossEntropy: reductions', async () => {
    await near(pg.crossEntropy(logits, target, { reduction: 'none' }), picked);
    await near(pg.crossEntropy(logits, target, { reduction: 'sum' }), [picked[0] + picked[1] + picked[2]]);
    await near(pg.crossEntropy(logits, target), [(picked[0] + picked[1] + picked[2]) / 3]);
    await near(pg.nllLoss(pg.logSoftmax(logits), target), [(picked[0] + picked[1] + picked[2]) / 3]);
    await near(pg.crossEntropy(f64([1, 2, 3]), i32(2)), [picked[0]]);
  });

  it('crossEntropy: class weights and ignored targets, means weighted as in PyTorch', async () => {
    const weight = f64([1, 10, 100]);
    await near(pg.crossEntropy(logits, target, { weight }), [(100 * picked[0] + picked[1] + 10 * picked[2]) / 111]);
    await near(pg.crossEntropy(logits, target, { ignoreIndex: 0 }), [(picked[0] + picked[2]) / 2]);
    await near(pg.crossEntropy(logits, i32([2, -100, 1]), { ignoreIndex: -100, weight }), [
      (100 * picked[0] + 10 * picked[2]) / 110,
    ]);
    await near(pg.crossEntropy(logits, i32([2, -100, 1]), { ignoreIndex: -100, reduction: 'none' }), [
      picked[0],
      0,
      picked[2],
    ]);
  });

  it('crossEntropy: probabilities and smoothing agree', async () => {
    const oneHot = pg.oneHot(target, 3, { dtype: 'float64' });
    const hard = await values(pg.crossEntropy(logits, target, { labelSmoothing: 0.3 }));
    await near(pg.crossEntropy(logits, oneHot, { labelSmoothing: 0.3 }), hard);
    const soft = oneHot.mul(0.7).add(0.1);
    await near(pg.crossEntropy(logits, soft), hard);
  });

  it('crossEntropy over images, and its gradient', async () => {
    const images = range([2, 3, 2, 2]).mul(0.1);
    const labels = i32([
      [
        [0, 1],
        [2, 0],
      ],
      [
        [1, 1],
        [0, 2],
      ],
    ]);
    expect(pg.crossEntropy(images, labels, { reduction: 'none' }).shape).toEqual([2, 2, 2]);
    expect(
      await pg.gradCheck(
        (x) => pg.crossEntropy(x, labels, { labelSmoothing: 0.1, ignoreIndex: 2, weight: f64([1, 2, 3]) }),
        [images],
      ),
    ).toBe(true);
    const g = await values(pg.grad((x: Tensor) => pg.crossEntropy(x, target, { reduction: 'sum' }))(logits));
    const expected = logs.flatMap((row, i) => row.map((v, j) => Math.exp(v) - ([2, 0, 1][i] === j ? 1 : 0)));
    g.forEach((v, i) => {
      expect(v).toBeCloseTo(expected[i] as number, 12);
    });
  });

  it('says what does not fit', () => {
    expect(() => pg.crossEntropy(logits, i32([1, 2]))).toThrow(/\[crossEntropy\].*\[2\].*\[3\]/);
    expect(() => pg.crossEntropy(logits, pg.tensor([true, false, true]))).toThrow(/\[crossEntropy\].*bool/);
    expect(() => pg.crossEntropy(logits, f64([[1, 2]]))).toThrow(/\[crossEntropy\]/);
    expect(() => pg.crossEntropy(logits, target, { labelSmoothing: 2 })).toThrow(/labelSmoothing.*2/);
    expect(() => pg.mseLoss(f64([1]), f64([1, 2]))).toThrow(/\[mseLoss\].*\[1\].*\[2\]/);
    expect(() => pg.mseLoss(f64([1]), f64([1]), { reduction: 'max' as never })).toThrow(/\[mseLoss\].*max/);
  });

  it('regression and binary losses', async () => {
    await near(pg.huberLoss(f64([0, 0]), f64([0.5, 3]), { delta: 2, reduction: 'none' }), [0.125, 4]);
    await near(pg.smoothL1Loss(f64([0, 0]), f64([0.5, 3]), { beta: 2, reduction: 'none' }), [0.0625, 2]);
    await near(pg.klDiv(pg.log(f64([0.25, 0.75])), f64([0.5, 0.5]), { reduction: 'sum' }), [
      0.5 * Math.log(2) + 0.5 * Math.log(2 / 3),
    ]);
    const p = 1 / (1 + Math.exp(-2));
    await near(pg.binaryCrossEntropyWithLogits(f64([2, 2]), f64([1, 0]), { reduction: 'none', posWeight: 3 }), [
      -3 * Math.log(p),
      -Math.log(1 - p),
    ]);
    await near(pg.binaryCrossEntropy(f64([0, 0.25]), f64([1, 1]), { reduction: 'none' }), [100, -Math.log(0.25)]);
    await near(
      pg.grad((x: Tensor) => pg.sum(pg.binaryCrossEntropyWithLogits(x, f64([1, 0, 1]), { reduction: 'none' })))(
        f64([0, 0, 1000]),
      ),
      [-0.5, 0.5, 0],
    );
  });
});

describe('random numbers', () => {
  it('repeat with the key and differ without', async () => {
    expect(await values(pg.rand([5], { key: 3 }))).toEqual(await values(pg.rand([5], { key: 3 })));
    expect(await values(pg.rand([5], { key: 3 }))).not.toEqual(await values(pg.rand([5], { key: 4 })));
    pg.seed(1);
    const first = await values(pg.rand([5]));
    const second = await values(pg.rand([5]));
    expect(first).not.toEqual(second);
    pg.seed(1);
    expect(await values(pg.rand([5]))).toEqual(first);
    const [a, b] = pg.splitKey(pg.randomKey(1)) as [pg.RandomKey, pg.RandomKey];
    expect(a).not.toEqual(b);
    expect(() => pg.randomKey(0.5)).toThrow(/\[randomKey\]/);
  });

  it('have the moments of their distributions', async () => {
    const n = 4000;
    for (const dtype of ['float32', 'float64'] as const) {
      const u = await values(pg.rand([n], { key: 1, dtype }));
      expect(Math.min(...u)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...u)).toBeLessThan(1);
      expect(u.reduce((s, v) => s + v, 0) / n).toBeCloseTo(0.5, 1);
      const z = await values(pg.randn([n], { key: 2, dtype }));
      expect(z.every(Number.isFinite)).toBe(true);
      expect(Math.abs(z.reduce((s, v) => s + v, 0) / n)).toBeLessThan(0.06);
      expect(z.reduce((s, v) => s + v * v, 0) / n).toBeCloseTo(1, 0);
    }
    const k = await values(pg.randint(-2, 3, [n], { key: 3 }));
    expect([...new Set(k)].sort((p, q) => p - q)).toEqual([-2, -1, 0, 1, 2]);
    const coins = await values(pg.bernoulli(0.25, [n], { key: 4 }));
    expect(Math.abs(coins.reduce((s, v) => s + v, 0) / n - 0.25)).toBeLessThan(0.03);
    expect(await values(pg.bernoulli(f64([0, 1]), undefined, { key: 1 }))).toEqual([0, 1]);
  });

  it('permutation is a permutation', async () => {
    const order = await values(pg.permutation(100, { key: 5 }));
    expect([...order].sort((p, q) => p - q)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(order).not.toEqual([...order].sort((p, q) => p - q));
    expect(pg.permutation(range([3, 2]), { axis: 1 }).shape).toEqual([3, 2]);
  });

  it('dropout keeps the mean and passes gradients where it keeps', async () => {
    const y = await values(pg.dropout(pg.ones([4000]), { p: 0.25, key: 6 }));
    const kept = y.filter((v) => v !== 0);
    expect(new Set(kept).size).toBe(1);
    expect(kept[0]).toBeCloseTo(4 / 3, 5);
    expect(Math.abs(kept.length / 4000 - 0.75)).toBeLessThan(0.03);
    expect(await values(pg.dropout(pg.ones([3]), { p: 0.5, training: false }))).toEqual([1, 1, 1]);
    expect(await values(pg.dropout(pg.ones([3]), { p: 1 }))).toEqual([0, 0, 0]);
    const g = await values(pg.grad((x: Tensor) => pg.sum(pg.dropout(x, { p: 0.25, key: 6 })))(pg.ones([4000])));
    expect(g).toEqual(y);
  });

  it('make no new plan when repeated', async () => {
    const draw = async (): Promise<void> => {
      const t = pg.randn([8]);
      await t.data();
      t.dispose();
    };
    await draw();
    const before = pg.stats().planMisses;
    await draw();
    await draw();
    expect(pg.stats().planMisses).toBe(before);
  });
});

describe('numbers of users are bound, not baked', () => {
  it('a changing number makes no new plan, also inside composites', async () => {
    const x = f64([1, 2, 3, 4]);
    const run = async (k: number): Promise<void> => {
      const y = pg.scope(() => pg.leakyRelu(pg.clip(x.mul(k), k, k + 1), { slope: k }));
      await y.data();
      y.dispose();
    };
    pg.flush();
    await run(0.3);
    const before = pg.stats().planMisses;
    await run(0.4);
    expect(pg.stats().planMisses).toBe(before);
  });
});

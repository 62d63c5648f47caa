/** Products, distances and rearranged matrices beyond what the conformance suite draws: special values, gradients there, errors. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { f64, near, range, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());
const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

describe('distances', () => {
  it('have gradient 0 where points coincide, at every order p, and at the second order too', async () => {
    for (const p of [0.5, 1, 1.5, 2, 3, inf]) {
      const near = (a: Tensor): Tensor => pg.sum(pg.cdist(a, f64([[1, 2]]), { p }));
      expect(await values(pg.grad(near)(f64([[1, 2]])) as Tensor)).toEqual([0, 0]);
      const slope = (a: Tensor): Tensor => pg.sum(pg.grad(near)(a) as Tensor);
      expect(await values(pg.grad(slope)(f64([[1, 2]])) as Tensor)).toEqual([0, 0]);
    }
  });

  it('count differing components at order 0, and are 0 without components', async () => {
    expect(await values(pg.cdist(f64([[1, 2, 3]]), f64([[1, 0, 0]]), { p: 0 }))).toEqual([2]);
    expect(await values(pg.cdist(pg.zeros([2, 0]), pg.zeros([1, 0])))).toEqual([0, 0]);
    expect(pg.cdist(pg.zeros([0, 3]), pg.zeros([2, 3])).shape).toEqual([0, 2]);
  });

  it('keep the accuracy of close points far from the origin', async () => {
    const x = pg.tensor([[1e4, 1e4]]);
    const y = pg.tensor([[1e4 + 0.0078125, 1e4]]);
    expect(await values(pg.cdist(x, y))).toEqual([0.0078125]);
  });

  it('norm has gradient 0 at 0 and finite gradients beside zeros, at every order', async () => {
    for (const p of [0.5, 1, 1.5, 2, 3, inf]) {
      const size = (x: Tensor): Tensor => pg.norm(x, { p });
      expect(await values(pg.grad(size)(f64([0, 0])) as Tensor)).toEqual([0, 0]);
      expect((await values(pg.grad(size)(f64([0, 2])) as Tensor)).every(Number.isFinite)).toBe(true);
    }
  });

  it('normalize and cosineSimilarity stop at eps', async () => {
    expect(await values(pg.normalize(f64([0, 0])))).toEqual([0, 0]);
    expect(await values(pg.grad((x: Tensor) => pg.sum(pg.normalize(x, { eps: 0.5 })))(f64([0, 0])) as Tensor)).toEqual([
      2, 2,
    ]);
    expect(await values(pg.cosineSimilarity(f64([0, 0]), f64([1, 2])))).toEqual([0]);
    const slope = pg.grad((x: Tensor) => pg.cosineSimilarity(x, f64([3, 4]), { eps: 0.1 }))(f64([0, 0])) as Tensor;
    (await values(slope)).forEach((v, i) => {
      expect(v).toBeCloseTo([6, 8][i]!, 12);
    });
    expect(await values(pg.normalize(f64([nan, 1])))).toEqual([nan, nan]);
  });

  it('refuse what does not fit', () => {
    expect(() => pg.cdist(pg.zeros([2, 3]), pg.zeros([2, 4]))).toThrow(/\[cdist\].*\[2, 3\].*\[2, 4\]/);
    expect(() => pg.cdist(pg.zeros([3]), pg.zeros([2, 3]))).toThrow(/\[cdist\].*\[3\]/);
    expect(() => pg.cdist(pg.zeros([2, 2, 3]), pg.zeros([3, 2, 3]))).toThrow(/\[cdist\].*broadcast/);
    expect(() => pg.cdist(pg.zeros([2, 3]), pg.zeros([2, 3]), { p: -1 })).toThrow(/\[cdist\].*-1/);
    expect(() => pg.normalize(pg.zeros([3]), { axis: 1 })).toThrow(/\[normalize\].*1/);
    expect(() => pg.normalize(pg.zeros([3]), { p: nan })).toThrow(/\[normalize\].*NaN/);
    expect(() => pg.cosineSimilarity(pg.zeros([3]), pg.zeros([4]))).toThrow(/\[cosineSimilarity\].*3.*4/);
    expect(() => pg.cosineSimilarity(pg.zeros([]), pg.zeros([]))).toThrow(/\[cosineSimilarity\].*scalars/);
    expect(() => pg.norm(pg.zeros([3]), { p: nan })).toThrow(/\[norm\].*NaN/);
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

  it('gemm and gemv do not read the addend where beta is 0', async () => {
    const a = f64([[1, 2]]);
    const b = f64([[3], [4]]);
    expect(await values(pg.gemm(a, b, { c: f64([[nan]]), beta: 0 }))).toEqual([11]);
    expect(await values(pg.gemv(a, f64([1, 1]), { y: f64([inf]), beta: 0 }))).toEqual([3]);
    expect(await values(pg.gemm(a, b, { c: 2, beta: 3, alpha: -1 }))).toEqual([-5]);
  });

  it('gemm and gemv of 16 bits round once, after alpha and beta', async () => {
    // The square of 1 + 2^-7 needs 15 digits, of which a float16 has 11. 64 times it, less 64, has 9 again.
    const one = 1 + 2 ** -7;
    const a = pg.tensor([[one]], { dtype: 'float16' });
    const x = pg.tensor([one], { dtype: 'float16' });
    const options = { alpha: 64, beta: -64 };
    const y = pg.tensor([1], { dtype: 'float16' });
    const exact = 64 * one * one - 64;
    const product = pg.gemv(a, x, { ...options, y });
    expect(product.dtype).toBe('float16');
    expect(await product.array()).toEqual([exact]);
    const matrix = pg.gemm(a, x.reshape([1, 1]), { ...options, c: y });
    expect(await matrix.array()).toEqual([[exact]]);
  });

  it('are batched in gemm as in matmul, of all numbers of axes', () => {
    const shapes: readonly (readonly [number[], number[], number[]])[] = [
      [[3], [3], []],
      [[3], [3, 4], [4]],
      [[2, 3], [3], [2]],
      [[5, 2, 3], [3], [5, 2]],
      [[3], [5, 3, 4], [5, 4]],
      [
        [5, 2, 3],
        [3, 4],
        [5, 2, 4],
      ],
      [
        [2, 3],
        [5, 3, 4],
        [5, 2, 4],
      ],
      [
        [6, 1, 2, 3],
        [5, 3, 4],
        [6, 5, 2, 4],
      ],
      [[6, 5, 2, 3], [3], [6, 5, 2]],
      [[3], [6, 5, 3, 4], [6, 5, 4]],
      [
        [0, 2, 3],
        [1, 3, 4],
        [0, 2, 4],
      ],
    ];
    for (const [a, b, expected] of shapes) expect(pg.matmul(pg.ones(a), pg.ones(b)).shape).toEqual(expected);
    expect(pg.gemm(pg.ones([5, 3, 2]), pg.ones([4, 3]), { transA: true, transB: true }).shape).toEqual([5, 2, 4]);
  });

  it('of integers stay integers', async () => {
    const x = pg.tensor([1, 2, 3], { dtype: 'int32' });
    expect(pg.kron(x, x).dtype).toBe('int32');
    expect(await values(pg.cross(x, pg.tensor([4, 5, 6], { dtype: 'int32' })))).toEqual([-3, 6, -3]);
    expect(await values(pg.einsum('i,i', x, x))).toEqual([14]);
  });

  it('refuse what does not fit', () => {
    const z = pg.zeros;
    expect(() => pg.matmul(z([]), z([2]))).toThrow(/\[matmul\].*scalar/);
    expect(() => pg.matmul(z([2, 2, 3]), z([3, 3, 2]))).toThrow(/\[matmul\].*broadcast/);
    expect(() => pg.gemm(z([2]), z([2, 2]))).toThrow(/\[gemm\].*\[2\]/);
    expect(() => pg.gemm(z([2, 3]), z([2, 3]))).toThrow(/\[gemm\].*3.*2/);
    expect(() => pg.gemm(z([2, 3]), z([3, 2]), { c: z([3, 2, 2]) })).toThrow(/\[gemm\].*\[3, 2, 2\].*\[2, 2\]/);
    expect(() => pg.gemv(z([2, 3]), z([2]))).toThrow(/\[gemv\].*3.*2/);
    expect(() => pg.gemv(z([2]), z([2]))).toThrow(/\[gemv\].*\[2\]/);
    expect(() => pg.dot(z([2]), z([3]))).toThrow(/\[dot\].*2.*3/);
    expect(() => pg.inner(z([2]), z([3]))).toThrow(/\[inner\].*2.*3/);
    expect(() => pg.vdot(z([2]), z([3]))).toThrow(/\[vdot\].*2.*3/);
    expect(() => pg.tensordot(z([2, 3]), z([2, 3]), 1)).toThrow(/\[tensordot\].*3.*2/);
    expect(() => pg.tensordot(z([2]), z([2]), 2)).toThrow(/\[tensordot\].*2/);
    expect(() => pg.cross(z([2]), z([3]))).toThrow(/\[cross\]/);
    expect(() => pg.cross(z([3]), z([3]), { axes: 0 } as never)).toThrow(/\[cross\].*axes.*axis/);
    expect(() => pg.cross(z([]), z([]))).toThrow(/\[cross\]/);
    expect(() => pg.cross(z([2]), z([2]))).toThrow(/\[cross\].*2, not 3/);
    expect(() => pg.cross(z([4, 3]), z([3]), 0)).toThrow(/\[cross\]/);
    expect(() => pg.bilinear(z([2]), z([3]), z([4, 3, 2]))).toThrow(/\[bilinear\].*\[4, 3, 2\]/);
    expect(() => pg.bilinear(z([2]), z([3]), z([4, 2, 3]), z([3]))).toThrow(/\[bilinear\].*\[3\].*\[4\]/);
    expect(() => pg.bilinear(z([5, 2]), z([4, 3]), z([4, 2, 3]))).toThrow(/\[bilinear\].*\[5, 2\]/);
    expect(() => pg.kron(pg.ones([2]), pg.tensor([true]))).toThrow(/\[kron\].*bool/);
  });
});

describe('einsum', () => {
  it('says what is wrong with an equation', () => {
    const [a, b] = [pg.zeros([2, 3]), pg.zeros([3, 4])];
    const wrong = (equation: string, ...xs: Tensor[]) => expect(() => pg.einsum(equation, ...xs));
    wrong('ij,jk', a).toThrow(/\[einsum\].*2 operands.*1/);
    wrong('ij->ij->', a).toThrow(/\[einsum\].*two arrows/);
    wrong('i1->i', a).toThrow(/\[einsum\].*'1'/);
    wrong('ijk->i', a).toThrow(/\[einsum\].*'ijk'.*\[2, 3\]/);
    wrong('i->i', a).toThrow(/\[einsum\].*\[2, 3\]/);
    wrong('ij->k', a).toThrow(/\[einsum\].*'k'/);
    wrong('ij->ii', a).toThrow(/\[einsum\].*'i'/);
    wrong('ij,ij', a, b).toThrow(/\[einsum\].*'i'.*2.*3/);
    wrong('ii', a).toThrow(/\[einsum\].*'i'.*2.*3/);
    wrong('...i...', a).toThrow(/\[einsum\].*ellips/);
    wrong('..i', a).toThrow(/\[einsum\].*'\.'/);
    wrong('i...,j...', a, b).toThrow(/\[einsum\].*\.\.\..*3.*4/);
    expect(() => pg.einsum(a as never)).toThrow(/\[einsum\].*text/);
  });
});

describe('rearranging', () => {
  it('keeps bool and integers', async () => {
    expect(await pg.pad(pg.tensor([true]), 1).array()).toEqual([false, true, false]);
    expect(await pg.diag(pg.tensor([true, true])).array()).toEqual([
      [true, false],
      [false, true],
    ]);
    expect(pg.unfold(pg.ones([1, 2, 2], { dtype: 'int32' }), 2).dtype).toBe('int32');
  });

  it('takes empty tensors', () => {
    expect(pg.diag(pg.zeros([0])).shape).toEqual([0, 0]);
    expect(pg.diag(pg.zeros([2, 3]), { offset: 9 }).shape).toEqual([0]);
    expect(pg.unfold(pg.zeros([0, 3, 4, 4]), 2).shape).toEqual([0, 12, 9]);
    expect(pg.meshgrid([pg.zeros([0]), pg.zeros([3])]).map((t) => t.shape)).toEqual([
      [3, 0],
      [3, 0],
    ]);
  });

  it('leaves unbatched images unbatched', () => {
    expect(pg.unfold(pg.zeros([3, 4, 4]), 2).shape).toEqual([12, 9]);
    expect(pg.fold(pg.zeros([12, 9]), 4, 2).shape).toEqual([3, 4, 4]);
  });

  it('refuses what does not fit', () => {
    const z = pg.zeros;
    expect(() => pg.diag(z([2, 2, 2]))).toThrow(/\[diag\].*\[2, 2, 2\]/);
    expect(() => pg.diag(z([2]), { offset: 0.5 })).toThrow(/\[diag\].*0.5/);
    expect(() => pg.diagEmbed(z([]))).toThrow(/\[diagEmbed\].*scalar/);
    expect(() => pg.diagEmbed(z([2]), { axis1: 1 })).toThrow(/\[diagEmbed\].*1.*-1/);
    expect(() => pg.diagEmbed(z([2]), { axis1: 2 })).toThrow(/\[diagEmbed\].*2/);
    expect(() => pg.rot90(z([2, 2]), 0.5)).toThrow(/\[rot90\].*0.5/);
    expect(() => pg.rot90(z([2, 2]), 1, [0, -2])).toThrow(/\[rot90\].*0.*-2/);
    expect(() => pg.rot90(z([2]))).toThrow(/\[rot90\].*1/);
    expect(() => pg.meshgrid([z([2, 2])])).toThrow(/\[meshgrid\].*\[2, 2\]/);
    expect(() => pg.meshgrid([])).toThrow(/\[meshgrid\].*empty/);
    expect(() => pg.meshgrid([z([2])], { indexing: 'yx' as never })).toThrow(/\[meshgrid\].*'yx'/);
    expect(() => pg.unfold(z([4, 4]), 2)).toThrow(/\[unfold\].*\[4, 4\]/);
    expect(() => pg.unfold(z([1, 4, 4]), 5)).toThrow(/\[unfold\].*5.*4/);
    expect(() => pg.unfold(z([1, 4, 4]), [2, 2, 2])).toThrow(/\[unfold\].*kernelSize.*3/);
    expect(() => pg.unfold(z([1, 4, 4]), 2, { stride: 0 })).toThrow(/\[unfold\].*stride.*0/);
    expect(() => pg.fold(z([5, 9]), 4, 2)).toThrow(/\[fold\].*5.*4/);
    expect(() => pg.fold(z([4, 8]), 4, 2)).toThrow(/\[fold\].*8.*9/);
    expect(() => pg.pixelShuffle(z([3, 2, 2]), 2)).toThrow(/\[pixelShuffle\].*3.*4/);
    expect(() => pg.pixelShuffle(z([2, 2]), 2)).toThrow(/\[pixelShuffle\].*\[2, 2\]/);
    expect(() => pg.pixelUnshuffle(z([1, 3, 4]), 2)).toThrow(/\[pixelUnshuffle\].*3 by 4/);
    expect(() => pg.pixelUnshuffle(z([1, 4, 4]), 0)).toThrow(/\[pixelUnshuffle\].*0/);
  });

  it('and so do padding and patterns', () => {
    const z = pg.zeros;
    expect(() => pg.pad(z([2]), 1, { mode: 'mirror' as never })).toThrow(/\[pad\].*'mirror'.*reflect/);
    expect(() => pg.pad(pg.tensor([1], { dtype: 'int32' }), 1, { value: 0.5 })).toThrow(/\[pad\].*0\.5.*int32/);
    expect(() => pg.pad(z([3]), [[3, 0]], { mode: 'reflect' })).toThrow(/\[pad\].*3.*2/);
    expect(() => pg.oneHot(pg.tensor([0], { dtype: 'int32' }), -1)).toThrow(/\[oneHot\].*-1/);
    expect(() => pg.oneHot(z([2]), 3)).toThrow(/\[oneHot\].*float32/);
    expect(() => pg.eye(-1)).toThrow(/\[eye\].*-1/);
    expect(() => pg.eye(2, { diagonal: 0.5 })).toThrow(/\[eye\].*0\.5/);
    expect(() => pg.tri(2, 2.5)).toThrow(/\[tri\].*2\.5/);
    expect(() => pg.tril(z([2, 2]), { diagonal: 0.5 })).toThrow(/\[tril\].*0\.5/);
    expect(() => pg.diagonal(z([2, 2]), { offset: 0.5 })).toThrow(/\[diagonal\].*0\.5/);
    expect(() => pg.diagonal(z([2, 2]), { axis1: 0, axis2: 2 })).toThrow(/\[diagonal\].*2/);
    expect(() => pg.roll(z([2]), 0.5)).toThrow(/\[roll\].*0\.5/);
  });
});

/** Elementwise functions at their edges: zeros and their signs, infinities, ties, far arguments; values and derivatives. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { derivative, f32, f64, i32, near, type Unary, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

describe('division with a rest', () => {
  // Python's // and %, which are exact: 1 / 0.1 rounds to 10, but 0.1 fits only 9 times.
  const pairs: readonly (readonly [a: number, b: number, quotient: number, rest: number])[] = [
    [7, 2, 3, 1],
    [-7, 2, -4, 1],
    [7, -2, -4, -1],
    [-7, -2, 3, -1],
    [1, 0.1, 9, 1 % 0.1],
    [-1, 0.1, -10, 0.1 - (1 % 0.1)],
    [6, -3, -2, -0],
    [-6, 3, -2, 0],
    [0, 3, 0, 0],
    [-0, 3, -0, 0],
    [0, -3, -0, -0],
    [5, inf, 0, 5],
    [-5, inf, -1, inf],
    [5, -inf, -1, -inf],
    [5, 0, inf, nan],
    [-5, 0, -inf, nan],
    [0, 0, nan, nan],
    [inf, 2, inf, nan],
    [nan, 2, nan, nan],
    [2, nan, nan, nan],
  ];
  it('is exact, with the signs of Python', async () => {
    const [a, b] = [f64(pairs.map((p) => p[0])), f64(pairs.map((p) => p[1]))];
    expect(await values(pg.floorDivide(a, b))).toEqual(pairs.map((p) => p[2]));
    expect(await values(pg.remainder(a, b))).toEqual(pairs.map((p) => p[3]));
  });

  it('fmod is the rest of C, with the sign of a', async () => {
    const got = await values(pg.fmod(f64([7, -7, 7, -6, 5, inf, 5]), f64([2, 2, -2, 3, inf, 2, 0])));
    expect(got).toEqual([1, -1, 1, -0, 5, nan, nan]);
  });

  it('of integers truncates or floors, and wraps', async () => {
    const [a, b] = [i32([7, -7, 7, -7, -2147483648]), i32([2, 2, -2, -2, -1])];
    expect(await values(pg.floorDivide(a, b))).toEqual([3, -4, -4, 3, -2147483648]);
    expect((await values(pg.remainder(a, b))).map((x) => x + 0)).toEqual([1, 1, -1, -1, 0]);
    expect((await values(pg.fmod(a, b))).map((x) => x + 0)).toEqual([1, -1, 1, -1, 0]);
  });

  it('has slopes: 1 by a and -floor(a / b) by b for the rest, 0 for the quotient', async () => {
    const [a, b] = [f64([7.5, -7.5, 6]), f64([2, 2, 3])];
    const by = pg.grads((x: Tensor, y: Tensor) => pg.sum(pg.remainder(x, y)))(a, b) as [Tensor, Tensor];
    expect(await values(by[0])).toEqual([1, 1, 1]);
    expect(await values(by[1])).toEqual([-3, 4, -2]);
    expect((await values(derivative((x) => pg.floorDivide(x, b), 1)(a))).map((x) => x + 0)).toEqual([0, 0, 0]);
  });
});

describe('functions with a singular point', () => {
  it('inverse hyperbolic functions have their slopes at 0 and keep their digits near 1', async () => {
    expect(await values(derivative(pg.asinh, 1)(f64([0, -0])))).toEqual([1, 1]);
    expect(await values(derivative(pg.atanh, 1)(f64([0, -0])))).toEqual([1, 1]);
    expect((await values(derivative(pg.asinh, 2)(f64([0]))))[0]).toBeCloseTo(0, 15);
    expect(await values(derivative(pg.asinh, 3)(f64([0])))).toEqual([-1]);
    const low = 1 - 2 ** -20;
    const [a, b] = await values(pg.atanh(f32([low, -low])));
    expect(Math.abs((a as number) / Math.atanh(low) - 1)).toBeLessThan(3e-7);
    expect(b).toBe(-(a as number));
    expect(await values(pg.atanh(f64([1, -1, 2])))).toEqual([inf, -inf, nan]);
    expect(await values(pg.asinh(f64([inf, -inf, -0])))).toEqual([inf, -inf, -0]);
    expect(await values(pg.acosh(f64([1, 0.5, inf])))).toEqual([0, nan, inf]);
    expect(await values(derivative(pg.acosh, 1)(f64([1])))).toEqual([inf]);
  });

  it('cbrt is steep at 0', async () => {
    expect(await values(pg.cbrt(f64([0, -0, inf, -inf])))).toEqual([0, -0, inf, -inf]);
    expect(await values(derivative(pg.cbrt, 1)(f64([0, 8])))).toEqual([inf, 1 / 12]);
    await near(derivative(pg.cbrt, 2)(f64([-8])), [1 / 144]);
    await near(pg.cbrt(f64([1e-310, 1e300])), [Math.cbrt(1e-310), 1e100], 1e85);
  });

  it('sinc has the derivatives of its series at 0, and smooth ones beside it', async () => {
    const p = Math.PI;
    const at0 = [1, 0, -(p ** 2) / 3, 0, p ** 4 / 5];
    for (const [order, expected] of at0.entries()) await near(derivative(pg.sinc, order)(f64([0])), [expected]);
    // sinc'(x) = (cos(pi x) - sinc(x)) / x
    const x = 0.7;
    const s = Math.sin(p * x) / (p * x);
    await near(derivative(pg.sinc, 1)(f64([x])), [(Math.cos(p * x) - s) / x]);
  });

  it('maximum and minimum have second derivatives through what is made of them', async () => {
    // (max(x, y) - min(x, y))^2 is (x - y)^2.
    const f = (x: Tensor, y: Tensor): Tensor => pg.sum(pg.square(pg.sub(pg.maximum(x, y), pg.minimum(x, y))));
    const slope = (x: Tensor, y: Tensor): Tensor => pg.sum(pg.mul((pg.grads(f)(x, y) as Tensor[])[0]!, f64([1, 10])));
    const [byX, byY] = pg.grads(slope)(f64([1, 5]), f64([3, 2])) as [Tensor, Tensor];
    expect(await values(byX)).toEqual([2, 20]);
    expect(await values(byY)).toEqual([-2, -20]);
    // Nothing wins beside NaN.
    expect(await values(pg.grads(slope)(f64([1, Number.NaN]), f64([3, 2]))[0]!)).toEqual([2, Number.NaN]);
  });

  it('logAddExp shares its slope at ties, at every order', async () => {
    const f: Unary = (x) => pg.logAddExp(x, f64([1, -inf, 2]));
    await near(f(f64([1, -inf, -inf])), [1 + Math.LN2, -inf, 2]);
    await near(derivative(f, 1)(f64([1, 0, 0])), [0.5, 1, 1 / (1 + Math.exp(2))]);
    await near(derivative(f, 2)(f64([1, 0, 0])), [0.25, 0, Math.exp(2) / (1 + Math.exp(2)) ** 2]);
    expect(await values(pg.logAddExp(f64([inf, inf]), f64([inf, -inf])))).toEqual([inf, inf]);
  });

  it('xlogy is 0 at 0', async () => {
    expect(await values(pg.xlogy(f64([0, 0, 0, 2]), f64([0, inf, nan, 0])))).toEqual([0, 0, nan, -inf]);
  });

  it('hypot neither overflows nor loses small sides, and takes integers', async () => {
    const got = await values(pg.hypot(f32([3e30, 3e-30, 0, inf, nan]), f32([4e30, 4e-30, 0, nan, inf])));
    expect(got.slice(2)).toEqual([0, inf, inf]);
    expect(Math.abs(got[0]! / 5e30 - 1)).toBeLessThan(2e-7);
    expect(Math.abs(got[1]! / 5e-30 - 1)).toBeLessThan(2e-7);
    expect(await values(pg.hypot(i32([3]), 4))).toEqual([5]);
    await near(derivative((x) => pg.hypot(x, f64([0, 4])), 1)(f64([0, 3])), [0, 0.6]);
  });

  it('copysign sees the sign of zero', async () => {
    expect(await values(pg.copysign(f64([1, -1, 2, 0]), f64([-0, 0, -inf, -1])))).toEqual([-1, 1, -2, -0]);
  });

  it('lerp is exact at both ends', async () => {
    const [a, b] = [f32([0.1, 1e8]), f32([0.7, 1])];
    expect(await values(pg.lerp(a, b, 0))).toEqual(await values(a));
    expect(await values(pg.lerp(a, b, 1))).toEqual(await values(b));
  });

  it('pow with the exponent 0.5 is that of C', async () => {
    expect(await values(pg.pow(f64([-0, -inf, 4, -1]), 0.5))).toEqual([0, inf, 2, nan]);
    expect(await values(pg.pow(f64([-0, -inf, 4]), -0.5))).toEqual([inf, 0, 0.5]);
  });

  it('powers of bool are refused, whatever the exponent is', () => {
    const mask = pg.tensor([true, false]);
    const refused = /\[pow\] (dtype not accepted: bool|no common dtype: number \d and bool)/;
    expect(() => pg.pow(mask, mask)).toThrow(refused);
    for (const exponent of [0, 1, 2, 3]) expect(() => pg.pow(mask, exponent)).toThrow(refused);
  });

  it('nanToNum, heaviside and isClose know their special values', async () => {
    expect(await values(pg.nanToNum(f64([nan, inf, -inf, 1])))).toEqual([0, Number.MAX_VALUE, -Number.MAX_VALUE, 1]);
    expect(await values(pg.nanToNum(f32([inf]), { posInf: 9 }))).toEqual([9]);
    expect(await values(pg.heaviside(f64([-1, -0, 2, nan]), 0.5))).toEqual([0, 0.5, 1, nan]);
    expect(await values(pg.heaviside(pg.tensor([true, false]), pg.tensor([false, true])))).toEqual([1, 1]);
    expect(await values(pg.heaviside(pg.tensor([true, false]), false))).toEqual([1, 0]);
    const close = pg.isClose(f64([inf, inf, nan, 1, 1]), f64([inf, -inf, nan, 1 + 1e-6, 1.1]));
    expect(await values(close)).toEqual([1, 0, 0, 1, 0]);
    expect(await values(pg.isClose(f64([nan]), f64([nan]), { equalNaN: true }))).toEqual([1]);
  });

  it('fma meets numbers and other dtypes', async () => {
    expect(await values(pg.fma(2, 3, f64([4])))).toEqual([10]);
    expect(pg.fma(2, f64([3]), f32([4])).dtype).toBe('float64');
    expect(pg.fma(i32([2]), 3, 4).dtype).toBe('int32');
    expect(await values(pg.fma(i32([2]), 3, 4))).toEqual([10]);
    expect(() => pg.fma(pg.zeros([2]), pg.zeros([3]), 1)).toThrow(/\[fma\].*\[2\].*\[3\]/);
    expect(() => pg.fma(pg.zeros([2]), i32([1, 2]), 1)).toThrow(/\[fma\].*float32.*int32/);
    expect(() => pg.fma(pg.tensor([true]), pg.tensor([true]), pg.tensor([true]))).toThrow(/\[fma\].*bool/);
  });
});

describe('what audits of edges found', () => {
  it('isClose tells integers apart that float32 does not', async () => {
    const exactly = { rtol: 0, atol: 0 };
    expect(await values(pg.isClose(i32([16777217, 5]), i32([16777216, 5]), exactly))).toEqual([0, 1]);
    const [a, b] = [pg.tensor([2n ** 60n + 1n, -(2n ** 63n)]), pg.tensor([2n ** 60n, 2n ** 63n - 1n])];
    expect(await values(pg.isClose(a, b, exactly))).toEqual([0, 0]);
    expect(await values(pg.isClose(a, b, { rtol: 0, atol: 1 }))).toEqual([1, 0]);
    const bytes = { dtype: 'int8' } as const;
    expect(await values(pg.isClose(pg.tensor([-128], bytes), pg.tensor([127], bytes), { rtol: 0, atol: 254 }))).toEqual(
      [0],
    );
    expect(await values(pg.isClose(pg.tensor([-128], bytes), pg.tensor([127], bytes), { rtol: 0, atol: 255 }))).toEqual(
      [1],
    );
    const unsigned = { dtype: 'uint32' } as const;
    expect(await values(pg.isClose(pg.tensor([1], unsigned), pg.tensor([2], unsigned), exactly))).toEqual([0]);
    expect(await values(pg.isClose(pg.tensor([true, true]), pg.tensor([false, true]), exactly))).toEqual([0, 1]);
  });

  it('clip with a bound that is NaN is NaN', async () => {
    const nan = Number.NaN;
    expect(await values(pg.clip(f64([2, 5]), f64([nan, 0]), 1))).toEqual([nan, 1]);
    expect(await values(pg.clip(f64([2, 5]), 0, f64([nan, 1])))).toEqual([nan, 1]);
    expect(await values(pg.clip(f64([2, nan]), nan, null))).toEqual([nan, nan]);
    // A bound that is left out is none, as in the Array API.
    expect(await values(pg.clip(f64([-2, 5]), 0))).toEqual([0, 5]);
    expect(await values(f64([-2, 5]).clip(undefined, 3))).toEqual([-2, 3]);
    expect(await values(pg.clip(f64([nan, -3]), f64([0, 0]), f64([1, 1])))).toEqual([nan, 0]);
  });

  it.each([
    [2, -2],
    [2, 2.5],
    [2, Number.NaN],
  ])('affineGrid refuses the size %d x %d', (h, w) => {
    expect(() => pg.affineGrid(pg.ones([1, 2, 3]), [1, 1, h, w])).toThrow(/\[affineGrid\] bad size/);
  });

  it('lists that do not fit are refused', () => {
    expect(() => pg.linspace(0, 1, 1e10)).toThrow(/\[linspace\] too many elements/);
    expect(() => pg.pad(pg.ones([2]), 2 ** 31)).toThrow(/\[pad\] too many elements: shape \[4294967298\]/);
    const image = pg.ones([1, 1, 2, 2]);
    expect(() => pg.interpolate(image, { scaleFactor: 2 ** 31 })).toThrow(/\[interpolate\] too many elements/);
    expect(() => pg.tile(pg.ones([2]), [2 ** 30])).toThrow(/\[tile\] too many elements/);
    expect(() => pg.repeat(pg.ones([2]), [2 ** 31, 2])).toThrow(/\[repeat\] too many elements/);
    expect(() =>
      pg.tensordot(pg.ones([2, 2]), pg.ones([2, 2]), [
        [0, 0],
        [0, 1],
      ]),
    ).toThrow(/\[tensordot\] axis named twice: 0 in \[0, 0\]/);
    expect(() => pg.gelu(pg.ones([1]), { approximate: 'z' as never })).toThrow(/\[gelu\] unknown approximate: 'z'/);
    for (const offsets of [
      [1, 2],
      [0, 2, 1],
      [0, 4],
      [0, -1],
    ])
      expect(() => pg.embeddingBag([0, 1, 2], pg.ones([3, 2]), { offsets })).toThrow(/\[embeddingBag\] bad offset/);
    expect(pg.embeddingBag([0, 1, 2], pg.ones([3, 2]), { offsets: [0, 3] }).shape).toEqual([2, 2]);
  });

  it('where NaN wins there is no derivative, forward or backward', async () => {
    const [a, b] = [f64([nan, 1, 2, 3]), f64([1, nan, 1, 3])];
    for (const f of [pg.maximum, pg.minimum]) {
      const swap = f === pg.minimum;
      const [byA, byB] = pg.grads((x: Tensor, y: Tensor) => pg.sum(f(x, y)))(a, b) as [Tensor, Tensor];
      const wins = [nan, nan, swap ? 0 : 1, 0.5];
      expect(await values(byA)).toEqual(wins);
      expect(await values(byB)).toEqual([nan, nan, swap ? 1 : 0, 0.5]);
      expect(await values(pg.jvp((x: Tensor) => f(x, b), [a], [pg.onesLike(a)])[1]!)).toEqual(wins);
    }
    for (const x of [f64([nan]), f64([1, nan])])
      for (const f of [pg.max, pg.min])
        expect(await values(pg.jvp((t: Tensor) => f(t), [x], [pg.onesLike(x)])[1]!)).toEqual([nan]);
    const byExponent = pg.grad((y: Tensor) => pg.sum(pg.pow(f64([0, 0, 0]), y)))(f64([nan, 2, 0])) as Tensor;
    expect(await values(byExponent)).toEqual([nan, 0, 0]);
  });

  it('sinc and softplus with beta reach the largest numbers', async () => {
    const [far, most] = [f64([1e308, inf, 1e15 + 0.5]), Number.MAX_VALUE];
    expect(await values(pg.sinc(far))).toEqual([0, 0, 1 / (Math.PI * (1e15 + 0.5))]);
    expect(await values(derivative(pg.sinc, 1)(f64([1e20, 3, -inf])))).toEqual([1e-20, -1 / 3, 0]);
    const steep: Unary = (x) => pg.softplus(x, { beta: 50 });
    expect(await values(steep(f64([most, -most])))).toEqual([most, 0]);
    expect(await values(derivative(steep, 1)(f64([most, -most])))).toEqual([1, 0]);
    expect(await values(derivative(steep, 2)(f64([most, -most])))).toEqual([0, 0]);
  });
});

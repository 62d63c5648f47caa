/** Functions composed of others against those of Math, and their gradients at delicate points. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { f64, near, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

describe('composed functions against Math', () => {
  const xs = [-1e10, -50, -3, -1, -0.1, -1e-8, 0, 1e-8, 0.1, 1, 3, 50, 1e10];
  const close = async (t: Tensor, expected: readonly number[]): Promise<void> => {
    const actual = await values(t);
    expected.forEach((value, i) => {
      if (!Number.isFinite(value)) expect(actual[i]).toBe(value);
      else expect(Math.abs(actual[i]! - value)).toBeLessThanOrEqual(4e-15 * Math.max(Math.abs(value), 1e-300));
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

/** Activations far away and at 0: finite derivatives, limits, and those of the formula. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { derivative, f32, f64, near, type Unary, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

describe('activations far away', () => {
  const functions: Readonly<Record<string, Unary>> = {
    celu: (x) => pg.celu(x),
    elu: (x) => pg.elu(x),
    gelu: (x) => pg.gelu(x),
    'gelu tanh': (x) => pg.gelu(x, { approximate: 'tanh' }),
    glu: (x) => pg.glu(pg.concat([x, x])),
    hardSigmoid: pg.hardSigmoid,
    hardSwish: pg.hardSwish,
    logSigmoid: pg.logSigmoid,
    logSoftmax: (x) => pg.logSoftmax(x),
    mish: pg.mish,
    selu: pg.selu,
    sigmoid: pg.sigmoid,
    silu: pg.silu,
    softmax: (x) => pg.softmax(x),
    softmin: (x) => pg.softmin(x),
    softplus: (x) => pg.softplus(x),
    softsign: pg.softsign,
    tanh: pg.tanh,
    tanhShrink: pg.tanhShrink,
  };
  for (const [name, f] of Object.entries(functions)) {
    it(`${name} has three finite derivatives`, async () => {
      for (const order of [0, 1, 2, 3]) {
        const got = await values(derivative(f, order)(f32([-1e4, -100, -20, 0, 20, 100, 1e4])));
        expect(got.every(Number.isFinite), `order ${order}: ${got}`).toBe(true);
      }
    });
  }

  it('have the right limits', async () => {
    const x = f32([-1e4, 1e4]);
    expect(await values(pg.softplus(x))).toEqual([0, 1e4]);
    expect(await values(pg.logSigmoid(x))).toEqual([-1e4, -0]);
    expect((await values(pg.mish(x))).map((v) => v + 0)).toEqual([0, 1e4]);
    expect((await values(pg.gelu(x, { approximate: 'tanh' }))).map((v) => v + 0)).toEqual([0, 1e4]);
    expect(await values(pg.softplus(f32([-1e4, 1e4]), { beta: 0.5 }))).toEqual([0, 1e4]);
  });

  it('smooth ones have the derivatives of the formula at 0', async () => {
    // sigmoid and softplus: 1/2, 1/4, 0, -1/8 ...
    await near(derivative(pg.sigmoid, 1)(f64([0])), [0.25]);
    await near(derivative(pg.sigmoid, 3)(f64([0])), [-0.125]);
    await near(derivative((x) => pg.softplus(x), 1)(f64([0])), [0.5]);
    await near(derivative((x) => pg.softplus(x), 2)(f64([0])), [0.25]);
    await near(derivative((x) => pg.softplus(x), 4)(f64([0])), [-0.125]);
    await near(derivative(pg.logSigmoid, 2)(f64([0])), [-0.25]);
    await near(derivative(pg.silu, 2)(f64([0])), [0.5]);
  });
});

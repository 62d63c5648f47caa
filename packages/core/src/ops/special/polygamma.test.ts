/** polygamma of every order: accurate where the result is a number of the dtype, infinite above and 0 below, never NaN. */
import { beforeAll, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { polygammaValues } from '../fixtures/polygamma-values.ts';
import { polygammaPlan } from './special-form.ts';

beforeAll(() => pg.setEngine(createReferenceEngine()));

const { POSITIVE_INFINITY: inf, NaN: nan } = Number;
const formats = [
  { dtype: 'float32', digits: 24, least: 2 ** -126, largest: 2 ** 128 * (1 - 2 ** -24) },
  { dtype: 'float64', digits: 53, least: 2 ** -1022, largest: Number.MAX_VALUE },
] as const;

for (const { dtype, digits, least, largest } of formats) {
  it.each(polygammaValues)(`order %i in ${dtype}`, async (order, rows) => {
    const x = pg.tensor(
      rows.map(([at]) => at),
      { dtype },
    );
    const got = Array.from(await pg.polygamma(order, x).data(), Number);
    rows.forEach(([at, expected], i) => {
      const value = got[i]!;
      if (Math.abs(expected) > largest) expect(value, `at ${at}`).toBe(Math.sign(expected) * inf);
      else if (Math.abs(expected) < least) expect(Math.abs(value), `at ${at}`).toBeLessThanOrEqual(least);
      else {
        const size = at < 0 ? Math.max(1, Math.abs(expected)) : Math.abs(expected);
        const unit = 2 ** (Math.floor(Math.log2(size)) - digits + 1);
        expect(Math.abs(value - expected) / unit, `at ${at}: ${value} for ${expected}`).toBeLessThan(6 + 1.5 * order);
      }
    });
  });
}

it.each(formats)('never gives NaN between the poles in $dtype', async ({ dtype }) => {
  const points = [1e-45, 1e-20, 0.1, 0.5, 1, 3, 30, 300, 1e4, 1e20, 1e38, inf];
  const x = pg.tensor([...points, -0.1, -0.5, -1.25, -1.5, -33.75, -1000.5], { dtype });
  for (const order of [1, 2, 3, 23, 24, 99, 100, 999, 1000, 12345, 1e6, 1e7 + 1, 2 ** 40]) {
    const values = Array.from(await pg.polygamma(order, x).data(), Number);
    expect(values.some(Number.isNaN), `order ${order}: ${values}`).toBe(false);
  }
});

it('is infinite at the poles of odd orders, NaN at those of even ones', async () => {
  const x = pg.tensor([0, -1, -7], { dtype: 'float64' });
  expect([...(await pg.polygamma(1001, x).data())]).toEqual([inf, inf, inf]);
  expect([...(await pg.polygamma(1000, x).data())]).toEqual([-inf, nan, nan]);
});

it('takes fewer than thirty terms, however large the order is', () => {
  for (const accuracy of [2 ** -27, 2 ** -57])
    for (const order of [1, 2, 10, 100, 1e4, 1e8, 2 ** 52])
      expect(polygammaPlan(order, accuracy).shifts, `order ${order}`).toBeLessThan(30);
});

it('has slopes of the next order, whatever it is', async () => {
  const x = pg.tensor([1, 368, 5000], { dtype: 'float64' });
  const slope = pg.grad((t: pg.Tensor) => pg.sum(pg.polygamma(1000, t)))(x) as pg.Tensor;
  expect([...(await slope.data())]).toEqual([...(await pg.polygamma(1001, x).data())]);
});

/** Special functions: units in the last place against values of many digits, poles and infinities, derivatives of every order, errors. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { DType, Tensor } from '../../index.ts';
import { createReferenceEngine, evaluateSpecial, specialValues } from '@polygrad/testing';

await pg.setEngine(createReferenceEngine());

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const of = (dtype: DType, data: readonly number[]): Tensor => pg.tensor(data, { dtype });

async function values(t: Tensor): Promise<number[]> {
  return Array.from((await t.data()) as Float64Array, Number);
}

/** One unit in the last place at x, x a normal number. */
function unit(x: number, digits: number): number {
  return 2 ** (Math.floor(Math.log2(Math.abs(x))) - digits + 1);
}

describe('accuracy', () => {
  for (const row of specialValues) {
    for (const [dtype, digits] of [
      ['float32', 24],
      ['float64', 53],
    ] as const) {
      it(`${row.name} ${row.order} in ${dtype}`, async () => {
        const got = await values(
          evaluateSpecial(
            row,
            of(
              dtype,
              row.values.map(([x]) => x),
            ),
          ),
        );
        // A few units; polygamma takes powers and loses one per order. Below 0 the terms of the reflection count.
        const most = row.name === 'polygamma' ? 4 + 1.2 * row.order : 5;
        row.values.forEach(([x, expected], i) => {
          const small = digits === 24 ? 2 ** -126 : 2 ** -1022;
          const large = digits === 24 ? 2 ** 128 : inf;
          if (Math.abs(expected) > large) expect(Math.abs(got[i]!)).toBe(inf);
          else if (Math.abs(expected) > small) {
            const size = x < 0 ? Math.max(1, Math.abs(expected)) : expected;
            const error = Math.abs(got[i]! - expected) / unit(size, digits);
            expect(error, `at ${x}: ${got[i]} for ${expected}`).toBeLessThan(most);
          }
        });
      });
    }
  }
});

describe('special values', () => {
  for (const dtype of ['float32', 'float64'] as const) {
    it(`of the gamma family in ${dtype}`, async () => {
      const x = of(dtype, [0, -0, -1, -7, inf, -inf, nan]);
      expect(await values(pg.lgamma(x))).toEqual([inf, inf, inf, inf, inf, inf, nan]);
      expect(await values(pg.digamma(x))).toEqual([-inf, inf, nan, nan, inf, nan, nan]);
      expect(await values(pg.polygamma(1, x))).toEqual([inf, inf, inf, inf, 0, nan, nan]);
      expect(await values(pg.polygamma(2, x))).toEqual([-inf, inf, nan, nan, -0, nan, nan]);
      expect(await values(pg.lgamma(of(dtype, [1, 2])))).toEqual([0, 0]);
    });

    it(`of the error functions in ${dtype}`, async () => {
      expect(await values(pg.erfc(of(dtype, [inf, -inf, nan, 0, 30])))).toEqual([0, 2, nan, 1, 0]);
      expect(await values(pg.erfinv(of(dtype, [1, -1, 1.5, -2, nan, 0, -0, inf])))).toEqual([
        inf,
        -inf,
        nan,
        nan,
        nan,
        0,
        -0,
        nan,
      ]);
    });
  }

  it('far below zero every float32 is an integer, a pole', async () => {
    expect(await values(pg.lgamma(of('float32', [-1e10, -1e37, -3.4e38])))).toEqual([inf, inf, inf]);
    expect(await values(pg.lgamma(of('float64', [-1e300, -Number.MAX_VALUE])))).toEqual([inf, inf]);
  });

  it('erfc goes through the denormals to 0', async () => {
    const [a, b] = await values(pg.erfc(of('float64', [26.6, 27.3])));
    expect(a).toBeGreaterThan(0);
    expect(Math.abs(Math.log(a as number) - -711.4144)).toBeLessThan(0.001);
    expect(b).toBe(0);
  });
});

describe('derivatives', () => {
  it('of lgamma are digamma and polygamma, to the fourth order', async () => {
    const at = [0.7, 3.2, -1.3];
    let f: (x: Tensor) => Tensor = (x) => pg.sum(pg.lgamma(x));
    for (const order of [0, 1, 2, 3]) {
      const inner = f;
      f = (x) => pg.sum(pg.grad(inner)(x) as Tensor);
      const got = await values(pg.grad(inner)(of('float64', at)) as Tensor);
      expect(got).toEqual(await values(pg.polygamma(order, of('float64', at))));
    }
  });

  it('of erfinv undo those of erf', async () => {
    const y = of('float64', [-0.9, 0.2, 0.7]);
    const back = (t: Tensor): Tensor => pg.sum(pg.erf(pg.erfinv(t)));
    (await values(pg.grad(back)(y) as Tensor)).forEach((v) => {
      expect(v).toBeCloseTo(1, 12);
    });
    const bend = (t: Tensor): Tensor => pg.sum(pg.grad(back)(t) as Tensor);
    (await values(pg.grad(bend)(y) as Tensor)).forEach((v) => {
      expect(v).toBeCloseTo(0, 10);
    });
  });

  it('reach jvp, hessian and backward', async () => {
    const x = pg.tensor([1.5, 2.5], { dtype: 'float64', requiresGrad: true });
    x.lgamma().sum().backward();
    expect(await values(x.grad as Tensor)).toEqual(await values(pg.digamma(x.detach())));
    const h = pg.hessian((t: Tensor) => t.lgamma().sum())(x.detach()) as Tensor;
    const second = await values(pg.polygamma(1, x.detach()));
    expect(await values(h)).toEqual([second[0], 0, 0, second[1]]);
  });

  it('go forward and through vmap, and masks pass by them', async () => {
    const x = of('float64', [1.5, -0.3]);
    const [, change] = pg.jvp((t: Tensor) => pg.lgamma(t), [x], [of('float64', [2, 1])]) as [Tensor, Tensor];
    const slope = await values(pg.digamma(x));
    expect(await values(change)).toEqual([2 * slope[0]!, slope[1]]);
    const each = pg.vmap((t: Tensor) => pg.grad((s: Tensor) => pg.lgamma(s))(t) as Tensor);
    expect(await values(each(x) as Tensor)).toEqual(slope);
    const guarded = (t: Tensor): Tensor => pg.sum(pg.where(pg.greater(t, 0), pg.lgamma(t), 0));
    expect(await values(pg.grad(guarded)(of('float64', [0, -1, 2])) as Tensor)).toEqual([
      0,
      0,
      (await values(pg.digamma(of('float64', [2]))))[0],
    ]);
  });

  it('are 0 or infinite far away, not NaN', async () => {
    expect(await values(pg.grad((x: Tensor) => pg.sum(pg.erfc(x)))(of('float32', [20, -20, inf])) as Tensor)).toEqual([
      -0, -0, -0,
    ]);
    expect(await values(pg.grad((x: Tensor) => pg.sum(pg.erfinv(x)))(of('float32', [1, -1])) as Tensor)).toEqual([
      inf,
      inf,
    ]);
  });
});

describe('arguments', () => {
  it('integers become float32, numbers are taken, scalars and empty tensors too', async () => {
    expect(pg.lgamma(pg.tensor([5], { dtype: 'int32' })).dtype).toBe('float32');
    expect((await values(pg.lgamma(5)))[0]).toBeCloseTo(Math.log(24), 5);
    expect(pg.erfinv(pg.zeros([0, 3])).shape).toEqual([0, 3]);
    expect(pg.polygamma(0, pg.ones([2])).shape).toEqual([2]);
  });

  it('refuse bad orders', () => {
    expect(() => pg.polygamma(-1, pg.ones([1]))).toThrow(/\[polygamma\].*-1/);
    expect(() => pg.polygamma(0.5, pg.ones([1]))).toThrow(/\[polygamma\].*0\.5/);
    expect(() => pg.ones([1]).polygamma(nan)).toThrow(/\[polygamma\].*NaN/);
    expect(() => pg.polygamma(0, [] as never)).toThrow(/^\[polygamma\] not a tensor/);
  });
});

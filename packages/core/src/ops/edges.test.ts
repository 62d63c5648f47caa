/** Elementwise functions at their edges: zeros and their signs, infinities, ties, far arguments; values and derivatives. */
import { describe, expect, it } from 'vitest';
import * as pg from '../index.ts';
import type { Tensor } from '../index.ts';
import { createReferenceEngine } from '../testing/index.ts';

await pg.setEngine(createReferenceEngine());

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const f64 = (data: pg.NestedInput): Tensor => pg.tensor(data, { dtype: 'float64' });
const f32 = (data: pg.NestedInput): Tensor => pg.tensor(data);
const i32 = (data: pg.NestedInput): Tensor => pg.tensor(data, { dtype: 'int32' });

async function values(t: Tensor): Promise<number[]> {
  return Array.from((await t.data()) as Float64Array, Number);
}

type Unary = (x: Tensor) => Tensor;

/** The n-th derivative, element by element. */
function derivative(f: Unary, order: number): Unary {
  let g = f;
  for (let n = 0; n < order; n++) {
    const inner = g;
    g = (x) => pg.grad((t: Tensor) => pg.sum(inner(t)))(x) as Tensor;
  }
  return g;
}

async function near(t: Tensor, expected: readonly number[], tolerance = 1e-12): Promise<void> {
  const got = await values(t);
  expect(got.length).toBe(expected.length);
  got.forEach((value, i) => {
    const want = expected[i] as number;
    if (Number.isFinite(want)) expect(Math.abs(value - want), `${value} for ${want}`).toBeLessThan(tolerance);
    else expect(value).toBe(want);
  });
}

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
    expect(Math.abs((got[0] as number) / 5e30 - 1)).toBeLessThan(2e-7);
    expect(Math.abs((got[1] as number) / 5e-30 - 1)).toBeLessThan(2e-7);
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

  it('nanToNum, heaviside and isClose know their special values', async () => {
    expect(await values(pg.nanToNum(f64([nan, inf, -inf, 1])))).toEqual([0, Number.MAX_VALUE, -Number.MAX_VALUE, 1]);
    expect(await values(pg.nanToNum(f32([inf]), { posInf: 9 }))).toEqual([9]);
    expect(await values(pg.heaviside(f64([-1, -0, 2, nan]), 0.5))).toEqual([0, 0.5, 1, nan]);
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

describe('reductions at their edges', () => {
  it('prod has exact second derivatives with any number of zeros', async () => {
    const mixed = async (x: readonly number[]): Promise<number[]> => values(pg.hessian(pg.prod)(f64(x)) as Tensor);
    expect(await mixed([2, 0, 3])).toEqual([0, 3, 0, 3, 0, 2, 0, 2, 0]);
    expect(await mixed([0, 0, 3])).toEqual([0, 3, 0, 3, 0, 0, 0, 0, 0]);
    expect(await mixed([0, 0, 0])).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0]);
  });

  it('logSumExp of nothing but -infinity is -infinity, without slope', async () => {
    const rows = f64([
      [-inf, -inf],
      [0, -inf],
      [inf, 0],
    ]);
    expect(await values(pg.logSumExp(rows, 1))).toEqual([-inf, 0, inf]);
    const slope = pg.grad((x: Tensor) => pg.sum(pg.logSumExp(x, 1)))(f64([[-inf, -inf]])) as Tensor;
    expect(await values(slope)).toEqual([0, 0]);
  });

  it('argMax and argMin take several axes, negative ones, keep dimensions, and refuse nothing', async () => {
    const x = f64([
      [
        [1, 9],
        [3, 4],
      ],
      [
        [7, 0],
        [5, 8],
      ],
    ]);
    expect(await values(pg.argMax(x, [1, 2]))).toEqual([1, 3]);
    expect(await values(pg.argMin(x, { axis: [0, -1] }))).toEqual([3, 0]);
    expect(pg.argMax(x, { axis: -1, keepDims: true }).shape).toEqual([2, 2, 1]);
    expect(pg.argMax(x, { keepDims: true }).shape).toEqual([1, 1, 1]);
    expect(await values(pg.argMax(f64(5)))).toEqual([0]);
    expect(() => pg.argMax(pg.zeros([0, 2]), 0)).toThrow(/\[argMax\].*empty/);
    expect(() => pg.argMin(pg.zeros([2]), 1)).toThrow(/\[argMin\].*1/);
    expect(pg.argMax(pg.zeros([0, 2]), 1).shape).toEqual([0]);
  });

  it('of nothing give their identity, NaN or an error', async () => {
    const none = pg.zeros([0]);
    expect(await values(pg.sum(none))).toEqual([0]);
    expect(await values(pg.prod(none))).toEqual([1]);
    expect(await values(pg.mean(none))).toEqual([nan]);
    expect(await values(pg.variance(none))).toEqual([nan]);
    expect(await values(pg.norm(none))).toEqual([0]);
    expect(await values(pg.any(none))).toEqual([0]);
    expect(await values(pg.all(none))).toEqual([1]);
    expect(await values(pg.countNonZero(none))).toEqual([0]);
    expect(await values(pg.nanSum(none))).toEqual([0]);
    expect(await values(pg.nanMean(none))).toEqual([nan]);
    for (const f of [pg.max, pg.min, pg.logSumExp]) expect(() => f(none)).toThrow(/empty|nothing/);
  });

  it('skip NaN where they say so, in gradients too', async () => {
    const x = f64([1, nan, 3]);
    expect(await values(pg.nanSum(x))).toEqual([4]);
    expect(await values(pg.nanMean(x))).toEqual([2]);
    expect(await values(pg.countNonZero(f64([0, nan, 2])))).toEqual([2]);
    expect(await values(derivative((t) => pg.nanMean(t), 1)(x))).toEqual([0.5, 0, 0.5]);
    expect(await values(pg.nanMean(f64([nan])))).toEqual([nan]);
  });

  it('variance and std correct, and are flat where all are equal', async () => {
    const x = f64([1, 2, 4]);
    await near(pg.variance(x), [14 / 9]);
    await near(pg.variance(x, { correction: 1 }), [7 / 3]);
    await near(pg.std(x, { correction: 1.5 }), [Math.sqrt(14 / 3 / 1.5)]);
    expect(await values(pg.variance(f64([1]), { correction: 1 }))).toEqual([nan]);
    expect(await values(derivative((t) => pg.std(t), 1)(f64([3, 3])))).toEqual([0, 0]);
  });

  it('trace widens small integers, takes offsets and batches', async () => {
    expect(
      await values(
        pg.trace(
          i32([
            [1, 2],
            [3, 4],
          ]),
        ),
      ),
    ).toEqual([5]);
    expect(
      await values(
        pg.trace(
          f64([
            [
              [1, 2],
              [3, 4],
            ],
            [
              [5, 6],
              [7, 8],
            ],
          ]),
          { offset: 1 },
        ),
      ),
    ).toEqual([2, 6]);
    expect(() => pg.trace(pg.zeros([3]))).toThrow(/\[trace\].*\[3\]/);
  });
});

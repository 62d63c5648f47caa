/** Gradients where a function has a corner, a pole or nothing to differentiate, as docs/numerics.md says; and gradients of gradients there. */
import { beforeAll, describe, expect, it } from 'vitest';
import * as pg from '../index.ts';
import { grad, grads, mul, setEngine, sum, type Tensor, where } from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { vector } from './fixtures/vectors.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

const read = async (t: Tensor): Promise<number[]> =>
  Array.from((await t.data()) as Float64Array, (v) => (Object.is(v, -0) ? 0 : v));
const slope = async (f: (x: Tensor) => Tensor, ...at: number[]): Promise<number[]> =>
  read(grad((x: Tensor) => sum(f(x)))(vector(...at)));
const curve = async (f: (x: Tensor) => Tensor, ...at: number[]): Promise<number[]> =>
  read(grad((x: Tensor) => sum(grad((y: Tensor) => sum(f(y)))(x)))(vector(...at)));

describe('ties', () => {
  it('share the gradient in max, min, maximum and minimum', async () => {
    expect(await slope((x) => pg.max(x), 3, 1, 3, 3)).toEqual([1 / 3, 0, 1 / 3, 1 / 3]);
    expect(await slope((x) => pg.min(x), 1, 1, 3)).toEqual([0.5, 0.5, 0]);
    expect(await slope((x) => pg.maximum(x, vector(2, 2, 2)), 1, 2, 3)).toEqual([0, 0.5, 1]);
    expect(await slope((x) => pg.minimum(x, vector(2, 2, 2)), 1, 2, 3)).toEqual([1, 0.5, 0]);
    expect(await curve((x) => pg.max(x), 3, 3)).toEqual([0, 0]);
    const [a, b] = grads((p: Tensor, q: Tensor) => sum(pg.maximum(p, q)))(vector(0), vector(0));
    expect([...(await read(a)), ...(await read(b))]).toEqual([0.5, 0.5]);
  });

  it('are none where an element is NaN: then all of the gradient of max and min is', async () => {
    const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
    const rows = vector(1, nan, 3, inf, 1, inf).reshape([2, 3]);
    expect(await read(grad((x: Tensor) => sum(pg.max(x, 1)))(rows))).toEqual([nan, nan, nan, 0.5, 0, 0.5]);
    expect(await slope((x) => pg.min(x), nan, 1)).toEqual([nan, nan]);
    expect(await curve((x) => mul(pg.max(x), pg.max(x)), 1, nan)).toEqual([nan, nan]);
  });

  it('keep their order in sorts, and belong to the latest in running maxima', async () => {
    const weights = vector(1, 2, 3);
    expect(await slope((x) => mul(pg.sort(x), weights), 5, 5, 1)).toEqual([2, 3, 1]);
    expect(await slope((x) => mul(pg.sort(x, { descending: true }), weights), 5, 5, 1)).toEqual([1, 2, 3]);
    expect(await curve((x) => pg.sort(x), 5, 5, 1)).toEqual([0, 0, 0]);
    // Every element that equals the largest so far starts anew.
    expect(await slope((x) => pg.cumMax(x, 0), 5, 5, 1)).toEqual([1, 2, 0]);
  });

  it('go to the first in pooling', async () => {
    const pooled = (x: Tensor): Tensor => pg.maxPool1d(x.reshape([1, 1, 4]), 2);
    expect(await slope(pooled, 5, 5, 1, 1)).toEqual([1, 0, 1, 0]);
    expect(await curve(pooled, 5, 5, 1, 1)).toEqual([0, 0, 0, 0]);
  });
});

describe('zeros', () => {
  it('in products are exact: none, one and several', async () => {
    expect(await slope((x) => pg.prod(x), 2, 3, 4)).toEqual([12, 8, 6]);
    expect(await slope((x) => pg.prod(x), 2, 0, 4)).toEqual([0, 8, 0]);
    expect(await slope((x) => pg.prod(x), 0, 3, 0)).toEqual([0, 0, 0]);
    expect(await curve((x) => pg.prod(x), 0, 3, 0)).toEqual([3, 0, 3]);
  });

  it('in running products, too', async () => {
    const weights = vector(1, 10, 100, 1000);
    const weighted = (x: Tensor): Tensor => mul(pg.cumProd(x, 0), weights);
    // d/dx of x0 + 10 x0 x1 + 100 x0 x1 x2 + 1000 x0 x1 x2 x3.
    const exact = (x: readonly number[]): number[] => {
      const [a, b, c, d] = x as [number, number, number, number];
      return [
        1 + 10 * b + 100 * b * c + 1000 * b * c * d,
        10 * a + 100 * a * c + 1000 * a * c * d,
        100 * a * b + 1000 * a * b * d,
        1000 * a * b * c,
      ];
    };
    for (const at of [
      [2, 3, 4, 5],
      [2, 0, 4, 5],
      [0, 3, 0, 5],
      [0, 0, 0, 0],
    ])
      expect(await slope(weighted, ...at)).toEqual(exact(at));
    // Second derivatives summed by rows: of 1000 x0 x1 x2 x3 + ..., at two zeros.
    expect(await curve((x) => pg.cumProd(x, 0).select(0, 3), 2, 0, 3, 0)).toEqual([0, 6, 0, 6]);
  });

  it('in pow: the power rule where it holds, zero for exponent 0', async () => {
    for (const [exponent, expected] of [
      [0, 0],
      [1, 1],
      [2, 0],
      [3, 0],
      [0.5, Number.POSITIVE_INFINITY],
      [-1, Number.NEGATIVE_INFINITY],
    ] as const)
      expect(await slope((x) => pg.pow(x, vector(exponent)), 0), `0 to the ${exponent}`).toEqual([expected]);
    // With a number for exponent too.
    for (const [exponent, expected] of [
      [0, 0],
      [1, 1],
      [2, 0],
    ] as const)
      expect(await slope((x) => pg.pow(x, exponent), 0)).toEqual([expected]);
    expect(await curve((x) => pg.pow(x, vector(2)), 0)).toEqual([2]);
    expect(await curve((x) => pg.pow(x, vector(1)), 0)).toEqual([0]);
    // By the exponent: 0^y is flat for y >= 0, and negative bases have no slope.
    const byExponent = async (base: number, y: number): Promise<number> =>
      (await slope((e) => pg.pow(vector(base), e), y))[0] as number;
    expect([await byExponent(0, 0), await byExponent(0, 2)]).toEqual([0, 0]);
    expect(await byExponent(2, 3)).toBeCloseTo(8 * Math.log(2), 12);
    expect(await byExponent(-2, 2)).toBeNaN();
  });

  it('in pow by base and exponent: 1/x at exponent 0, where the slope by the base is 0', async () => {
    // d/dy (y x^(y-1)) = x^(y-1) (1 + y log x).
    const mixed = (base: number, y: number): Promise<readonly number[]> =>
      slope((e) => pg.grad((x: pg.Tensor) => pg.sum(pg.pow(x, e)))(vector(base)) as pg.Tensor, y);
    for (const [base, y] of [
      [2, 0],
      [0.25, 0],
      [2, 3],
      [0.5, -1.5],
    ] as const)
      expect((await mixed(base, y))[0]).toBeCloseTo(base ** (y - 1) * (1 + y * Math.log(base)), 12);
    expect(await mixed(0, 0)).toEqual([0]);
    expect(await slope((x) => pg.pow(x, vector(0)), Number.NaN)).toEqual([0]);
    expect(await curve((x) => pg.pow(x, vector(0)), 0)).toEqual([0]);
    expect(await curve((x) => pg.pow(x, vector(0)), 1e-310)).toEqual([0]);
  });

  it('under roots and norms', async () => {
    expect(await slope((x) => pg.sqrt(x), 0)).toEqual([Number.POSITIVE_INFINITY]);
    expect(await slope((x) => pg.norm(x), 0, 0)).toEqual([0, 0]);
    expect(await curve((x) => pg.norm(x), 0, 0)).toEqual([0, 0]);
    for (const p of [1, 2, 3, 0.5, Number.POSITIVE_INFINITY]) {
      expect(await slope((x) => pg.norm(x, { p }), 0, 0), `norm ${p}`).toEqual([0, 0]);
      expect(await slope((x) => pg.norm(x, { p }), 0, -3), `norm ${p}`).toEqual([0, expect.closeTo(-1, 12)]);
    }
    for (const p of [-1, -2, Number.NEGATIVE_INFINITY]) {
      expect(await slope((x) => pg.norm(x, { p }), 0, 0), `norm ${p}`).toEqual([0, 0]);
      expect(await slope((x) => pg.norm(x, { p }), 0, -3), `norm ${p}`).toEqual([0, 0]);
      expect(await curve((x) => pg.norm(x, { p }), 0, -3), `norm ${p}`).toEqual([0, 0]);
    }
    expect(await pg.norm(pg.tensor([0, Number.NaN]), { p: -1 }).item()).toBeNaN();
    expect(await slope((x) => pg.std(x), 2, 2)).toEqual([0, 0]);
    expect(await slope((x) => pg.cbrt(x), 0, 8)).toEqual([Number.POSITIVE_INFINITY, expect.closeTo(1 / 12, 14)]);
    expect(await slope((x) => pg.abs(x), -1, 0, 1)).toEqual([-1, 0, 1]);
    expect(await slope((x) => pg.hypot(x, vector(0)), 0)).toEqual([0]);
    expect(await curve((x) => pg.hypot(x, vector(4)), 0, 3)).toEqual([0.25, expect.closeTo(16 / 125, 14)]);
    expect(await slope((x) => pg.square(x).sqrt(), 2)).toEqual([1]);
  });

  it('in xlogy and atan2', async () => {
    expect(await slope((x) => pg.xlogy(x, vector(0.5)), 0)).toEqual([Math.log(0.5)]);
    const [x, y] = grads((a: Tensor, b: Tensor) => sum(pg.xlogy(a, b)))(vector(0, 2), vector(0, 4));
    expect((await read(y))[0]).toBe(0);
    expect(await read(x.slice([{ start: 1 }]))).toEqual([Math.log(4)]);
    const [a, b] = grads((p: Tensor, q: Tensor) => sum(pg.atan2(p, q)))(vector(0, 1), vector(0, 0));
    expect((await read(a)).slice(1)).toEqual([0]);
    expect((await read(b)).slice(1)).toEqual([-1]);
    // The angle of the origin has no slope at all.
    expect([(await read(a))[0], (await read(b))[0]]).toEqual([Number.NaN, Number.NaN]);
    expect(await slope((x) => pg.xlogy(x, vector(0)), 0)).toEqual([0]);
  });
});

describe('branches not taken', () => {
  it('let none through where the branch uses a value several times, moves it, or sums it', async () => {
    const safe = (x: Tensor, branch: Tensor): Tensor => where(pg.greater(x, 0), branch, 0);
    /** With the first two derivatives at 2. */
    const cases: Readonly<Record<string, [f: (x: Tensor) => Tensor, first: number, second: number]>> = {
      'a square': [(x) => safe(x, pg.square(pg.log(x))), Math.log(2), (1 - Math.log(2)) / 2],
      'a potential': [
        (x) => {
          const [square, cube] = [pg.square(pg.reciprocal(x)), (t: Tensor) => mul(mul(t, t), t)];
          return safe(x, pg.sub(pg.square(cube(square)), cube(square)));
        },
        -12 / 2 ** 13 + 6 / 2 ** 7,
        156 / 2 ** 14 - 42 / 2 ** 8,
      ],
      'two terms': [(x) => safe(x, pg.add(mul(x, pg.log(x)), pg.log(x))), Math.log(2) + 1.5, 0.25],
      'a column': [(x) => safe(pg.unsqueeze(x, 1), pg.unsqueeze(pg.log(x), 1)), 0.5, -0.25],
      'a sum': [(x) => safe(x, pg.sum(pg.log(pg.mul(pg.unsqueeze(x, 1), vector(1, 2, 3))), 1)), 1.5, -0.75],
      'another dtype': [
        (x) => safe(x, pg.square(pg.log(x).cast('float32')).cast('float64')),
        Math.log(2),
        (1 - Math.log(2)) / 2,
      ],
    };
    for (const [name, [f, first, second]] of Object.entries(cases)) {
      for (const [found, expected] of [
        [await slope(f, 0, -1, 2), first],
        [await curve(f, 0, -1, 2), second],
      ] as const) {
        expect(found.slice(0, 2), name).toEqual([0, 0]);
        expect(found[2], name).toBeCloseTo(expected, name === 'another dtype' ? 6 : 12);
      }
    }
  });

  it('let none through where both branches depend on x, at any order', async () => {
    // sin(x) / x as near 0, and two functions of it: their curvatures at 0 are those of x² and of exp at 1 times -1/3.
    const sinc = (x: Tensor): Tensor => where(pg.equal(x, 0), pg.sub(1, pg.div(pg.square(x), 6)), pg.div(pg.sin(x), x));
    for (const [f, expected] of [
      [(x: Tensor) => pg.square(sinc(x)), -2 / 3],
      [(x: Tensor) => mul(sinc(x), sinc(x)), -2 / 3],
      [(x: Tensor) => pg.exp(sinc(x)), -Math.E / 3],
    ] as const) {
      const back = grad((x: Tensor) => pg.sum(grad((y: Tensor) => pg.sum(f(y)))(x)));
      expect((await read(back(vector(0))))[0]).toBeCloseTo(expected, 12);
      expect((await read(grad((x: Tensor) => pg.sum(back(x)))(vector(0))))[0]).toBeCloseTo(0, 12);
    }
  });

  it('let none through where rows are divided by lengths of 0', async () => {
    const rows = pg.tensor(
      [
        [0, 0],
        [3, 4],
      ],
      { dtype: 'float64' },
    );
    const unit = (x: Tensor): Tensor => {
      const size = pg.sqrt(pg.sum(pg.square(x), { axis: 1, keepDims: true }));
      return pg.sum(mul(where(pg.greater(size, 0), pg.div(x, size), 0), vector(1, 2)));
    };
    // (w - (w u) u) / |x|, with w = [1, 2] and u = [0.6, 0.8].
    const found = await read(grad(unit)(rows));
    expect(found.slice(0, 2)).toEqual([0, 0]);
    expect(found[2]).toBeCloseTo(-0.064, 12);
    expect(found[3]).toBeCloseTo(0.048, 12);
  });

  it('let no NaN and no infinity through where', async () => {
    const zero = vector(0);
    const safe = (g: (x: Tensor) => Tensor) => (x: Tensor) => where(pg.greater(x, 0), g(x), zero);
    expect(
      await slope(
        safe((x) => pg.log(x)),
        0,
        -1,
        2,
      ),
    ).toEqual([0, 0, 0.5]);
    expect(
      await slope(
        safe((x) => pg.sqrt(x)),
        0,
        -1,
        4,
      ),
    ).toEqual([0, 0, 0.25]);
    expect(
      await slope(
        safe((x) => pg.reciprocal(x)),
        0,
        -1,
        2,
      ),
    ).toEqual([0, -0 + 0, -0.25]);
    expect(
      await curve(
        safe((x) => pg.log(x)),
        0,
        -1,
        2,
      ),
    ).toEqual([0, 0, -0.25]);
    expect(
      await slope(
        safe((x) => pg.sqrt(pg.log(mul(x, x)))),
        0,
        -1,
        Math.E,
      ),
    ).toEqual([0, 0, expect.closeTo(1 / (Math.E * Math.SQRT2), 12)]);
    // The same forward.
    const change = pg.jvp(
      safe((x) => pg.log(x)),
      [vector(0, -1, 2)],
      [vector(1, 1, 1)],
    )[1];
    expect(await read(change)).toEqual([0, 0, 0.5]);
  });

  it('softmax with entries of -infinity, logSumExp of nothing else', async () => {
    const low = Number.NEGATIVE_INFINITY;
    const weights = vector(1, 2, 3);
    const soft = async (...at: number[]): Promise<number[]> => slope((x) => mul(pg.softmax(x), weights), ...at);
    expect((await soft(0, low, 0)).map((v) => Math.round(v * 1e12) / 1e12)).toEqual([-0.5, 0, 0.5]);
    expect(await slope((x) => pg.logSumExp(x), 0, low, 0)).toEqual([0.5, 0, 0.5]);
    expect(await slope((x) => pg.logSumExp(x), low, low)).toEqual([0, 0]);
    expect(await curve((x) => pg.logSumExp(x), low, low)).toEqual([0, 0]);
    expect(await read(pg.logSumExp(vector(low, low)))).toEqual([low]);
  });
});

describe('removable corners', () => {
  const near = async (actual: Promise<number[]>, expected: readonly number[]): Promise<void> =>
    (await actual).forEach((value, i) => {
      expect(value).toBeCloseTo(expected[i] as number, 12);
    });

  it('softplus and logAddExp at equal arguments', async () => {
    await near(slope(pg.softplus, 0, 800, -800), [0.5, 1, 0]);
    await near(curve(pg.softplus, 0, 800, -800), [0.25, 0, 0]);
    await near(
      slope((x) => pg.logAddExp(x, vector(3)), 3),
      [0.5],
    );
    await near(
      slope((y) => pg.logAddExp(vector(3), y), 3),
      [0.5],
    );
    await near(
      curve((x) => pg.logAddExp(x, vector(3)), 3, 4),
      [0.25, Math.E / (1 + Math.E) ** 2],
    );
    const low = Number.NEGATIVE_INFINITY;
    expect(await slope((x) => pg.logAddExp(x, vector(0)), low)).toEqual([0]);
    expect(await slope((x) => pg.logAddExp(x, vector(low)), low, 0)).toEqual([0.5, 1]);
  });

  it('sinc at and near 0', async () => {
    const second = (x: number): number => {
      const a = Math.PI * x;
      return Math.PI ** 2 * (-Math.sin(a) / a - (2 * Math.cos(a)) / a ** 2 + (2 * Math.sin(a)) / a ** 3);
    };
    await near(slope(pg.sinc, 0), [0]);
    await near(curve(pg.sinc, 0, 1e-9), [-(Math.PI ** 2) / 3, -(Math.PI ** 2) / 3]);
    const at = [0.159, 0.161, 0.7];
    (await curve(pg.sinc, ...at)).forEach((value, i) => {
      expect(value).toBeCloseTo(second(at[i] as number), 10);
    });
  });
});

describe('operations without a slope', () => {
  const steps: Readonly<Record<string, (x: Tensor) => Tensor>> = {
    floor: pg.floor,
    ceil: pg.ceil,
    round: pg.round,
    trunc: pg.trunc,
    sign: pg.sign,
    heaviside: (x) => pg.heaviside(x, 0.5),
    greater: (x) => pg.greater(x, 0).cast('float64'),
    equal: (x) => pg.equal(x, 0).cast('float64'),
    isNaN: (x) => pg.isNaN(x).cast('float64'),
    argMax: (x) => pg.argMax(x).cast('float64'),
    logicalNot: (x) => pg.logicalNot(x).cast('float64'),
    countNonZero: (x) => pg.countNonZero(x).cast('float64'),
    cast: (x) => x.cast('int32').cast('float64'),
    floorDivide: (x) => pg.floorDivide(x, 2),
    detach: pg.detach,
  };
  for (const [name, f] of Object.entries(steps)) {
    it(`${name}: zeros at every order, beside what has one`, async () => {
      const at = [-1.5, 0, 1, 2.5];
      const zeros = at.map(() => 0);
      expect(await slope(f, ...at)).toEqual(zeros);
      expect(await curve(f, ...at)).toEqual(zeros);
      const third = grad((z: Tensor) => sum(grad((y: Tensor) => sum(grad((x: Tensor) => sum(f(x)))(y)))(z)));
      expect(await read(third(vector(...at)))).toEqual(zeros);
      expect(await curve((x) => pg.add(f(x), mul(x, x)), ...at)).toEqual(at.map(() => 2));
    });
  }

  it('relu and its like have no curvature, and the slope said at the corner', async () => {
    expect(await slope(pg.relu, -1, 0, 1)).toEqual([0, 0, 1]);
    expect(await curve(pg.relu, -1, 0, 1)).toEqual([0, 0, 0]);
    expect(await curve(pg.abs, -1, 0, 1)).toEqual([0, 0, 0]);
    expect(await curve((x) => pg.leakyRelu(x), -1, 0, 1)).toEqual([0, 0, 0]);
    expect(await curve((x) => pg.clip(x, -1, 1), -2, 0, 2)).toEqual([0, 0, 0]);
  });
});

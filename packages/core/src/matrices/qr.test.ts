/**
 * Householder's factors and least squares: values beside NumPy's, residuals, derivatives beside PyTorch's and finite differences, and
 * what is refused.
 */
import '@polygrad/backend-cpu';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  autocast,
  eye,
  grad,
  gradCheck,
  hvp,
  jvp,
  ones,
  setEngine,
  stack,
  tensor,
  type Tensor,
  zeros,
} from '../index.ts';
import { expectEach, expectInside, largest } from './fixtures/checks.ts';
import { diagonals, drawn, gradients, ofNumPy } from './fixtures/qr-values.ts';
import { lstsq, qr } from './qr.ts';

const dtype = 'float64';

beforeAll(async () => {
  await setEngine('cpu');
});

const finite = async (x: Tensor) => Number(await x.isFinite().sum().item());

/** The largest errors of factors: of their product, and of the columns' products. */
async function errorsOf(x: Tensor, { q, r }: { readonly q: Tensor; readonly r: Tensor }): Promise<number> {
  const one = eye(q.shape.at(-1)!, { dtype: q.dtype });
  expect(await largest(r.tril({ diagonal: -1 }))).toBe(0);
  return Math.max(await largest(q.matmul(r).sub(x)), await largest(q.transpose().matmul(q).sub(one)));
}

describe('values', () => {
  for (const [size, [q, r]] of Object.entries(ofNumPy))
    it(`of ${size} are NumPy's`, async () => {
      const [m, n] = size.split(' x ').map(Number) as [number, number];
      const found = qr(drawn([m, n], m + n));
      expect(await largest(found.q.sub(tensor(q, { dtype })))).toBeLessThan(1e-13);
      expect(await largest(found.r.sub(tensor(r, { dtype })))).toBeLessThan(1e-13);
    });

  for (const [signs, m, n, sum] of diagonals)
    it(`of ${m} rows and ${n} columns have NumPy's diagonal`, async () => {
      const diagonal = qr(drawn([m, n], m + n)).r.diagonal();
      const found = (await diagonal.array()) as number[];
      expect(found.map((x) => (x > 0 ? '+' : '-')).join('')).toBe(signs);
      expect(Math.abs(Number(await diagonal.sum().item()) - sum)).toBeLessThan(1e-9);
    });

  for (const [m, n] of [
    [1, 1],
    [1, 5],
    [5, 1],
    [16, 16],
    [17, 17],
    [32, 32],
    [33, 64],
    [65, 31],
    [96, 16],
    [97, 16],
    [200, 40],
    [130, 130],
    [700, 5],
  ] as const)
    it(`of ${m} rows and ${n} columns make the matrix, in every mode`, async () => {
      const [x, k] = [drawn([m, n], n), Math.min(m, n)];
      const reduced = qr(x);
      expect([reduced.q.shape, reduced.r.shape]).toEqual([
        [m, k],
        [k, n],
      ]);
      expect(await errorsOf(x, reduced)).toBeLessThan(1e-14 * (4 + Math.sqrt(m)));
      expect(await largest(qr(x, { mode: 'r' }).r.sub(reduced.r))).toBeLessThan(1e-13);
      const complete = qr(x, { mode: 'complete' });
      expect([complete.q.shape, complete.r.shape]).toEqual([
        [m, m],
        [m, n],
      ]);
      expect(await errorsOf(x, complete)).toBeLessThan(1e-14 * (4 + Math.sqrt(m)));
      expect(await largest(complete.r.narrow(0, 0, k).sub(reduced.r))).toBeLessThan(1e-13);
    });

  it('in float32', async () => {
    for (const [m, n] of [
      [40, 40],
      [200, 30],
      [300, 4],
    ] as const) {
      const x = drawn([m, n]).cast('float32');
      const { q, r } = qr(x);
      expect([q.dtype, r.dtype]).toEqual(['float32', 'float32']);
      expect(await errorsOf(x, { q, r })).toBeLessThan(1e-5);
    }
  });

  it('take batches, none too', async () => {
    const x = drawn([2, 3, 20, 18]);
    const { q, r } = qr(x);
    expect([q.shape, r.shape]).toEqual([
      [2, 3, 20, 18],
      [2, 3, 18, 18],
    ]);
    expect(await errorsOf(x, { q, r })).toBeLessThan(1e-14 * 5);
    expect(
      await largest(
        r
          .select(0, 1)
          .select(0, 2)
          .sub(qr(x.select(0, 1).select(0, 2)).r),
      ),
    ).toBeLessThan(1e-14);
    for (const [shape, mode, columns, lines] of [
      [[3, 0], 'reduced', 0, 0],
      [[0, 3], 'reduced', 0, 0],
      [[0, 3], 'complete', 0, 0],
      [[3, 0], 'complete', 3, 3],
      [[2, 0, 0], 'reduced', 0, 0],
      [[0, 4, 2], 'reduced', 2, 2],
      [[0, 4, 2], 'complete', 4, 4],
    ] as const) {
      const none = qr(zeros(shape), { mode });
      const [front, [m, n]] = [shape.slice(0, -2), shape.slice(-2) as readonly number[] as [number, number]];
      expect([none.q.shape, none.r.shape]).toEqual([
        [...front, m, columns],
        [...front, lines, n],
      ]);
    }
    expect(await qr(zeros([3, 0]), { mode: 'complete' }).q.array()).toEqual(await eye(3).array());
    expect(qr(zeros([3, 0]), { mode: 'r' }).r.shape).toEqual([0, 0]);
  });

  it('of what has nothing below are the matrix itself, as LAPACK leaves it', async () => {
    for (const n of [3, 16, 40]) {
      for (const x of [eye(n, { dtype }), drawn([n, n]).triu(), drawn([150, n]).triu(), zeros([150, n], { dtype })]) {
        const { q, r } = qr(x);
        expect(await largest(r.sub(x.narrow(0, 0, n)))).toBe(0);
        expect(await largest(q.sub(eye(x.shape[0]!, { dtype }).narrow(1, 0, n)))).toBe(0);
      }
    }
    // np.linalg.qr of a zero that has something below
    const { q, r } = qr(
      tensor(
        [
          [0, 2],
          [1, 1],
        ],
        { dtype },
      ),
    ); // prettier-ignore
    expect(
      await largest(
        q.sub(
          tensor(
            [
              [0, -1],
              [-1, 0],
            ],
            { dtype },
          ),
        ),
      ),
    ).toBe(0); // prettier-ignore
    expect(
      await largest(
        r.sub(
          tensor(
            [
              [-1, -1],
              [0, -2],
            ],
            { dtype },
          ),
        ),
      ),
    ).toBe(0); // prettier-ignore
  });

  it('of permutations, with zeros on the way', async () => {
    const n = 70;
    const order = Array.from({ length: n }, (_, i) => (i * 37 + 11) % n);
    const x = stack(
      order.map((i) => eye(n, { dtype }).select(0, i)),
      0,
    );
    const { q, r } = qr(x);
    expect(await errorsOf(x, { q, r })).toBe(0);
    expect(await largest(r.diagonal().abs().sub(1))).toBe(0);
  });

  it('stay orthonormal where columns depend on each other, nearly or wholly', async () => {
    const n = 40;
    const lines = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => 1 / (i + j + 1)));
    const hilbert = tensor(lines, { dtype });
    const rank = drawn([120, 3]).matmul(drawn([3, n], 2));
    const twice = drawn([120, 1]).expand([120, n]);
    const holes = drawn([120, n]).mul(
      tensor(
        Array.from({ length: n }, (_, i) => i % 3),
        { dtype },
      ),
    ); // prettier-ignore
    for (const x of [hilbert, rank, twice, holes, rank.mul(1e-9).add(ones([120, n], { dtype }))])
      expect(await errorsOf(x, qr(x))).toBeLessThan(2e-14);
  });

  it('of numbers whose squares are too large, or vanish', async () => {
    for (const [kind, scales, bound] of [
      ['float64', [1e300, 1e-300], 1e-14],
      ['float32', [1e37, 1e-37], 1e-5],
    ] as const)
      for (const scale of scales)
        for (const [m, n] of [
          [6, 4],
          [40, 40],
          [150, 8],
        ] as const) {
          const x = drawn([m, n]).cast(kind);
          const [plain, scaled] = [qr(x), qr(x.mul(scale))];
          expect(await largest(scaled.q.sub(plain.q))).toBeLessThan(bound * 10);
          expect(await largest(scaled.r.div(scale).sub(plain.r))).toBeLessThan(bound * 10);
        }
    // Columns of very different sizes keep their own digits.
    const { r } = qr(
      tensor(
        [
          [1, 1],
          [0, 1e-200],
        ],
        { dtype },
      ),
    ); // prettier-ignore
    expect(await r.array()).toEqual([
      [1, 1],
      [0, 1e-200],
    ]); // prettier-ignore
    const far = qr(
      tensor(
        [
          [1, 1],
          [1e-200, 3e-200],
        ],
        { dtype },
      ),
    ); // prettier-ignore
    expect(Number(await far.r.select(0, 1).select(0, 1).item()) / 2e-200).toBeCloseTo(1, 10);
  });

  it('of NaN and infinities are NaN, in their own matrix alone', async () => {
    for (const [m, n] of [
      [3, 3],
      [40, 40],
      [150, 5],
    ] as const) {
      const bad = Array.from({ length: m * n }, (_, i) => (i === n ? 1 : 0));
      const [good, mask] = [drawn([m, n]), tensor(bad, { dtype, shape: [m, n] }).greater(0)];
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
        const { q, r } = qr(stack([good, good.maskedFill(mask, value)], 0));
        expect(await finite(q.select(0, 0))).toBe(good.size);
        expect(await largest(r.select(0, 0).sub(qr(good).r))).toBeLessThan(1e-14);
        expect(await q.select(0, 1).isNaN().sum().item()).toBe(good.size);
        expect(await finite(r.select(0, 1).select(0, 0))).toBe(0);
      }
    }
  });
});

it('refuses operands that do not fit', () => {
  expect(() => qr(ones([3]))).toThrow('[qr] x has shape [3]: its last two axes must be those of matrices');
  expect(() => qr(ones([2, 2], { dtype: 'int32' }))).toThrow('[qr] x is int32: needs float32 or float64');
  expect(() => qr(ones([2, 2], { dtype: 'float16' }))).toThrow('x is float16');
  expect(() => qr(ones([2, 2]), { mode: 'full' as 'r' })).toThrow("bad mode: 'full'");
  expect(() => qr(ones([2, 2]), { full: true } as object)).toThrow("no option 'full'");
  expect(() => lstsq(ones([3]), ones([3]))).toThrow('[lstsq] a has shape [3]');
  expect(() => lstsq(ones([3, 2]), ones([2, 1]))).toThrow(
    'a has shape [3, 2] and b [2, 1]: b must be [..., 3, k], or [3]',
  );
  expect(() => lstsq(ones([3, 2]), ones([3], { dtype }))).toThrow('a is float32 and b float64: needs one dtype');
  expect(() => lstsq(ones([2, 3, 2]), ones([4, 3, 1]))).toThrow('do not broadcast');
});

describe('lstsq', () => {
  it("is NumPy's, with more equations and with fewer", async () => {
    const tall = tensor(
      [
        [-0.661838923516068, -0.110318880868705],
        [1.17828855411837, -0.817824465940465],
        [-0.0633948719264946, -0.480417850239726],
      ],
      { dtype },
    ); // prettier-ignore
    expect(await largest(lstsq(drawn([5, 3], 8), drawn([5, 2], 3)).sub(tall))).toBeLessThan(1e-13);
    const wide = tensor(
      [
        [1.36019662119957, -0.442831039733611],
        [-1.53901585616439, 0.3599765721658],
        [2.62310623183934, -1.26224393366615],
        [0.836337764206487, -1.23839458175882],
        [0.83891828430154, -0.157801449062615],
      ],
      { dtype },
    ); // prettier-ignore
    expect(await largest(lstsq(drawn([3, 5], 8), drawn([3, 2], 3)).sub(wide))).toBeLessThan(1e-13);
  });

  it('leaves nothing that columns could take, and loses no digits to a square', async () => {
    // A polynomial of degree 9 at 40 points: the square of this matrix has no digits left.
    const points = Array.from({ length: 40 }, (_, i) => i / 39);
    const a = tensor(
      points.map((t) => Array.from({ length: 10 }, (_, k) => t ** k)),
      { dtype },
    ); // prettier-ignore
    const x = drawn([10], 3);
    expect(await largest(lstsq(a, a.matmul(x)).sub(x))).toBeLessThan(1e-8);
    const tall = drawn([90, 37]);
    const rest = tall.matmul(lstsq(tall, drawn([90, 2], 2))).sub(drawn([90, 2], 2));
    expect(await largest(tall.transpose().matmul(rest))).toBeLessThan(1e-12);
  });

  it('takes vectors, and axes in front that stretch', async () => {
    const [a, b] = [drawn([2, 1, 5, 3]), drawn([4, 5, 2], 3)];
    const x = lstsq(a, b);
    expect(x.shape).toEqual([2, 4, 3, 2]);
    expect(
      await largest(
        x
          .select(0, 1)
          .select(0, 2)
          .sub(lstsq(a.select(0, 1).select(0, 0), b.select(0, 2))),
      ),
    ).toBeLessThan(1e-13);
    expect(lstsq(a, drawn([5], 4)).shape).toEqual([2, 1, 3]);
    expect(lstsq(a.transpose(), drawn([3], 4)).shape).toEqual([2, 1, 5]);
    expect(lstsq(zeros([3, 2]), zeros([3, 0])).shape).toEqual([2, 0]);
    expect(await lstsq(zeros([0, 2]), zeros([0])).array()).toEqual([0, 0]);
    expect(lstsq(zeros([3, 0]), zeros([3, 2])).shape).toEqual([0, 2]);
  });
});

/** A function of both factors. */
function mixed(x: Tensor): Tensor {
  const { q, r } = qr(x);
  return q
    .mul(drawn(q.shape, 2))
    .sum()
    .add(r.mul(drawn(r.shape, 3)).sum());
}

describe('derivatives', () => {
  it.each(gradients)("of %s rows and %s columns are PyTorch's", async (m, n, expected) => {
    expect(await largest(grad(mixed)(drawn([m, n], m + n)).sub(tensor(expected, { dtype })))).toBeLessThan(1e-9);
  });

  for (const [m, n] of [
    [3, 3],
    [5, 2],
    [2, 4],
    [40, 18],
  ] as const)
    it(`of every order, ${m} rows and ${n} columns`, async () => {
      const [x, v, b] = [drawn([m, n], 5), drawn([m, n], 6), drawn([m, 2], 7)];
      for (const f of [
        mixed,
        (a: Tensor) => qr(a, { mode: 'r' }).r.pow(3).sum(),
        ...(m > n ? [] : [(a: Tensor) => qr(a, { mode: 'complete' }).r.pow(3).sum()]),
        (a: Tensor) => lstsq(a, b).square().sum(),
      ]) {
        const slope = (a: Tensor) => grad(f)(a).mul(v).sum();
        if (m < 10) {
          expect(await gradCheck(f, [x])).toBe(true);
          expect(await gradCheck(slope, [x])).toBe(true);
        }
        const [, forward] = jvp(f, [x], [v]);
        const scale = 1 + Math.abs(Number(await forward.item()));
        expect(await largest(forward.sub(slope(x)))).toBeLessThan(1e-10 * scale);
        const step = 1e-6;
        const ahead = Number(await f(x.add(v.mul(step))).item());
        const back = Number(await f(x.sub(v.mul(step))).item());
        expect(Math.abs((ahead - back) / (2 * step) - Number(await forward.item()))).toBeLessThan(1e-5 * scale);
        const [second] = hvp(f, [x], [v]);
        const reference = grad(slope)(x);
        expect(await largest(second.sub(reference))).toBeLessThan(1e-9 * (1 + (await largest(reference))));
      }
      if (m < 10) {
        expect(await gradCheck((a, c) => lstsq(a, c).pow(3).sum(), [x, b])).toBe(true);
        const third = (a: Tensor) => grad((c: Tensor) => grad(mixed)(c).square().sum())(a); // prettier-ignore
        if (m === 3) expect(await gradCheck((a: Tensor) => third(a).mul(v).sum(), [x])).toBe(true);
      }
    });

  it('of further columns are refused, of r beside them are not', async () => {
    const f = (x: Tensor) => qr(x, { mode: 'complete' }).q.sum();
    const ofR = (x: Tensor) => qr(x, { mode: 'complete' }).r.pow(3).sum();
    expect(await gradCheck(ofR, [drawn([4, 2])])).toBe(true);
    expect(await gradCheck((x: Tensor) => grad(ofR)(x).square().sum(), [drawn([4, 2])])).toBe(true);
    expect(() => grad(f)(drawn([3, 2]))).toThrow("q of mode 'complete' has no derivative for 3 rows and 2 columns");
    expect(() => grad(f)(drawn([3, 3]))).not.toThrow();
  });

  it('with vmap inside and outside, and compiled', async () => {
    const xs = stack([drawn([5, 3]), drawn([5, 3], 9)], 0);
    await expectEach(mixed, xs, 1e-11);
    await expectInside(mixed, xs, 1e-11, 1e-9);
  });
});

it('keeps its precision under autocast', async () => {
  const x = drawn([40, 20]).cast('float32');
  const plain = qr(x).r;
  expect(await largest(autocast('bfloat16', () => qr(x).r).sub(plain))).toBe(0);
});

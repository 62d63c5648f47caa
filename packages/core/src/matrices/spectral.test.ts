/** Eigenvalues and singular values: beside LAPACK's and formulas, residuals and orthogonality, derivatives beside finite differences, hard matrices, what is refused. */
import '@polygrad/backend-cpu';
import { beforeAll, describe, expect, it } from 'vitest';
import { eye, grad, gradCheck, hvp, jvp, ones, setEngine, stack, tensor, type Tensor, zeros } from '../index.ts';
import { expectEach, expectNoNewPlan, expectOrdered, largest } from './fixtures/checks.ts';
import { eigh, matrixRank, pinv, svd } from './linear-algebra.ts';
import { bidiagonal, tridiagonal } from './rotations.ts';

const dtype = 'float64';
type Floating = 'float32' | 'float64';

beforeAll(async () => {
  await setEngine('cpu');
});

function wave(shape: readonly number[], seed = 0): Tensor {
  const size = shape.reduce((a, b) => a * b, 1);
  return tensor(
    Array.from({ length: size }, (_, i) => Math.sin(i * i * 0.7 + seed)),
    { dtype, shape: [...shape] },
  );
}

const symmetric = (x: Tensor): Tensor => x.add(x.transpose()).div(2);
const matrix = (n: number, element: (i: number, j: number) => number): Tensor =>
  tensor(
    Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => element(i, j))),
    { dtype },
  );

/** What is wrong with factors, in roundings of the largest value times the number of rows: the product, and each side's orthogonality. */
async function wrongWith(a: Tensor, left: Tensor, values: Tensor, right: Tensor): Promise<number> {
  const epsilon = a.dtype === 'float64' ? 2 ** -53 : 2 ** -24;
  const norm = (await largest(values)) || 1;
  const product = left.mul(values.div(norm).unsqueeze(-2)).matmul(right).sub(a.div(norm));
  const one = eye(right.shape.at(-2)!, { dtype: a.dtype as Floating });
  const sides = [left.transpose().matmul(left).sub(one), right.matmul(right.transpose()).sub(one)];
  const found = await Promise.all([product, ...sides].map(largest));
  return Math.max(...found) / epsilon / Math.max(a.shape.at(-1)!, a.shape.at(-2)!, 4);
}

const sizes = [1, 2, 3, 6, 33];

/** Matrices on which methods for eigenvalues have failed. */
const hard: Readonly<Record<string, (n: number) => Tensor>> = {
  waves: (n) => wave([n, n]),
  "Hilbert's": (n) => matrix(n, (i, j) => 1 / (i + j + 1)),
  'graded downwards': (n) => symmetric(wave([n, n])).mul(matrix(n, (i, j) => 10 ** -((i + j) / 2))),
  'graded upwards': (n) => symmetric(wave([n, n])).mul(matrix(n, (i, j) => 10 ** -(n - (i + j) / 2))),
  ones: (n) => ones([n, n], { dtype }),
  zeros: (n) => zeros([n, n], { dtype }),
  'the identity': (n) => eye(n, { dtype }),
  'near to the identity': (n) => eye(n, { dtype }).add(symmetric(wave([n, n])).mul(1e-9)),
  "Wilkinson's": (n) => matrix(n, (i, j) => (i === j ? Math.abs(i - (n - 1) / 2) : Math.abs(i - j) === 1 ? 1 : 0)),
  'zeros on the diagonal': (n) => matrix(n, (i, j) => (Math.abs(i - j) === 1 ? 1 : 0)),
  nilpotent: (n) => matrix(n, (i, j) => (j === i + 1 ? 1 : 0)),
  "Kahan's": (n) => matrix(n, (i, j) => (j < i ? 0 : 0.8 ** i * (i === j ? 1 : -0.6))),
  'rank 2': (n) => wave([n, 2]).matmul(wave([n, 2]).transpose()),
  huge: (n) => wave([n, n]).mul(1e30),
  tiny: (n) => wave([n, n]).mul(1e-30),
};

describe('eigh', () => {
  it("has LAPACK's values, and vectors whose largest element is positive", async () => {
    const { values, vectors } = eigh(symmetric(wave([4, 4])));
    // numpy.linalg.eigh, vectors as rows and with these signs
    const w = [-1.0678533848047485, -0.3791296046577096, 0.4952695707345879, 1.158073916656761];
    const v = [
      [0.1641103436127287, 0.9686569835789193, -0.07030191228272667, 0.17271098521082043],
      [0.776857779145276, -0.09493992628293896, -0.47704807126220716, -0.39987940567609553],
      [0.5070549836365614, -0.2171874346440335, 0.18770631678432542, 0.8127060972093981],
      [0.3353431521145279, 0.07429452734840003, 0.8557155587423082, -0.38700927128727547],
    ];
    expect(await largest(values.sub(tensor(w, { dtype })))).toBeLessThan(1e-14);
    expect(await largest(vectors.transpose().sub(tensor(v, { dtype })))).toBeLessThan(1e-14);
  });

  it('has the values of second differences, 2 - 2 cos(k π / (n + 1))', async () => {
    for (const n of [7, 40]) {
      const a = matrix(n, (i, j) => (i === j ? 2 : Math.abs(i - j) === 1 ? -1 : 0));
      const expected = Array.from({ length: n }, (_, k) => 2 - 2 * Math.cos(((k + 1) * Math.PI) / (n + 1)));
      expect(await largest(eigh(a).values.sub(tensor(expected, { dtype })))).toBeLessThan(1e-14);
    }
  });

  for (const [name, make] of Object.entries(hard))
    it(`of ${name} is exact up to rounding`, async () => {
      for (const as of [dtype, 'float32'] as const)
        for (const n of sizes) {
          const a = symmetric(make(n)).cast(as);
          const { values, vectors } = eigh(a);
          expect(await wrongWith(a, vectors, values, vectors.transpose())).toBeLessThan(10);
          await expectOrdered(values);
        }
    });

  it('reads one triangle', async () => {
    const a = symmetric(wave([5, 5]));
    const { values } = eigh(a);
    const noise = wave([5, 5], 3);
    expect(await largest(eigh(a.add(noise.triu({ diagonal: 1 }))).values.sub(values))).toBe(0);
    const above = eigh(a.add(noise.tril({ diagonal: -1 })), { upper: true }).values;
    expect(await largest(above.sub(values))).toBe(0);
  });

  it('takes batches, none too', async () => {
    const batch = stack([symmetric(wave([3, 3])), symmetric(wave([3, 3], 5))], 0).unsqueeze(1);
    const { values, vectors } = eigh(batch);
    expect([values.shape, vectors.shape]).toEqual([
      [2, 1, 3],
      [2, 1, 3, 3],
    ]);
    expect(
      await largest(
        values
          .select(0, 1)
          .select(0, 0)
          .sub(eigh(batch.select(0, 1).select(0, 0)).values),
      ),
    ).toBeLessThan(1e-14);
    expect(eigh(zeros([0, 3, 3])).vectors.shape).toEqual([0, 3, 3]);
    expect(eigh(zeros([2, 0, 0])).values.shape).toEqual([2, 0]);
  });
});

describe('svd', () => {
  it("has LAPACK's values and vectors", async () => {
    const { u, s, vt } = svd(wave([4, 2], 1));
    // numpy.linalg.svd, with the largest element of each left vector positive; u as rows
    const left = [
      [0.38314436768631804, 0.6667259539408303, -0.11517546939168229, -0.628817546751319],
      [0.8392480958440304, -0.16881701354705259, -0.33489892071917865, 0.393708219955277],
    ];
    const right = [
      [-0.3884485349632878, 0.9214704204069035],
      [0.9214704204069035, 0.3884485349632878],
    ];
    expect(await largest(s.sub(tensor([1.5318550082619027, 1.3829061640692035], { dtype })))).toBeLessThan(1e-14);
    expect(await largest(u.transpose().sub(tensor(left, { dtype })))).toBeLessThan(1e-14);
    expect(await largest(vt.sub(tensor(right, { dtype })))).toBeLessThan(1e-14);
  });

  for (const [name, make] of Object.entries(hard))
    it(`of ${name} is exact up to rounding`, async () => {
      for (const as of [dtype, 'float32'] as const)
        for (const n of sizes) {
          const a = make(n).cast(as);
          const { u, s, vt } = svd(a);
          expect(await wrongWith(a, u, s, vt)).toBeLessThan(10);
          await expectOrdered(s, true);
          expect(Number(await s.min().item())).toBeGreaterThanOrEqual(0);
        }
    });

  for (const [m, n] of [
    [5, 3],
    [3, 5],
    [40, 7],
    [1, 4],
    [4, 1],
    [33, 65],
  ] as const)
    it(`of ${m} by ${n}, reduced and full`, async () => {
      const a = wave([m, n]);
      const { u, s, vt } = svd(a);
      const k = Math.min(m, n);
      expect([u.shape, s.shape, vt.shape]).toEqual([[m, k], [k], [k, n]]);
      // The side with as many columns as rows, and the other one, have orthonormal columns.
      const one = eye(k, { dtype });
      expect(await largest(u.transpose().matmul(u).sub(one))).toBeLessThan(1e-14);
      expect(await largest(vt.matmul(vt.transpose()).sub(one))).toBeLessThan(1e-14);
      expect(await largest(u.mul(s).matmul(vt).sub(a))).toBeLessThan(1e-13);
      const full = svd(a, { full: true });
      expect([full.u.shape, full.vt.shape]).toEqual([
        [m, m],
        [n, n],
      ]);
      expect(await largest(full.u.matmul(full.u.transpose()).sub(eye(m, { dtype })))).toBeLessThan(1e-13);
      expect(await largest(full.vt.matmul(full.vt.transpose()).sub(eye(n, { dtype })))).toBeLessThan(1e-13);
      expect(await largest(full.u.narrow(1, 0, k).sub(u))).toBe(0);
      expect(await largest(full.vt.narrow(0, 0, k).sub(vt))).toBe(0);
    });

  it('takes batches, none too', async () => {
    const batch = wave([2, 1, 4, 3]);
    const { u, s, vt } = svd(batch);
    expect([u.shape, s.shape, vt.shape]).toEqual([
      [2, 1, 4, 3],
      [2, 1, 3],
      [2, 1, 3, 3],
    ]);
    expect(
      await largest(
        s
          .select(0, 1)
          .select(0, 0)
          .sub(svd(batch.select(0, 1).select(0, 0)).s),
      ),
    ).toBeLessThan(1e-14);
    expect(svd(zeros([0, 3, 2])).u.shape).toEqual([0, 3, 2]);
    const { u: empty } = svd(zeros([2, 3, 0]), { full: true });
    expect(await largest(empty.sub(eye(3)))).toBe(0);
    expect(svd(zeros([2, 3, 0])).s.shape).toEqual([2, 0]);
  });
});

it('a number that is not finite makes NaN of its own matrix alone', async () => {
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
    const good = symmetric(wave([3, 3]));
    const batch = stack([good.add(eye(3, { dtype }).mul(bad)), good], 0);
    const { values, vectors } = eigh(batch);
    const { u, s, vt } = svd(batch, { full: true });
    for (const x of [values, vectors, u, s, vt, pinv(batch)]) {
      expect(await x.select(0, 0).isNaN().all().item()).toBe(1);
      expect(await x.select(0, 1).isNaN().any().item()).toBe(0);
    }
    expect(await largest(values.select(0, 1).sub(eigh(good).values))).toBeLessThan(1e-14);
    expect(await matrixRank(batch).array()).toEqual([0, 3]);
  }
});

it('clusters as close as rounding come to an end', async () => {
  const n = 24;
  for (const as of [dtype, 'float32'] as const) {
    const size = as === dtype ? 1e-15 : 5e-7;
    const d = wave([40, n])
      .mul(size / 3)
      .add(1)
      .cast(as); // prettier-ignore
    const e = wave([40, n], 2).mul(size).cast(as);
    for (const { values, sweeps } of [tridiagonal({ d, e }), bidiagonal({ d, e })]) {
      expect(await values.isNaN().any().item()).toBe(0);
      expect(Number(await sweeps.select(1, 0).select(1, 0).max().item())).toBeLessThan(5 * n);
    }
  }
});

describe('pinv and matrixRank', () => {
  it("are LAPACK's", async () => {
    // numpy.linalg.pinv
    const expected = [
      [0.4620573731043417, -0.2815563547095916, -0.19394659685898194, 0.4217950452094553],
      [0.4662150912391169, 0.35364211400590734, -0.1633532604367223, -0.2676683862391638],
    ];
    expect(await largest(pinv(wave([4, 2], 1)).sub(tensor(expected, { dtype })))).toBeLessThan(1e-14);
    const a = wave([6, 2]).matmul(wave([2, 5], 1));
    expect(await matrixRank(a).item()).toBe(2);
    expect(await matrixRank(stack([a, a.mul(0)], 0)).array()).toEqual([2, 0]);
    expect(
      await matrixRank(
        tensor([
          [1, 0],
          [0, 0.1],
        ]),
        { rcond: 0.2 },
      ).item(),
    ).toBe(1); // prettier-ignore
  });

  it('has the four properties, below full rank too', async () => {
    for (const a of [wave([5, 3]), wave([3, 5]), wave([6, 2]).matmul(wave([2, 5], 1)), zeros([2, 3], { dtype })]) {
      const p = pinv(a);
      expect(p.shape).toEqual([...a.shape].reverse());
      const [left, right] = [a.matmul(p), p.matmul(a)];
      for (const wrong of [
        left.matmul(a).sub(a),
        right.matmul(p).sub(p),
        left.sub(left.transpose()),
        right.sub(right.transpose()),
      ])
        expect(await largest(wrong)).toBeLessThan(1e-13);
    }
    expect(pinv(zeros([2, 0, 3])).shape).toEqual([2, 3, 0]);
    expect(await matrixRank(zeros([2, 0, 3])).array()).toEqual([0, 0]);
  });
});

describe('derivatives', () => {
  const weights = wave([4, 4], 7);
  const functions: Readonly<Record<string, readonly [(x: Tensor) => Tensor, readonly number[]]>> = {
    'values of eigh': [(x) => eigh(x).values.pow(3).sum(), [4, 4]],
    'vectors of eigh': [(x) => eigh(x).vectors.mul(weights).sum(), [4, 4]],
    'both of eigh, upper': [
      (x) => {
        const { values, vectors } = eigh(x, { upper: true });
        return vectors.pow(2).matmul(values.unsqueeze(1)).mul(weights).sum();
      },
      [4, 4],
    ],
    'values of svd': [(x) => svd(x).s.pow(3).sum(), [4, 3]],
    'u of svd, square': [(x) => svd(x).u.mul(weights).sum(), [4, 4]],
    'u of svd, tall': [
      (x) =>
        svd(x)
          .u.mul(weights.narrow(1, 0, 2))
          .sum(),
      [4, 2],
    ],
    'u of svd, wide': [
      (x) =>
        svd(x)
          .u.mul(weights.narrow(0, 0, 2).narrow(1, 0, 2))
          .sum(),
      [2, 4],
    ],
    'vt of svd, tall': [
      (x) =>
        svd(x)
          .vt.mul(weights.narrow(0, 0, 2).narrow(1, 0, 2))
          .sum(),
      [4, 2],
    ],
    'vt of svd, wide': [
      (x) =>
        svd(x)
          .vt.mul(weights.narrow(0, 0, 2))
          .sum(),
      [2, 4],
    ],
    'all of svd': [
      (x) => {
        const { u, s, vt } = svd(x);
        return u
          .pow(2)
          .mul(s)
          .matmul(vt.pow(3))
          .mul(weights.narrow(0, 0, 3))
          .sum();
      },
      [3, 4],
    ],
    'pinv, tall': [
      (x) =>
        pinv(x)
          .mul(weights.narrow(0, 0, 2))
          .sum(),
      [4, 2],
    ],
    'pinv, wide': [(x) => pinv(x).pow(2).sum(), [2, 4]],
  };

  for (const [name, [f, shape]] of Object.entries(functions))
    it(`of ${name}, two orders, forward too`, async () => {
      const [x, v] = [wave(shape, 1), wave(shape, 4)];
      expect(await gradCheck(f, [x])).toBe(true);
      const slope = (a: Tensor): Tensor => grad(f)(a).mul(v).sum();
      expect(await gradCheck(slope, [x])).toBe(true);
      const [, forward] = jvp(f, [x], [v]);
      expect(await largest(forward.sub(slope(x)))).toBeLessThan(1e-9);
      const [product] = hvp(f, [x], [v]);
      expect(await largest(product.sub(grad(slope)(x)))).toBeLessThan(1e-8);
    });

  it('of values are finite where they are equal, of vectors not', async () => {
    const one = eye(3, { dtype });
    const trace = (x: Tensor): Tensor => eigh(x).values.sum();
    expect(await largest(grad(trace)(one).sub(one))).toBeLessThan(1e-14);
    const nuclear = (x: Tensor): Tensor => svd(x).s.sum();
    expect(await largest(grad(nuclear)(one).sub(one))).toBeLessThan(1e-14);
    const first = (x: Tensor): Tensor =>
      eigh(x)
        .vectors.mul(wave([3, 3]))
        .sum();
    expect(await grad(first)(one).isFinite().all().item()).toBe(0);
    expect(
      await gradCheck(
        (x: Tensor) =>
          pinv(x)
            .mul(wave([3, 3]))
            .sum(),
        [one],
      ),
    ).toBe(true); // prettier-ignore
  });

  it('of a matrix of low rank, at constant rank', async () => {
    const f = (x: Tensor, y: Tensor): Tensor =>
      pinv(x.matmul(y))
        .mul(wave([4, 4]))
        .sum(); // prettier-ignore
    expect(await gradCheck(f, [wave([4, 2]), wave([2, 4], 1)])).toBe(true);
  });

  it('are refused for vectors of no value', () => {
    const f = (x: Tensor): Tensor => svd(x, { full: true }).u.sum();
    expect(() => grad(f)(wave([3, 2]))).toThrow('vectors that belong to no value have no gradient');
  });

  it('in batches, and compiled', async () => {
    const xs = stack([wave([3, 3], 1), wave([3, 3], 2)], 0);
    const f = (x: Tensor): Tensor => svd(x).u.pow(3).sum().add(eigh(x).vectors.pow(3).sum());
    await expectEach(f, xs, 1e-12);
  });
});

it('makes no new plan for a matrix of a known size', () =>
  expectNoNewPlan((seed) => eigh(symmetric(wave([9, 9], seed))).vectors));

it('refuses other shapes, dtypes and options', () => {
  expect(() => eigh(ones([2, 3]))).toThrow('a has shape [2, 3]: its last two axes must be those of square matrices');
  expect(() => eigh(ones([2, 2], { dtype: 'float16' }))).toThrow('a is float16: needs float32 or float64');
  expect(() => eigh(zeros([1025, 1025], { dtype }))).toThrow(
    'takes at most 1024 rows or columns, the fewer, of float64',
  );
  for (const f of [svd, pinv, matrixRank] as const) {
    expect(() => f(ones([2]))).toThrow('its last two axes must be those of matrices');
    expect(() => f(ones([2, 2], { dtype: 'int32' }))).toThrow('a is int32: needs float32 or float64');
  }
  expect(() => svd(zeros([2049, 3000]))).toThrow('takes at most 2048 rows or columns, the fewer, of float32');
  expect(() => pinv(ones([2, 2]), { rcond: -1 })).toThrow('rcond');
});

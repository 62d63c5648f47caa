/** Cholesky's factor and triangular equations: values beside loops of JavaScript, derivatives beside finite differences, batches, and what is refused. */
import '@polygrad/backend-cpu';
import { beforeAll, describe, expect, it } from 'vitest';
import { eye, grad, gradCheck, hvp, jvp, ones, setEngine, stack, tensor, type Tensor, zeros } from '../index.ts';
import { expectEach, expectNoNewPlan, largest } from './fixtures/checks.ts';
import { cholesky, triangularSolve } from './triangular.ts';

const dtype = 'float64';

beforeAll(async () => {
  await setEngine('cpu');
});

function wave(shape: readonly number[], seed = 0): Tensor {
  const size = shape.reduce((a, b) => a * b, 1);
  return tensor(
    Array.from({ length: size }, (_, i) => Math.sin(i * 1.7 + seed)),
    { dtype, shape: [...shape] },
  );
}

/** Positive definite: x xᵀ / n + 1. */
function definite(n: number, seed = 0): Tensor {
  const x = wave([n, n], seed);
  return x.matmul(x.transpose()).div(n).add(eye(n, { dtype }));
}

/** The lower triangle L with a = L Lᵀ, row by row. */
function factorOf(a: readonly (readonly number[])[]): number[][] {
  const l: number[][] = a.map((row) => row.map(() => 0));
  for (let i = 0; i < a.length; i++)
    for (let j = 0; j <= i; j++) {
      let rest = a[i]![j]!;
      for (let k = 0; k < j; k++) rest -= l[i]![k]! * l[j]![k]!;
      l[i]![j] = i === j ? Math.sqrt(rest) : rest / l[j]![j]!;
    }
  return l;
}

const matrixOf = async (x: Tensor) => (await x.array()) as number[][];

describe('cholesky', () => {
  for (const n of [1, 2, 31, 32, 33, 64, 65, 130])
    it(`of ${n} rows is that of loops`, async () => {
      const x = definite(n);
      const expected = tensor(factorOf(await matrixOf(x)), { dtype });
      expect(await largest(cholesky(x).sub(expected))).toBeLessThan(1e-13);
      expect(await largest(cholesky(x, { upper: true }).sub(expected.transpose()))).toBeLessThan(1e-13);
    });

  it('takes batches, none too, and the symmetric part alone', async () => {
    const batch = stack([definite(3), definite(3, 5)], 0).unsqueeze(1);
    const l = cholesky(batch);
    expect(l.shape).toEqual([2, 1, 3, 3]);
    expect(await largest(l.matmul(l.transpose()).sub(batch))).toBeLessThan(1e-14);
    expect(cholesky(zeros([0, 3, 3])).shape).toEqual([0, 3, 3]);
    expect(cholesky(zeros([2, 0, 0])).shape).toEqual([2, 0, 0]);
    const skew = wave([3, 3], 2);
    const both = definite(3).add(skew.sub(skew.transpose()));
    expect(await largest(cholesky(both).sub(cholesky(definite(3))))).toBeLessThan(1e-14);
  });

  it('of what is not positive definite is NaN, in its own matrix alone', async () => {
    const bad = tensor(
      [
        [1, 2],
        [2, 1],
      ],
      { dtype },
    ); // prettier-ignore
    const [first, second] = cholesky(stack([bad, eye(2, { dtype })], 0)).unbind(0) as [Tensor, Tensor];
    expect(await first.array()).toEqual([
      [1, 0],
      [2, Number.NaN],
    ]);
    expect(await second.array()).toEqual([
      [1, 0],
      [0, 1],
    ]);
  });

  it('refuses other shapes and dtypes', () => {
    expect(() => cholesky(ones([2, 3]))).toThrow(
      'x has shape [2, 3]: its last two axes must be those of square matrices',
    );
    expect(() => cholesky(ones([2]))).toThrow('square matrices');
    expect(() => cholesky(ones([2, 2], { dtype: 'int32' }))).toThrow(
      'x is int32: needs float32 or float64; convert with cast()',
    );
    expect(() => cholesky(ones([2, 2], { dtype: 'float16' }))).toThrow('x is float16');
  });
});

describe('triangularSolve', () => {
  const loops = (a: readonly (readonly number[])[], b: readonly number[], upper: boolean): number[] => {
    const x = b.map(() => 0);
    const order = b.map((_, i) => (upper ? b.length - 1 - i : i));
    for (const i of order) {
      let rest = b[i]!;
      for (const j of order) if (upper ? j > i : j < i) rest -= a[i]![j]! * x[j]!;
      x[i] = rest / a[i]![i]!;
    }
    return x;
  };

  for (const n of [1, 5, 32, 33, 100])
    for (const upper of [false, true])
      it(`of ${n} rows, ${upper ? 'upper' : 'lower'}, is that of loops`, async () => {
        const a = wave([n, n]).div(n).add(eye(n, { dtype })); // what is on the other side is not read
        const b = wave([n], 3);
        const expected = tensor(loops(await matrixOf(a), (await b.array()) as number[], upper), { dtype });
        expect(await largest(triangularSolve(a, b, { upper }).sub(expected))).toBeLessThan(1e-12);
        const columns = triangularSolve(a, stack([b, b.mul(2)], 1), { upper });
        expect(columns.shape).toEqual([n, 2]);
        expect(await largest(columns.select(1, 1).sub(expected.mul(2)))).toBeLessThan(1e-12);
      });

  it('takes ones for the diagonal', async () => {
    const a = tensor(
      [
        [7, 5],
        [3, 7],
      ],
      { dtype },
    ); // prettier-ignore
    const b = tensor([1, 2], { dtype });
    expect(await triangularSolve(a, b, { unitDiagonal: true }).array()).toEqual([1, -1]);
    expect(await triangularSolve(a, b, { unitDiagonal: true, upper: true }).array()).toEqual([-9, 2]);
  });

  it('stretches axes in front, and takes none of a size', async () => {
    const a = stack([definite(3), definite(3, 1)], 0);
    const x = triangularSolve(a, wave([4, 1, 3, 2]));
    expect(x.shape).toEqual([4, 2, 3, 2]);
    expect(
      await largest(
        a
          .tril()
          .matmul(x)
          .sub(wave([4, 1, 3, 2])),
      ),
    ).toBeLessThan(1e-14);
    expect(triangularSolve(eye(3), zeros([3, 0])).shape).toEqual([3, 0]);
    expect(triangularSolve(zeros([0, 0]), zeros([0, 2])).shape).toEqual([0, 2]);
  });

  it('refuses operands that do not fit', () => {
    expect(() => triangularSolve(eye(3), ones([2, 3]))).toThrow(
      'a has shape [3, 3] and b [2, 3]: b must be [..., 3, k], or [3]',
    );
    expect(() => triangularSolve(eye(3), ones([3], { dtype }))).toThrow('a is float32 and b float64: needs one dtype');
    expect(() => triangularSolve(ones([3]), ones([3]))).toThrow('square matrices');
  });
});

/** Minus the log likelihood of a Gaussian process. */
function likelihood(x: Tensor, y: Tensor): Tensor {
  const l = cholesky(x.matmul(x.transpose()).add(eye(x.shape[0]!, { dtype })));
  return triangularSolve(l, y).square().sum().add(l.diagonal().log().sum());
}

describe('derivatives', () => {
  for (const n of [3, 34])
    it(`of every order, ${n} rows`, async () => {
      const [x, y] = [wave([n, 1]), wave([n], 1)];
      expect(await gradCheck(likelihood, [x, y])).toBe(true);
      const slope = (a: Tensor, b: Tensor) =>
        grad(likelihood)(a, b)
          .mul(wave([n, 1], 4))
          .sum();
      expect(await gradCheck(slope, [x, y])).toBe(true);
      if (n === 3)
        expect(
          await gradCheck(
            (a: Tensor) =>
              grad((v: Tensor) => slope(v, y))(a)
                .square()
                .sum(),
            [x],
          ),
        ).toBe(true);
      const v = wave([n, 1], 4);
      const [, forward] = jvp((a: Tensor) => likelihood(a, y), [x], [v]);
      expect(await largest(forward.sub(slope(x, y)))).toBeLessThan(1e-10);
      const [product] = hvp((a: Tensor) => likelihood(a, y), [x], [v]);
      expect(await largest(product.sub(grad((a: Tensor) => slope(a, y))(x)))).toBeLessThan(1e-9);
    });

  it('of upper factors and triangles', async () => {
    const up = (x: Tensor) => cholesky(x, { upper: true }).pow(3).sum();
    expect(await gradCheck(up, [definite(3)])).toBe(true);
    for (const options of [{ upper: true }, { unitDiagonal: true }, { upper: true, unitDiagonal: true }])
      expect(await gradCheck((a, b) => triangularSolve(a, b, options).pow(3).sum(), [definite(3), wave([3, 2])])).toBe(
        true,
      );
  });

  it('of the symmetric part are symmetric, as in PyTorch', async () => {
    const [g] = [
      grad((x: Tensor) => cholesky(x).sum())(
        tensor(
          [
            [4, 2],
            [2, 5],
          ],
          { dtype },
        ),
      ),
    ]; // prettier-ignore
    // PyTorch 1.13: torch.linalg.cholesky(x).sum().backward()
    expect(
      await largest(
        g.sub(
          tensor(
            [
              [0.1875, 0.125],
              [0.125, 0.25],
            ],
            { dtype },
          ),
        ),
      ),
    ).toBeLessThan(1e-12); // prettier-ignore
  });

  it('in batches, and compiled', async () => {
    const xs = stack([wave([5, 2]), wave([5, 2], 2)], 0);
    await expectEach((x) => likelihood(x, wave([5], 1)), xs, 1e-12);
  });
});

it('makes no new plan for a matrix of a known size', () => expectNoNewPlan((seed) => cholesky(definite(40, seed))));

/** Equations, inverses and determinants of general matrices: values beside elimination in JavaScript, derivatives beside finite differences, and what is refused. */
import { beforeAll, describe, expect, it } from 'vitest';
import '@polygrad/backend-cpu';
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
import { expectEach, expectInside, expectNoNewPlan, largest } from './fixtures/checks.ts';
import { det, inv, slogDet, solve } from './elimination.ts';

const dtype = 'float64';

beforeAll(async () => {
  await setEngine('cpu');
});

/** Numbers of a linear congruential generator, from -1 to 1: rows need exchanging everywhere. */
function drawn(shape: readonly number[], seed = 1): Tensor {
  let state = seed;
  const numbers = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 1_073_741_824 - 1;
  });
  return tensor(numbers, { dtype, shape: [...shape] });
}

const matrixOf = async (x: Tensor) => (await x.array()) as number[][];

/** Sign and logarithm of the determinant, by Gauss with partial pivoting. */
function determinantOf(a: readonly (readonly number[])[]): [sign: number, log: number] {
  const rows = a.map((row) => [...row]);
  let [sign, log] = [1, 0];
  for (let c = 0; c < rows.length; c++) {
    let p = c;
    for (let r = c + 1; r < rows.length; r++) if (Math.abs(rows[r]![c]!) > Math.abs(rows[p]![c]!)) p = r;
    if (p !== c) {
      [rows[p], rows[c]] = [rows[c]!, rows[p]!];
      sign = -sign;
    }
    const pivot = rows[c]![c]!;
    sign *= Math.sign(pivot);
    log += Math.log(Math.abs(pivot));
    for (let r = c + 1; r < rows.length; r++)
      for (let k = rows.length - 1; k >= c; k--) rows[r]![k]! -= (rows[r]![c]! / pivot) * rows[c]![k]!;
  }
  return [sign, log];
}

describe('values', () => {
  for (const n of [1, 3, 17, 32, 70])
    it(`of ${n} rows`, async () => {
      const a = drawn([n, n], n);
      const x = drawn([n, 3], n + 1);
      // Residuals say what elimination lost; solutions lose as many digits more as the matrix is close to a singular one.
      const b = a.matmul(x);
      expect(await largest(a.matmul(solve(a, b)).sub(b))).toBeLessThan(1e-13 * n);
      expect(await largest(solve(a, b).sub(x))).toBeLessThan(1e-11 * n);
      const turned = a.transpose();
      expect(await largest(solve(turned, turned.matmul(x)).sub(x))).toBeLessThan(1e-11 * n);
      expect(await largest(inv(a).matmul(a).sub(eye(n, { dtype })))).toBeLessThan(1e-11 * n);
      const [sign, log] = determinantOf(await matrixOf(a));
      const { sign: s, logAbsDet } = slogDet(a);
      expect(await s.item()).toBe(sign);
      expect(Math.abs(Number(await logAbsDet.item()) - log)).toBeLessThan(1e-11);
      expect(Number(await det(a).item()) / (sign * Math.exp(log))).toBeCloseTo(1, 10);
    });

  it('need exchanged rows: a permutation, and zeros in front', async () => {
    const n = 70;
    const order = Array.from({ length: n }, (_, i) => (i * 37 + 11) % n);
    const p = tensor(
      order.flatMap((to) => Array.from({ length: n }, (_, i) => (i === to ? 1 : 0))),
      { dtype, shape: [n, n] },
    );
    expect(await largest(inv(p).sub(p.transpose()))).toBe(0);
    const [sign] = determinantOf(await matrixOf(p));
    expect(await det(p).item()).toBe(sign);
    const small = p.mul(1e-12).add(drawn([n, n]).tril({ diagonal: -2 }));
    const x = drawn([n], 5);
    const b = small.matmul(x);
    expect(await largest(small.matmul(solve(small, b)).sub(b))).toBeLessThan(1e-12);
  });

  it('take batches, whose axes in front stretch', async () => {
    const a = drawn([2, 1, 5, 5]);
    const b = drawn([4, 5, 2], 3);
    const x = solve(a, b);
    expect(x.shape).toEqual([2, 4, 5, 2]);
    expect(await largest(a.matmul(x).sub(b))).toBeLessThan(1e-13);
    const one = solve(a.select(0, 0).select(0, 0), b);
    expect(one.shape).toEqual([4, 5, 2]);
    expect(await largest(one.sub(x.select(0, 0)))).toBeLessThan(1e-13);
    const vector = drawn([5], 4);
    expect(solve(a, vector).shape).toEqual([2, 1, 5]);
    expect(await largest(a.matmul(solve(a, vector).unsqueeze(-1)).squeeze(-1).sub(vector))).toBeLessThan(1e-13);
    expect(await largest(inv(a).matmul(a).sub(eye(5, { dtype })))).toBeLessThan(1e-13);
    const big = drawn([2, 40, 40]);
    expect(await largest(inv(big).matmul(big).sub(eye(40, { dtype })))).toBeLessThan(1e-11);
    expect(det(a).shape).toEqual([2, 1]);
  });

  it('of nothing', async () => {
    expect(solve(zeros([0, 0]), zeros([0, 2])).shape).toEqual([0, 2]);
    expect(solve(eye(3), zeros([3, 0])).shape).toEqual([3, 0]);
    expect(solve(zeros([0, 3, 3]), zeros([3])).shape).toEqual([0, 3]);
    expect(inv(zeros([2, 0, 0])).shape).toEqual([2, 0, 0]);
    expect(await det(zeros([2, 0, 0])).array()).toEqual([1, 1]);
    expect(await slogDet(zeros([0, 0])).logAbsDet.item()).toBe(0);
    expect(det(zeros([0, 3, 3])).shape).toEqual([0]);
  });

  it('of singular matrices, and of NaN', async () => {
    for (const n of [2, 5, 40]) {
      const a = drawn([n, n]);
      // The first column is zero; then its last row.
      const column = a.mul(
        tensor(
          Array.from({ length: n }, (_, i) => (i === 0 ? 0 : 1)),
          { dtype },
        ),
      );
      for (const singular of [column, column.transpose(), zeros([n, n], { dtype })]) {
        expect(Math.abs(Number(await det(singular).item()))).toBe(0);
        const { sign, logAbsDet } = slogDet(singular);
        expect(Math.abs(Number(await sign.item()))).toBe(0);
        expect(await logAbsDet.item()).toBe(Number.NEGATIVE_INFINITY);
        expect(
          await solve(singular, ones([n], { dtype }))
            .isFinite()
            .all()
            .item(),
        ).toBe(0);
      }
      const bad = a.mul(
        tensor(
          Array.from({ length: n }, (_, i) => (i === n - 1 ? Number.NaN : 1)),
          { dtype },
        ),
      );
      expect(await det(bad).item()).toBeNaN();
      expect(
        await solve(bad, ones([n], { dtype }))
          .isFinite()
          .all()
          .item(),
      ).toBe(0);
    }
  });

  it('in float32', async () => {
    const a = drawn([48, 48]).cast('float32');
    const x = solve(a, ones([48]));
    expect(x.dtype).toBe('float32');
    expect(await largest(a.matmul(x).sub(1))).toBeLessThan(2e-4);
  });
});

it('refuses operands that do not fit', () => {
  expect(() => solve(ones([2, 3]), ones([2]))).toThrow('[solve] a has shape [2, 3]');
  expect(() => solve(eye(3), ones([2, 3]))).toThrow('a has shape [3, 3] and b [2, 3]: b must be [..., 3, k], or [3]');
  expect(() => solve(eye(3), ones([3], { dtype }))).toThrow('a is float32 and b float64: needs one dtype');
  expect(() => solve(ones([2, 3, 3]), ones([4, 3, 1]))).toThrow('shapes do not broadcast');
  expect(() => inv(ones([3]))).toThrow('[inv] a has shape [3]');
  expect(() => det(ones([2, 2], { dtype: 'int32' }))).toThrow('[det] a is int32: needs float32 or float64');
  expect(() => slogDet(ones([2, 3]))).toThrow('[slogDet] a has shape [2, 3]');
});

describe('derivatives', () => {
  for (const n of [3, 35])
    it(`of every order, ${n} rows`, async () => {
      const [a, b, v] = [drawn([n, n]).add(eye(n, { dtype })), drawn([n, 2], 2), drawn([n, n], 3)];
      for (const f of [
        (x: Tensor) => solve(x, b).square().sum(),
        (x: Tensor) => inv(x).mul(v).sum(),
        (x: Tensor) => slogDet(x).logAbsDet.mul(slogDet(x).sign).sum(),
        (x: Tensor) => det(x).mul(n > 4 ? 1e-3 : 1),
      ]) {
        const slope = (x: Tensor) => grad(f)(x).mul(v).sum();
        if (n < 5) {
          expect(await gradCheck(f, [a])).toBe(true);
          expect(await gradCheck(slope, [a])).toBe(true);
        }
        const [, forward] = jvp(f, [a], [v]);
        const scale = Math.max(1, Math.abs(Number(await forward.item())));
        expect(await largest(forward.sub(slope(a)))).toBeLessThan(1e-9 * scale);
        const step = 1e-6;
        const ahead = Number(await f(a.add(v.mul(step))).item());
        const back = Number(await f(a.sub(v.mul(step))).item());
        expect(Math.abs((ahead - back) / (2 * step) - Number(await forward.item()))).toBeLessThan(1e-4 * scale);
        const [second] = hvp(f, [a], [v]);
        const reference = grad(slope)(a);
        expect(await largest(second.sub(reference))).toBeLessThan(1e-8 * (1 + (await largest(reference))));
      }
      if (n < 5) {
        expect(await gradCheck((x, y) => solve(x, y).pow(3).sum(), [a, b])).toBe(true);
        const third = (x: Tensor) =>
          grad((y: Tensor) =>
            grad((z: Tensor) => inv(z).mul(v).sum())(y)
              .square()
              .sum(),
          )(x);
        expect(await gradCheck((x: Tensor) => third(x).mul(v).sum(), [a])).toBe(true);
      }
    });

  it('of stretched operands', async () => {
    expect(await gradCheck((a, b) => solve(a, b).square().sum(), [drawn([2, 1, 3, 3]), drawn([3, 3, 1], 2)])).toBe(
      true,
    );
    expect(await gradCheck((a, b) => solve(a, b).square().sum(), [drawn([3, 3]), drawn([2, 3, 2], 2)])).toBe(true);
    expect(await gradCheck((a, b) => solve(a, b).square().sum(), [drawn([2, 3, 3]), drawn([3], 2)])).toBe(true);
  });

  it('of a singular matrix of three rows are its cofactors', async () => {
    const a = tensor(
      [
        [1, 2, 3],
        [2, 4, 6],
        [1, 0, 1],
      ],
      { dtype },
    ); // prettier-ignore
    expect(await grad(det)(a).array()).toEqual([
      [4, 4, -4],
      [-2, -2, 2],
      [0, 0, 0],
    ]); // prettier-ignore
  });

  it('with vmap inside and outside, and compiled', async () => {
    const f = (x: Tensor) =>
      solve(x, ones([5], { dtype }))
        .square()
        .sum()
        .add(slogDet(x).logAbsDet);
    const xs = stack([drawn([5, 5]), drawn([5, 5], 9)], 0);
    await expectEach(f, xs, 1e-9);
    await expectInside(f, xs, 1e-9, 1e-6);
  });
});

it('keeps its precision under autocast', async () => {
  const a = drawn([40, 40]).cast('float32');
  const plain = inv(a);
  const cast = autocast('bfloat16', () => inv(a));
  expect(await largest(cast.sub(plain))).toBe(0);
});

it('makes no new plan for a matrix of a known size', () => expectNoNewPlan((seed) => inv(drawn([40, 40], seed))));

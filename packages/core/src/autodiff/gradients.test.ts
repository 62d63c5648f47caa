/** Gradient functions as users call them, on the reference engine: grad and its relatives, and what checks them. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  add,
  cos,
  customGradient,
  exp,
  flush,
  gradCheck,
  grad,
  grads,
  hessian,
  hvp,
  jacobian,
  jvp,
  matmul,
  memory,
  mul,
  setEager,
  setEngine,
  sin,
  sum,
  type Tensor,
  tanh,
  tensor,
  valueAndGrad,
  vjp,
  where,
} from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { near, read, scalar, vector } from './fixtures/vectors.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

describe('grad', () => {
  it('nests to any order', async () => {
    let f = (x: Tensor): Tensor => sin(x);
    const wanted = [Math.cos(0.7), -Math.sin(0.7), -Math.cos(0.7), Math.sin(0.7)];
    for (const value of wanted) {
      const inner = f;
      f = (x: Tensor) => grad(inner)(x);
      await near(f(scalar(0.7)), [value]);
    }
  });

  it('keeps levels apart: d/dx x d/dy (x y) is not confused', async () => {
    // d/dx [x * d/dy (x + y)] at 1 is 1; a confused implementation says 2.
    const f = (x: Tensor): Tensor => mul(x, grad((y: Tensor) => add(x, y))(scalar(1)));
    await near(grad(f)(scalar(1)), [1]);
  });

  it('treats what was computed before as constant', async () => {
    const x = scalar(3);
    const y = mul(x, 2);
    await near(grad((t: Tensor) => mul(t, y))(x), [6]);
  });

  it('differentiates by trees and by chosen arguments', async () => {
    const f = (p: { w: Tensor; b: [Tensor] }, x: Tensor): Tensor => sum(add(mul(p.w, x), p.b[0]));
    const parameters = { w: vector(1, 2), b: [vector(3, 4)] as [Tensor] };
    const byTree = grad(f)(parameters, vector(5, 6));
    await near(byTree.w, [5, 6]);
    await near(byTree.b[0], [1, 1]);
    await near(grad(f, { argnums: 1 })(parameters, vector(5, 6)), [1, 2]);
    const [both, x] = grad(f, { argnums: [0, 1] })(parameters, vector(5, 6));
    await near(both.w, [5, 6]);
    await near(x, [1, 2]);
  });

  it('tells the same tensor in two arguments apart', async () => {
    const x = vector(2, 3);
    const [a, b] = grads((p: Tensor, q: Tensor) => sum(mul(mul(p, p), q)))(x, x);
    await near(a, [8, 18]);
    await near(b, [4, 9]);
  });

  it('gives zeros where the result does not depend on an argument', async () => {
    await near(grad((_: Tensor) => scalar(1))(vector(1, 2)), [0, 0]);
  });

  it('returns value and other results', async () => {
    const [[value, doubled], slope] = valueAndGrad((x: Tensor): [Tensor, Tensor] => [sum(mul(x, x)), mul(x, 2)], {
      hasAux: true,
    })(vector(1, 2));
    await near(value, [5]);
    await near(doubled, [2, 4]);
    await near(slope, [2, 4]);
  });

  it('says what is wrong', () => {
    expect(() => grad((x: Tensor) => x)(vector(1, 2))).toThrow(/\[grad\].*\[2\].*sum\(\)/);
    expect(() => grad((x: Tensor) => sum(x))(tensor([1], { dtype: 'int32' }))).toThrow(/\[grad\].*int32/);
    expect(() => grad((x: Tensor) => sum(x), { argnums: 3 })(vector(1))).toThrow(/\[grad\].*3/);
    for (const argnums of [null, { 0: 1 }, new Map()])
      for (const make of [grad, valueAndGrad, jacobian, hessian])
        expect(() => make((x: Tensor) => sum(x), { argnums: argnums as never })).toThrow(
          /bad argnums: .*such as \[0, 1\]/,
        );
    expect(() => grad((() => 1) as unknown as (x: Tensor) => Tensor)(vector(1))).toThrow(
      '[grad] the function returned 1: it must return a tensor',
    );
  });

  it('works when every operation is flushed at once', async () => {
    setEager(true);
    try {
      const f = (w: Tensor): Tensor => sum(tanh(matmul(w, w)));
      const w = tensor(
        [
          [0.1, 0.2],
          [0.3, -0.4],
        ],
        { dtype: 'float64' },
      );
      const eager = await read(grad((x: Tensor) => sum(mul(grad(f)(x), x)))(w));
      setEager(false);
      await near(grad((x: Tensor) => sum(mul(grad(f)(x), x)))(w), eager);
    } finally {
      setEager(false);
    }
  });

  it('leaves no buffers behind', async () => {
    flush();
    const before = memory().numBuffers;
    const x = vector(1, 2);
    const g = grad((t: Tensor) => sum(exp(mul(t, t))))(x);
    await g.data();
    expect(memory().numBuffers - before).toBe(2);
    g.dispose();
    x.dispose();
    expect(memory().numBuffers).toBe(before);
  });
});

describe('products', () => {
  const f = (x: Tensor, y: Tensor): Tensor => mul(sin(x), y);

  it('vjp', async () => {
    const [value, [gx, gy]] = vjp(f, [vector(1, 2), vector(3, 4)], vector(10, 100));
    await near(value, [3 * Math.sin(1), 4 * Math.sin(2)]);
    await near(gx, [30 * Math.cos(1), 400 * Math.cos(2)]);
    await near(gy, [10 * Math.sin(1), 100 * Math.sin(2)]);
  });

  it('jvp', async () => {
    const [value, change] = jvp(f, [vector(1, 2), vector(3, 4)], [vector(1, 0), vector(0, 10)]);
    await near(value, [3 * Math.sin(1), 4 * Math.sin(2)]);
    await near(change, [3 * Math.cos(1), 10 * Math.sin(2)]);
  });

  it('jvp inside grad', async () => {
    // d/dx of (d/dx sin x) = -sin x.
    await near(grad((x: Tensor) => jvp((t: Tensor) => sin(t), [x], [scalar(1)])[1])(scalar(0.3)), [-Math.sin(0.3)]);
  });

  it('jacobian and hessian', async () => {
    const j = jacobian((x: Tensor) =>
      matmul(
        tensor(
          [
            [1, 2],
            [3, 4],
            [5, 6],
          ],
          { dtype: 'float64' },
        ),
        mul(x, x),
      ),
    )(vector(1, 10));
    expect(j.shape).toEqual([3, 2]);
    await near(j, [2, 40, 6, 80, 10, 120]);
    const h = hessian((x: Tensor) => sum(mul(mul(x, x), sum(x))))(vector(1, 2));
    await near(h, [10, 6, 6, 14]);
  });

  it('hvp is the Hessian times a vector', async () => {
    const [product] = hvp((x: Tensor) => sum(mul(mul(x, x), sum(x))), [vector(1, 2)], [vector(1, -1)]);
    await near(product, [4, -8]);
  });
});

describe('gradCheck', () => {
  it('accepts right gradients and names wrong ones', async () => {
    expect(await gradCheck((x, y) => mul(cos(x), y), [vector(1, 2), vector(3, 4)])).toBe(true);
    const wrong = customGradient(
      (x) => mul(x, x),
      (g) => g,
    );
    await expect(gradCheck((x) => wrong(x), [vector(1, 2)])).rejects.toThrow(
      /\[gradCheck\].*element 0 of input 0|\[gradCheck\].*element 1/,
    );
  });

  it('masks are constants', async () => {
    await near(grad((x: Tensor) => sum(where(x.greater(0), x, 0)))(vector(1, -1)), [1, 0]);
  });
});

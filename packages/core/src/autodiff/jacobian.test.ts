/** jacobian, hessian, hvp and jvp over structures, several arguments and awkward functions; kernel counts on the null engine. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  argMax,
  floor,
  flush,
  grad,
  grads,
  hessian,
  hvp,
  jacobian,
  jvp,
  matmul,
  mul,
  prod,
  rand,
  setEngine,
  sin,
  sum,
  type Tensor,
  tanh,
  tensor,
  valueAndGrad,
  vjp,
} from '../index.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { near as nearValues, vector } from './fixtures/vectors.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

async function near(t: Tensor, shape: readonly number[], expected: readonly number[]): Promise<void> {
  expect(t.shape).toEqual(shape);
  await nearValues(t, expected);
}

describe('jacobian', () => {
  it('goes forward for few arguments, backward for few results, with the same entries', async () => {
    const a = tensor(
      [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
      { dtype: 'float64' },
    );
    await near(jacobian((x: Tensor) => matmul(a, mul(x, x)))(vector(1, 10)), [3, 2], [2, 40, 6, 80, 10, 120]);
    await near(jacobian((x: Tensor) => matmul(mul(x, x), a))(vector(1, 10, 2)), [2, 3], [2, 60, 20, 4, 80, 24]);
  });

  it('gives every tensor of the result the structure of the argument', async () => {
    const f = (p: { a: Tensor; b: [Tensor] }): { sum: Tensor; parts: Tensor[] } => ({
      sum: sum(mul(p.a, p.b[0])),
      parts: [mul(p.a, 2), p.b[0]],
    });
    const j = jacobian(f)({ a: vector(1, 2), b: [vector(3, 4)] });
    await near(j.sum.a, [2], [3, 4]);
    await near(j.sum.b[0], [2], [1, 2]);
    await near((j.parts[0] as typeof j.sum).a, [2, 2], [2, 0, 0, 2]);
    await near((j.parts[0] as typeof j.sum).b[0], [2, 2], [0, 0, 0, 0]);
    await near((j.parts[1] as typeof j.sum).b[0], [2, 2], [1, 0, 0, 1]);
  });

  it('takes several arguments, and has zeros where there is nothing to differentiate', async () => {
    const f = (x: Tensor, _: Tensor, z: Tensor): [Tensor, Tensor] => [mul(x, z), argMax(x)];
    const [[byX, byUnused], [ofIndex]] = jacobian(f, { argnums: [0, 1] })(vector(1, 2), vector(7), vector(3, 4)) as [
      [Tensor, Tensor],
      [Tensor, Tensor],
    ];
    await near(byX, [2, 2], [3, 0, 0, 4]);
    await near(byUnused, [2, 1], [0, 0]);
    await near(ofIndex, [2], [0, 0]);
    await near(jacobian((x: Tensor) => floor(x))(vector(1.5, 2)), [2, 2], [0, 0, 0, 0]);
    expect(jacobian((x: Tensor) => x)(vector()).shape).toEqual([0, 0]);
    expect(() => jacobian((x: Tensor) => x)(tensor([1], { dtype: 'int32' }))).toThrow(/\[jacobian\].*int32/);
    expect(() => jacobian((x: Tensor) => x, { argnums: 2 })(vector(1))).toThrow(/\[jacobian\].*2.*argnums/);
  });

  it('nests', async () => {
    // All third derivatives of x0^2 x1 that are not zero are 2.
    const f = (x: Tensor): Tensor => prod(mul(x, tensor([1, 1], { dtype: 'float64' }))).mul(x.select(0, 0));
    const third = jacobian(jacobian(jacobian(f)))(vector(3, 5));
    await near(third, [2, 2, 2], [0, 2, 2, 0, 2, 0, 0, 0]);
    await near(grad((x: Tensor) => sum(jacobian((t: Tensor) => sin(t))(x)))(vector(0.3)), [1], [-Math.sin(0.3)]);
  });

  it('takes as many kernels for many results as for few', async () => {
    const engine = createNullEngine();
    await setEngine(engine);
    const counts = [8, 64].map((n) => {
      const weights = rand([n, n]);
      const x = rand([n]);
      flush();
      engine.reset();
      const j = jacobian((t: Tensor) => tanh(matmul(weights, tanh(matmul(weights, t)))))(x);
      flush();
      expect(j.shape).toEqual([n, n]);
      return engine.counts().dispatches;
    });
    expect(Math.max(...counts)).toBeLessThanOrEqual(8);
    await setEngine(createReferenceEngine());
  });
});

describe('hessian and hvp', () => {
  const f = (x: Tensor, y: Tensor): Tensor => sum(mul(mul(x, x), y));

  it('has a block for every pair of arguments', async () => {
    const [[xx, xy], [yx, yy]] = hessian(f, { argnums: [0, 1] })(vector(1, 2), vector(3, 4)) as [
      [Tensor, Tensor],
      [Tensor, Tensor],
    ];
    await near(xx, [2, 2], [6, 0, 0, 8]);
    await near(xy, [2, 2], [2, 0, 0, 4]);
    await near(yx, [2, 2], [2, 0, 0, 4]);
    await near(yy, [2, 2], [0, 0, 0, 0]);
    await near(hessian(f, { argnums: 1 })(vector(1, 2), vector(3, 4)), [2, 2], [0, 0, 0, 0]);
    expect(() => hessian((x: Tensor) => x)(vector(1, 2))).toThrow(/\[hessian\].*one floating-point element/);
  });

  it('hvp over structures is the Hessian times a vector', async () => {
    const g = (p: { a: Tensor; b: Tensor[] }): Tensor => f(p.a, p.b[0] as Tensor);
    const [product] = hvp(g, [{ a: vector(1, 2), b: [vector(3, 4)] }], [{ a: vector(1, 10), b: [vector(100, 1000)] }]);
    await near(product.a, [2], [6 + 200, 80 + 4000]);
    await near(product.b[0] as Tensor, [2], [2, 40]);
    expect(() => hvp((x: Tensor) => x, [vector(1, 2)], [vector(1, 2)])).toThrow(/\[hvp\]/);
  });
});

describe('jvp, vjp and gradients of structures', () => {
  it('gives changes in the structure of the result, zeros for integers', async () => {
    const [value, change] = jvp(
      (p: { x: Tensor }) => ({ y: [mul(p.x, p.x)], i: argMax(p.x) }),
      [{ x: vector(1, 3) }],
      [{ x: vector(1, 10) }],
    );
    await near(value.y[0] as Tensor, [2], [1, 9]);
    await near(change.y[0] as Tensor, [2], [2, 60]);
    expect([change.i.dtype, await change.i.item()]).toEqual(['int32', 0]);
    await near(jvp(() => vector(5), [vector(1)] as never, [vector(1)] as never)[1], [1], [0]);
  });

  it('nests forward in forward and forward in backward', async () => {
    const one = (x: Tensor): Tensor => tensor(1, { dtype: x.dtype });
    const d = (f: (x: Tensor) => Tensor) => (x: Tensor) => jvp(f, [x], [one(x)])[1];
    const cube = (x: Tensor): Tensor => mul(x, mul(x, x));
    await near(d(d(cube))(tensor(2, { dtype: 'float64' })), [], [12]);
    await near(d(d(d(cube)))(tensor(2, { dtype: 'float64' })), [], [6]);
    await near(grad((x: Tensor) => d(cube)(x))(tensor(2, { dtype: 'float64' })), [], [12]);
    await near(d(grad(cube))(tensor(2, { dtype: 'float64' })), [], [12]);
    // Perturbations of two levels are not confused: d/dx (x * d/dy (x + y)) = 1.
    await near(d((x) => mul(x, d((y) => x.add(y))(one(x))))(tensor(1, { dtype: 'float64' })), [], [1]);
  });

  it('refuses integers and wrong shapes, and gives zeros for what is not used', async () => {
    const ints = tensor([1, 2], { dtype: 'int32' });
    expect(() => jvp((x: Tensor) => x, [ints], [ints])).toThrow(/\[jvp\].*int32/);
    expect(() => jvp((x: Tensor) => x, [vector(1, 2)], [vector(1)])).toThrow(/\[jvp\].*\[2\].*\[1\]/);
    expect(() => vjp((x: Tensor) => x, [vector(1, 2)], vector(1))).toThrow(/\[vjp\].*\[2\].*\[1\]/);
    expect(() => grads((x: Tensor, _: Tensor) => sum(x))(vector(1), ints)).toThrow(/\[grads\].*int32.*argnums/);
    const [, unused] = grads((x: Tensor, _: { y: Tensor }) => sum(x))(vector(1), { y: vector(2, 3) });
    await near(unused.y, [2], [0, 0]);
    const [value, [byX, byTree]] = valueAndGrad((x: Tensor, t: { w: Tensor[] }) => sum(mul(x, t.w[0] as Tensor)), {
      argnums: [0, 1],
    })(vector(2), { w: [vector(5)] });
    await near(value, [], [10]);
    await near(byX, [1], [5]);
    await near(byTree.w[0] as Tensor, [1], [2]);
  });
});

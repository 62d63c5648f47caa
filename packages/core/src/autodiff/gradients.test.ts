/** Gradient functions, tapes and backward() as users call them, on the reference engine. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  add,
  checkpoint,
  cos,
  customGradient,
  exp,
  flush,
  gradCheck,
  GradientTape,
  grad,
  grads,
  hessian,
  hvp,
  jacobian,
  jvp,
  log,
  matmul,
  memory,
  mul,
  noGrad,
  ones,
  scope,
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
import { createReferenceEngine } from '../testing/index.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

const vector = (...values: number[]): Tensor => tensor(values, { dtype: 'float64' });
const scalar = (value: number): Tensor => tensor(value, { dtype: 'float64' });
const read = async (t: Tensor): Promise<number[]> => Array.from((await t.data()) as Float64Array);

async function near(t: Tensor, expected: readonly number[]): Promise<void> {
  const actual = await read(t);
  expect(actual.length).toBe(expected.length);
  expected.forEach((value, i) => {
    expect(actual[i]).toBeCloseTo(value, 10);
  });
}

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
    expect(() => grad((() => 1) as unknown as (x: Tensor) => Tensor)(vector(1))).toThrow(/\[grad\].*number/);
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

describe('customGradient and checkpoint', () => {
  it('uses the rule given, at second order too', async () => {
    // log(1 + e^x) with its stable derivative.
    const softplus = customGradient(
      (x) => log(exp(x).add(1)),
      (g, { inputs: [x] }) => mul(g, exp(x as Tensor).div(exp(x as Tensor).add(1))),
    );
    const s = 1 / (1 + Math.exp(-0.5));
    await near(grad((x: Tensor) => softplus(x))(scalar(0.5)), [s]);
    await near(grad((x: Tensor) => grad((t: Tensor) => softplus(t))(x))(scalar(0.5)), [s * (1 - s)]);
  });

  it('at every order, backward and forward, where the rule uses the result', async () => {
    const own = customGradient(
      (x) => exp(x),
      (g, { output }) => mul(g, output),
    );
    let f = (x: Tensor): Tensor => own(mul(x, 2));
    for (let order = 1; order <= 4; order++) {
      const inner = f;
      f = order % 2 === 0 ? (x) => jvp(inner, [x], [scalar(1)])[1] : (x) => grad(inner)(x);
      await near(f(scalar(0.3)), [2 ** order * Math.exp(0.6)]);
    }
  });

  it('works with backward and several inputs', async () => {
    const f = customGradient(
      (a, b) => mul(a, b),
      (g) => [mul(g, 100), null],
    );
    const a = tensor([1, 2], { requiresGrad: true });
    const b = tensor([3, 4], { requiresGrad: true });
    sum(f(a, b)).backward();
    expect(await read(a.grad as Tensor)).toEqual([100, 100]);
    expect(b.grad).toBeNull();
  });

  it('checks what the rule returns', () => {
    const f = customGradient(
      (a) => a,
      () => [null, null],
    );
    expect(() => grad((x: Tensor) => sum(f(x)))(vector(1))).toThrow(/\[customGradient\].*2/);
    const g = customGradient(
      (a) => a,
      () => ones([3]),
    );
    expect(() => grad((x: Tensor) => sum(g(x)))(vector(1))).toThrow(/\[customGradient\].*\[3\].*\[1\]/);
  });

  it('checkpoint gives the same gradients', async () => {
    const f = (x: Tensor): Tensor => sum(tanh(mul(x, x)));
    const direct = await read(grad(f)(vector(0.5, 1)));
    await near(grad((x: Tensor) => checkpoint(f, x))(vector(0.5, 1)), direct);
  });
});

describe('GradientTape', () => {
  it('follows watched tensors and requiresGrad leaves', async () => {
    const x = vector(1, 2);
    const w = tensor([3, 4], { dtype: 'float64', requiresGrad: true });
    const tape = new GradientTape();
    tape.watch(x);
    const y = sum(mul(mul(x, x), w));
    const g = tape.gradient(y, { x, w });
    await near(g.x, [6, 16]);
    await near(g.w, [1, 4]);
    expect(() => tape.gradient(y, x)).toThrow(/\[gradient\].*ended/);
  });

  it('gives gradients by intermediate values, and several times when persistent', async () => {
    using tape = new GradientTape({ persistent: true });
    const x = vector(2);
    tape.watch(x);
    const y = mul(x, x);
    const z = sum(mul(y, y));
    await near(tape.gradient(z, y), [8]);
    await near(tape.gradient(z, x), [32]);
    await near(tape.gradient(y, [x])[0] as Tensor, [4]);
  });

  it('nests, and with createGraph differentiates its own gradients', async () => {
    const x = scalar(3);
    const outer = new GradientTape();
    outer.watch(x);
    const inner = new GradientTape();
    inner.watch(x);
    const slope = inner.gradient(mul(mul(x, x), x), x);
    await near(outer.gradient(slope, x), [18]);

    using tape = new GradientTape({ persistent: true });
    tape.watch(x);
    const first = tape.gradient(mul(mul(x, x), x), x, { createGraph: true });
    await near(tape.gradient(first, x), [18]);
  });

  it('does not see what happens under stopRecording and noGrad, and survives a flush', async () => {
    const x = vector(1, 2);
    const tape = new GradientTape();
    tape.watch(x);
    const constant = tape.stopRecording(() => mul(x, 10));
    const other = noGrad(() => mul(x, 10));
    const y = sum(mul(add(constant, other), x));
    await y.data();
    await near(tape.gradient(y, x), [20, 40]);
  });

  it('ends with its scope', () => {
    const tape = scope(() => {
      const inner = new GradientTape();
      return { inner };
    });
    expect(tape.inner.disposed).toBe(true);
  });
});

describe('backward', () => {
  it('adds up in the leaves', async () => {
    const w = tensor([1, 2], { requiresGrad: true });
    sum(mul(w, w)).backward();
    expect(await read(w.grad as Tensor)).toEqual([2, 4]);
    sum(mul(w, 3)).backward();
    expect(await read(w.grad as Tensor)).toEqual([5, 7]);
    w.grad = null;
    expect(w.grad).toBeNull();
    sum(w).backward();
    expect(await read(w.grad as unknown as Tensor)).toEqual([1, 1]);
  });

  it('works after the loss was read', async () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const loss = sum(exp(mul(w, w)));
    await loss.item();
    loss.backward();
    const g = await read(w.grad as Tensor);
    expect(g[0]).toBeCloseTo(2 * Math.E, 4);
  });

  it('keeps a leaf a leaf through assign, and its gradient', async () => {
    const w = tensor([1, 2], { requiresGrad: true });
    sum(mul(w, w)).backward();
    w.assign(w.sub((w.grad as Tensor).mul(0.5)));
    expect(w.requiresGrad).toBe(true);
    expect(await read(w)).toEqual([0, 0]);
    expect(await read(w.grad as Tensor)).toEqual([2, 4]);
    w.grad = null;
    sum(w).backward();
    expect(await read(w.grad as unknown as Tensor)).toEqual([1, 1]);
  });

  it('refuses a released graph, also where it meets something new', () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const h = exp(w);
    sum(h).backward();
    expect(() => sum(h).backward()).toThrow(/\[backward\]/);
    expect(() => sum(mul(h, w)).backward()).toThrow(/released/);
    const again = exp(w);
    sum(again).backward({ retainGraph: true });
    sum(again).backward();
  });

  it('builds a graph of gradients on request', async () => {
    const w = tensor([3], { requiresGrad: true });
    sum(mul(mul(w, w), w)).backward({ createGraph: true });
    const first = w.grad as Tensor;
    expect(first.requiresGrad).toBe(true);
    sum(first).backward();
    // 27 stays in the slot, 18 is added.
    expect(await read(w.grad as Tensor)).toEqual([45]);
  });

  it('starts from a given gradient', async () => {
    const w = tensor([1, 2], { requiresGrad: true });
    mul(w, w).backward({ gradient: tensor([1, 10]) });
    expect(await read(w.grad as Tensor)).toEqual([2, 40]);
  });

  it('says what is wrong', () => {
    expect(() => ones([1]).backward()).toThrow(/\[backward\].*no leaf/);
    expect(() => tensor([1, 2], { requiresGrad: true }).backward()).toThrow(/\[backward\].*\[2\]/);
    expect(() => tensor([1], { dtype: 'int32', requiresGrad: true })).toThrow(/int32/);
    expect(() => {
      ones([1]).grad = ones([1]);
    }).toThrow(/\[grad\]/);
  });

  it('holds buffers flat over a naive loop', async () => {
    const w = tensor([1, 2, 3], { requiresGrad: true });
    const step = async (): Promise<void> => {
      const loss = scope(() => sum(mul(w, w)));
      loss.backward();
      scope(() => {
        w.assign(w.sub((w.grad as Tensor).mul(0.1)));
      });
      w.grad = null;
      await loss.item();
      loss.dispose();
    };
    await step();
    const before = memory().numBuffers;
    for (let i = 0; i < 20; i++) await step();
    expect(memory().numBuffers).toBe(before);
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

/** vmap against single calls, nested with itself and with gradient functions, on the reference engine. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  add,
  batchNorm,
  bernoulli,
  checkpoint,
  conv2d,
  crossEntropy,
  customGradient,
  dropout,
  embedding,
  exp,
  flush,
  grad,
  hessian,
  jacobian,
  jvp,
  keep,
  matmul,
  memory,
  mul,
  noGrad,
  permutation,
  rand,
  randn,
  relu,
  scan,
  scope,
  seed,
  setEager,
  setEngine,
  setPendingLimits,
  sin,
  stack,
  sum,
  type Tensor,
  tanh,
  tensor,
  vmap,
  zeros,
} from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { read } from './fixtures/vectors.ts';

let xs: Tensor;
let w: Tensor;

beforeAll(async () => {
  await setEngine(createReferenceEngine());
  xs = float64([
    [0.1, -0.2, 0.3],
    [0.5, 0.4, -0.6],
  ]);
  w = float64([
    [1, 2],
    [3, -4],
    [0.5, 6],
  ]);
});

const float64 = (values: readonly (number | readonly (number | readonly number[])[])[]): Tensor =>
  tensor(values as number[], { dtype: 'float64' });

async function same(a: Tensor, b: Tensor): Promise<void> {
  expect(a.shape).toEqual(b.shape);
  const [x, y] = [await read(a), await read(b)];
  x.forEach((value, i) => {
    expect(value).toBeCloseTo(y[i] as number, 10);
  });
}

/** The results of single calls, stacked. */
const loop = (f: (x: Tensor) => Tensor, xs: Tensor): Tensor => stack(xs.unbind(0).map(f), 0);

describe('vmap', () => {
  it('equals single calls', async () => {
    const f = (x: Tensor): Tensor => tanh(matmul(x, w)).softmax(0);
    await same(vmap(f)(xs), loop(f, xs));
  });

  it('takes and gives other axes, trees, and arguments that all examples share', async () => {
    const f = (p: { a: Tensor; b: Tensor[] }, scale: number, shared: Tensor): { y: Tensor; all: Tensor } => ({
      y: mul(add(p.a, p.b[0] as Tensor), scale),
      all: sum(shared),
    });
    const shared = float64([1, 2]);
    const { y, all } = vmap(f, { inAxes: [{ a: 1, b: [0] }, null, null], outAxes: { y: 1, all: null } })(
      { a: xs, b: [float64([10, 20, 30])] },
      2,
      shared,
    );
    // xs along axis 1 is three examples of two numbers.
    expect(y.shape).toEqual([2, 3]);
    const wanted = [20.2, 39.6, 60.6, 21, 40.8, 58.8];
    (await read(y)).forEach((value, i) => {
      expect(value).toBeCloseTo(wanted[i] as number, 12);
    });
    expect(await read(all)).toEqual([3]);
    expect((await read(vmap((x: Tensor) => [x, sum(shared)])(xs)[1] as Tensor)).join()).toBe('3,3');
  });

  it('nests', async () => {
    const outer = vmap((x: Tensor) => vmap((y: Tensor) => sum(mul(x, y)), { inAxes: 1 })(w), {})(xs);
    await same(outer, matmul(xs, w));
  });

  it('gives gradients per example', async () => {
    const loss = (weights: Tensor, x: Tensor): Tensor => sum(tanh(matmul(x, weights)));
    const perExample = vmap(grad(loss), { inAxes: [null, 0] })(w, xs);
    expect(perExample.shape).toEqual([2, 3, 2]);
    await same(
      perExample,
      loop((x) => grad(loss)(w, x), xs),
    );
    const third = (x: Tensor): Tensor =>
      grad((a: Tensor) => sum(grad((b: Tensor) => sum(mul(sin(b), mul(b, b))))(a)))(x);
    await same(vmap(third)(xs), loop(third, xs));
  });

  it('is differentiated like single calls', async () => {
    const f = (weights: Tensor): Tensor => sum(vmap((x: Tensor) => tanh(matmul(x, weights)).prod())(xs));
    const g = (weights: Tensor): Tensor => sum(loop((x) => tanh(matmul(x, weights)).prod(), xs));
    await same(grad(f)(w), grad(g)(w));
    const second = (h: (t: Tensor) => Tensor) => grad((t: Tensor) => sum(mul(grad(h)(t), t)));
    await same(second(f)(w), second(g)(w));
    const h = (x: Tensor): Tensor => vmap((row: Tensor) => mul(row, sum(row)))(x);
    await same(jvp(h, [xs], [xs])[1], mul(h(xs), 2));
    const leaf = tensor([1, 2, 3], { requiresGrad: true });
    sum(
      vmap((row: Tensor) => mul(row, leaf))(
        tensor([
          [1, 1, 1],
          [2, 2, 2],
        ]),
      ),
    ).backward();
    expect(await read(leaf.grad as Tensor)).toEqual([3, 3, 3]);
  });

  it('batches jacobians and hessians', async () => {
    const f = (x: Tensor): Tensor => mul(sin(x), sum(x));
    await same(vmap(jacobian(f))(xs), loop(jacobian(f), xs));
    const s = (x: Tensor): Tensor => sum(exp(f(x)));
    await same(vmap(hessian(s))(xs), loop(hessian(s), xs));
  });

  it('takes convolutions, losses and tables apart by example', async () => {
    const images = randn([3, 2, 1, 5, 5], { key: 1, dtype: 'float64' });
    const kernel = randn([2, 1, 3, 3], { key: 2, dtype: 'float64' });
    const loss = (k: Tensor, x: Tensor): Tensor => sum(relu(conv2d(x, k, { padding: 1, stride: 2 })));
    await same(
      vmap(grad(loss), { inAxes: [null, 0] })(kernel, images),
      loop((x) => grad(loss)(kernel, x), images),
    );
    const table = randn([4, 3], { key: 3, dtype: 'float64' });
    const words = tensor(
      [
        [0, 2, 2],
        [3, 1, 0],
      ],
      { dtype: 'int32' },
    );
    const labels = tensor(
      [
        [1, 0, 2],
        [2, 2, 1],
      ],
      { dtype: 'int32' },
    );
    const ce = (t: Tensor, i: Tensor, l: Tensor): Tensor => crossEntropy(embedding(i, t), l);
    const [first, second] = vmap(grad(ce), { inAxes: [null, 0, 0] })(table, words, labels).unbind(0) as [
      Tensor,
      Tensor,
    ];
    await same(first, grad(ce)(table, words.select(0, 0), labels.select(0, 0)));
    await same(second, grad(ce)(table, words.select(0, 1), labels.select(0, 1)));
  });

  it('follows gradients given by the user, and checkpoints', async () => {
    const clipped = customGradient(
      (x) => exp(x),
      (g, { inputs: [x], output }) => mul(mul(g, output), mul(x as Tensor, 10)),
    );
    const f = (x: Tensor): Tensor => sum(clipped(mul(x, x)));
    await same(vmap(grad(f))(xs), loop(grad(f), xs));
    const total = (x: Tensor): Tensor => sum(vmap((row: Tensor) => clipped(mul(row, row)))(x));
    await same(grad(total)(xs), grad((x: Tensor) => sum(clipped(mul(x, x))))(xs));
    const second = (h: (t: Tensor) => Tensor) => grad((t: Tensor) => sum(mul(grad(h)(t), t)));
    await same(second(total)(xs), second((x: Tensor) => sum(clipped(mul(x, x))))(xs));
    const deep = (x: Tensor): Tensor => checkpoint((t) => sum(tanh(mul(t, t))), x);
    await same(vmap(grad(deep))(xs), loop(grad(deep), xs));
    await same(grad((x: Tensor) => sum(vmap(deep)(x)))(xs), loop(grad(deep), xs));
  });

  it('takes what noGrad computes as a constant', async () => {
    const x = tensor([
      [1, 2],
      [3, 4],
    ]);
    const held = (row: Tensor): Tensor =>
      noGrad(() => row.square())
        .mul(row)
        .sum();
    // The gradient of c x with c = x^2, not that of x^3.
    expect(await grad((t: Tensor) => vmap(held)(t).sum())(x).array()).toEqual([
      [1, 4],
      [9, 16],
    ]);
    const [, change] = jvp(
      vmap(held),
      [x],
      [
        tensor([
          [1, 1],
          [1, 1],
        ]),
      ],
    );
    expect(await change.array()).toEqual([5, 25]);
    // As one that escapes through a variable, in batches of batches, and from loops.
    const outer = (rows: Tensor): Tensor =>
      vmap((row: Tensor) => {
        let c = row;
        noGrad(() => {
          c = scan((sum: Tensor, v: Tensor) => [sum.add(v.square()), null], zeros([]), row)[0];
        });
        return c.mul(row).sum();
      })(rows).sum();
    const deep = tensor(
      [x, x.add(1)].map((t) => t.dataSync()).flatMap((t) => [...t]),
      { shape: [2, 2, 2] },
    );
    expect(await grad((t: Tensor) => vmap(outer)(t).sum())(deep).array()).toEqual([
      [
        [5, 5],
        [25, 25],
      ],
      [
        [13, 13],
        [41, 41],
      ],
    ]);
  });

  it('draws numbers of its own for every example, unless a key is given', async () => {
    const noise = vmap((x: Tensor) => add(x, rand([1000])), {})(tensor([0, 0]));
    const [a, b] = noise.unbind(0) as [Tensor, Tensor];
    expect(await read(a)).not.toEqual(await read(b));
    const keyed = vmap((x: Tensor) => add(x, rand([4], { key: 5 })))(tensor([0, 0]));
    const once = await read(rand([4], { key: 5 }));
    expect(await read(keyed)).toEqual([...once, ...once]);
    seed(1);
    const masks = vmap((x: Tensor) => dropout(x, { p: 0.5 }))(tensor([new Array(50).fill(1), new Array(50).fill(1)]));
    const [m, n] = masks.unbind(0) as [Tensor, Tensor];
    expect(await read(m)).not.toEqual(await read(n));
    const chances = vmap((x: Tensor) => bernoulli(x, [100]))(tensor([0, 1]));
    expect((await read(sum(chances, 1))).join()).toBe('0,100');
    expect(() => vmap((x: Tensor) => permutation(x))(xs)).toThrow(/\[permutation\].*vmap.*key/);
  });

  it('says what is wrong', async () => {
    expect(() => vmap((x: Tensor) => x)(tensor(1))).toThrow(/\[vmap\].*axis/);
    expect(() => vmap((x: Tensor) => x, { inAxes: null })(xs)).toThrow(/\[vmap\].*nothing is batched/);
    expect(() => vmap((x: Tensor, y: Tensor) => add(x, y))(xs, w)).toThrow(/\[vmap\].*2.*3.*equal/);
    expect(() => vmap((x: Tensor) => x, { outAxes: null })(xs)).toThrow(/\[vmap\].*outAxes/);
    expect(() => vmap((x: Tensor) => x, { inAxes: [[0]] })(xs)).toThrow(/\[vmap\].*inAxes/);
    expect(() => vmap((x: { a: Tensor }) => x.a, { inAxes: [{ b: 0 }] as never })({ a: xs })).toThrow(/no entry 'a'/);
    expect(() => vmap((x: Tensor) => mul(x, x.itemSync()))(float64([1, 2]))).toThrow(/\[vmap\].*example inside vmap/);
    const leaf = tensor([1, 2, 3], { dtype: 'float64', requiresGrad: true });
    expect(() => vmap((x: Tensor) => sum(mul(x, leaf)).backward())(xs)).toThrow(/\[backward\].*inside vmap.*grad\(\)/);
    expect(() => vmap((async (x: Tensor) => x) as never)(xs as never)).toThrow(/\[vmap\].*promise/);
    flush();
  });

  it('refuses what would let an example out, and leaves nothing behind', async () => {
    const b = float64([1, 2, 3]);
    let kept: Tensor | undefined;
    const statistics = { training: true, runningMean: float64([0]), runningVar: float64([1]) };
    const attempts: [(x: Tensor) => Tensor, RegExp][] = [
      [(x) => b.assign(x), /\[assign\].*example inside vmap.*float64 \[3\] from outside/],
      [(x) => b.assign(mul(b, sum(x))), /\[assign\].*example inside vmap/],
      [(x) => (kept = keep(mul(x, 2))), /\[keep\].*example inside vmap/],
      [(x) => batchNorm(x.reshape([3, 1]), statistics), /\[batchNorm\].*running statistics/],
    ];
    for (const [f, message] of attempts) {
      expect(() => vmap(f)(xs)).toThrow(message);
      flush();
      expect(await read(scope(() => add(b, 1)))).toEqual([2, 3, 4]);
    }
    expect(kept).toBeUndefined();
    expect([await read(statistics.runningMean), await read(statistics.runningVar)]).toEqual([[0], [1]]);
    // Between two of them: the outer function has one value, the inner one would give it several.
    const nested = vmap((x: Tensor) => {
      const total = mul(x, 2);
      return vmap((y: Tensor) => total.assign(mul(y, x)))(xs);
    });
    expect(() => nested(xs)).toThrow(/\[assign\]/);
    flush();
  });

  it('lets tensors made inside, and examples, be assigned', async () => {
    const doubled = vmap((x: Tensor) => {
      const total = zeros([3], { dtype: 'float64' });
      total.assign(add(total, x));
      x.assign(mul(x, 10));
      return total.add(x);
    })(xs);
    expect(await read(doubled)).toEqual(await read(mul(xs, 11)));
    const count = float64([0]);
    vmap((x: Tensor) => {
      count.assign(add(count, 1));
      return x;
    })(xs);
    expect(await read(count)).toEqual([1]);
    flush();
  });

  it.each([
    ['every operation is computed at once', () => setEager(true), () => setEager(false)],
    ['every node is one too many', () => setPendingLimits({ nodes: 1 }), () => setPendingLimits({ nodes: 4096 })],
  ])('flushes nothing before its function has returned: %s', async (_, on, off) => {
    on();
    try {
      const nested = vmap((x: Tensor) => vmap((y: Tensor) => mul(x, y), { inAxes: 0 })(xs));
      expect((await nested(xs).array()) as unknown).toEqual(await mul(xs.reshape([-1, 1, 3]), xs).array());
      expect(await read(vmap(grad((x: Tensor) => sum(mul(x, x))))(xs))).toEqual(await read(mul(xs, 2)));
    } finally {
      off();
    }
  });

  it('takes an empty batch', () => {
    expect(vmap((x: Tensor) => matmul(x, w))(float64([]).reshape([0, 3])).shape).toEqual([0, 2]);
  });

  it('leaves no buffers behind', async () => {
    // What the tests above have left to the collector is on another engine.
    await setEngine(createReferenceEngine());
    using x = float64([
      [0.1, -0.2, 0.3],
      [0.5, 0.4, -0.6],
    ]);
    await x.data();
    const before = memory().numBuffers;
    expect(before).toBe(1);
    const g = vmap(grad((row: Tensor) => sum(exp(mul(row, row)))))(x);
    await g.data();
    g.dispose();
    expect(memory().numBuffers).toBe(before);
  });
});

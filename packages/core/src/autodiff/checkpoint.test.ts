/** checkpoint: what it saves (null engine), and that nothing else changes (reference engine). */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  add,
  argMax,
  checkpoint,
  dropout,
  embedding,
  exp,
  flush,
  GradientTape,
  grad,
  grads,
  jvp,
  matmul,
  memory,
  mul,
  noGrad,
  rand,
  relu,
  scan,
  scope,
  seed,
  setEngine,
  sin,
  sum,
  take,
  type Tensor,
  tanh,
  tensor,
  vjp,
  vmap,
} from '../index.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { read, vector } from './fixtures/vectors.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
});

const same = async (a: Tensor, b: Tensor): Promise<void> => expect(await read(a)).toEqual(await read(b));

type Wrap = (f: (x: Tensor) => Tensor, x: Tensor) => Tensor;
const direct: Wrap = (f, x) => f(x);
const again: Wrap = (f, x) => checkpoint(f, x);

describe('memory of a deep chain', () => {
  const rows = 128;
  const width = 64;
  const inner = 256;
  const boundary = rows * width * 4;
  const withinBlock = 2 * rows * inner * 4;

  /** Bytes needed for the gradient of `depth` blocks by their input, weights not counted. */
  async function peak(depth: number, run: Wrap, group = 1): Promise<number> {
    const engine = createNullEngine();
    await setEngine(engine);
    const x = rand([rows, width]);
    const weights = Array.from({ length: depth }, () => [
      rand([width, inner]),
      rand([inner, inner]),
      rand([inner, width]),
    ]);
    flush();
    const before = engine.memory().bytes;
    engine.reset();
    const block = (w: readonly Tensor[]) => (t: Tensor) =>
      add(t, matmul(tanh(matmul(relu(matmul(t, w[0] as Tensor)), w[1] as Tensor)), w[2] as Tensor));
    const slope = grad((input: Tensor) => {
      let t = input;
      for (let i = 0; i < depth; i += group) {
        const part = (s: Tensor): Tensor => weights.slice(i, i + group).reduce((u, w) => run(block(w), u), s);
        t = group === 1 ? part(t) : checkpoint(part, t);
      }
      return sum(mul(t, 0.5));
    })(x);
    flush();
    slope.dispose();
    return engine.counts().peakBytes - before;
  }

  it('grows by one boundary per block instead of all activations', async () => {
    const plain = (await peak(16, direct)) - (await peak(8, direct));
    const saved = (await peak(16, again)) - (await peak(8, again));
    expect(plain).toBeGreaterThanOrEqual(8 * withinBlock);
    expect(saved).toBe(8 * boundary);
  });

  it('is about the activations of one block and the boundaries', async () => {
    const depth = 16;
    // One block and its gradients on the way, with room for packed operands.
    expect(await peak(depth, again)).toBeLessThanOrEqual(depth * boundary + 3.5 * withinBlock);
  });

  it('grows with the root of the depth when checkpoints of several blocks hold checkpoints', async () => {
    const [flat, nested] = [await peak(36, again), await peak(36, again, 6)];
    expect(flat - nested).toBeGreaterThanOrEqual((36 - 6 - 6 - 3) * boundary);
  });
});

describe('gradients', () => {
  const block = (x: Tensor): Tensor => tanh(mul(x, exp(sin(x))));
  const chain = (run: Wrap) => (x: Tensor) => sum(run(block, run(block, run(block, x))));
  const x = (): Tensor => vector(0.1, -0.5, 2);

  it('are the same bit for bit, and at higher orders but for the order of sums', async () => {
    await same(grad(chain(again))(x()), grad(chain(direct))(x()));
    const second = (f: (x: Tensor) => Tensor) => grad((t: Tensor) => sum(mul(grad(f)(t), t)));
    const third = (f: (x: Tensor) => Tensor) => grad((t: Tensor) => sum(mul(second(f)(t), t)));
    for (const order of [second, third]) {
      const [a, b] = [await read(order(chain(again))(x())), await read(order(chain(direct))(x()))];
      a.forEach((value, i) => {
        expect(value).toBeCloseTo(b[i] as number, 10);
      });
    }
  });

  it('of nested checkpoints, forward, and after the value was read', async () => {
    const nested = (t: Tensor): Tensor => sum(checkpoint((u) => again(block, again(block, again(block, u))), t));
    await same(grad(nested)(x()), grad(chain(direct))(x()));
    const [a, b] = [jvp(chain(again), [x()], [x()])[1], jvp(chain(direct), [x()], [x()])[1]];
    expect(await a.item()).toBeCloseTo(await b.item(), 10);
    const leaf = tensor([0.1, -0.5, 2], { dtype: 'float64', requiresGrad: true });
    const loss = chain(again)(leaf);
    await loss.item();
    loss.backward();
    await same(leaf.grad as Tensor, grad(chain(direct))(x()));
  });

  it('reach tensors the function uses from outside', async () => {
    const w = tensor([2, 3, 5], { dtype: 'float64', requiresGrad: true });
    const t = x();
    sum(checkpoint((u) => mul(mul(u, w), w), t)).backward();
    await same(w.grad as Tensor, mul(mul(t, 2), w.detach()));
    const f = (run: Wrap) => (a: Tensor, b: Tensor) => sum(run((u) => block(mul(u, b)), mul(a, b)));
    const [ga, gb] = grads(f(again))(x(), vector(1, 2, 3));
    const [ha, hb] = grads(f(direct))(x(), vector(1, 2, 3));
    await same(ga, ha);
    await same(gb, hb);
    // Through a checkpoint inside, too.
    const g = (run: Wrap) => (b: Tensor) => sum(run((u) => run((v) => block(mul(v, b)), u), x()));
    await same(grad(g(again))(vector(1, 2, 3)), grad(g(direct))(vector(1, 2, 3)));
    // backward with createGraph reaches it twice.
    const v = tensor([0.3], { dtype: 'float64', requiresGrad: true });
    sum(checkpoint((u) => mul(u, mul(v, mul(v, v))), vector(1))).backward({ createGraph: true });
    const first = mul(v.grad as Tensor, 1);
    v.grad = null;
    sum(first).backward();
    expect((await read(v.grad as unknown as Tensor))[0]).toBeCloseTo(6 * 0.3, 12);
  });

  it('take integer arguments along', async () => {
    const table = vector(1, 2, 3, 4, 5, 6).reshape([3, 2]);
    const words = tensor([2, 0, 2], { dtype: 'int32' });
    const f = (run: typeof checkpoint) => (t: Tensor) =>
      sum(run((a: Tensor, i: Tensor) => exp(embedding(i, a)), t, words));
    const plain = ((g: (...args: Tensor[]) => Tensor, ...args: Tensor[]) => g(...args)) as typeof checkpoint;
    await same(grad(f(checkpoint))(table), grad(f(plain))(table));
    expect(checkpoint((t) => argMax(t), x()).dtype).toBe('int32');
  });

  it('see the same random numbers in both runs, and leave the generator where it was', async () => {
    const noisy = (t: Tensor): Tensor => dropout(mul(t, t), { p: 0.5 });
    const ones = tensor(new Array<number>(64).fill(1), { dtype: 'float64' });
    seed(3);
    const [value, [slope]] = vjp((t: Tensor) => checkpoint(noisy, t), [ones], ones);
    const next = await read(rand([2]));
    await same(slope, mul(value, 2));
    seed(3);
    const [plain] = vjp(noisy, [ones], ones);
    await same(plain, value);
    expect(await read(rand([2]))).toEqual(next);
    // A mask drawn between the runs is another one.
    seed(3);
    const twice = grad((t: Tensor) => sum(checkpoint(noisy, checkpoint(noisy, t))))(ones);
    seed(3);
    await same(twice, grad((t: Tensor) => sum(noisy(noisy(t))))(ones));
  });

  it('leave no buffers behind', async () => {
    const t = x();
    flush();
    const before = memory().numBuffers;
    const g = grad(chain(again))(t);
    await g.data();
    g.dispose();
    expect(memory().numBuffers).toBe(before);
  });

  it('say what is wrong', () => {
    expect(() => checkpoint((() => 1) as unknown as (x: Tensor) => Tensor, x())).toThrow(/\[checkpoint\].*no tensor/);
    expect(() => checkpoint((t: Tensor) => t, 1 as unknown as Tensor)).toThrow(/\[checkpoint\].*no tensor/);
    // As in libraries whose checkpoint gives a function.
    const alone = checkpoint as (f: (t: Tensor) => Tensor) => Tensor;
    expect(() => alone((t) => t.mul(2))).toThrow(/\[checkpoint\].*takes 1 .*got 0.*checkpoint\(f, x\)/);
    let calls = 0;
    const changing = (t: Tensor): Tensor => (calls++ === 0 ? t : t.narrow(0, 0, 1));
    expect(() => grad((t: Tensor) => sum(checkpoint(changing, t)))(x())).toThrow(/\[checkpoint\].*\[1\].*\[3\].*same/);
    const w = tensor([2], { dtype: 'float64', requiresGrad: true });
    const loss = sum(checkpoint((t) => mul(t, w), x()));
    w.assign(vector(3));
    expect(() => loss.backward()).toThrow(/\[checkpoint\].*assign/);
  });

  it('say so where a tensor from outside has changed or is gone', async () => {
    // No gradient flows to it, but those of the others would be wrong.
    const factor = vector(2, 2, 2);
    const leaf = tensor([1, 2, 3], { dtype: 'float64', requiresGrad: true });
    const scaled = (t: Tensor): Tensor => mul(mul(t, factor), t);
    const changed = sum(checkpoint(scaled, leaf));
    factor.assign(vector(5, 5, 5));
    expect(() => changed.backward()).toThrow(/^\[checkpoint\].*float64 \[3\].*do not assign/);
    sum(checkpoint(scaled, leaf)).backward();
    expect(await read(leaf.grad as Tensor)).toEqual([10, 20, 30]);
    leaf.grad = null;
    const gone = sum(checkpoint(scaled, leaf));
    factor.dispose();
    expect(() => gone.backward()).toThrow(/^\[checkpoint\].*that is gone.*dispose it after the gradient/s);
  });

  it('use what is tracked outside though its handle is gone: arguments of jvp and vjp, whose results have a gradient later', async () => {
    const [a, b] = [x(), vector(0.5, -1, 2)];
    type Use = (p: Tensor, q: Tensor) => Tensor;
    const outside: Readonly<Record<string, Use>> = {
      argument: (p, q) => checkpoint((t) => sin(mul(t, q)), p),
      'made of one': (p, q) => {
        const made = exp(q);
        return checkpoint((t) => sin(mul(t, made)), p);
      },
      nested: (p, q) => checkpoint((t) => checkpoint((s) => sin(mul(s, q)), t), p),
    };
    const values: Readonly<Record<string, (f: Use) => Use>> = {
      jvp: (f) => (p, q) => jvp(f, [p, q], [p, q])[0],
      vjp: (f) => (p, q) => vjp(f, [p, q], p)[0],
      scope: (f) => (p, q) => scope(() => f(mul(p, 2), mul(q, 2))),
    };
    for (const [use, f] of Object.entries(outside))
      for (const [way, through] of Object.entries(values)) {
        const scaled: Use = way === 'scope' ? (p, q) => f(mul(p, 2), mul(q, 2)) : f;
        const found = grads((p: Tensor, q: Tensor) => sum(through(f)(p, q)))(a, b);
        const expected = grads((p: Tensor, q: Tensor) => sum(scaled(p, q)))(a, b);
        for (const [i, g] of found.entries())
          expect([use, way, i, await read(g)]).toEqual([use, way, i, await read(expected[i]!)]);
      }
  });

  it('let the function assign what it counts itself', async () => {
    const seen = vector(0);
    const counted = (t: Tensor): Tensor => {
      noGrad(() => seen.assign(add(seen, 1)));
      return mul(t, t);
    };
    await same(grad((t: Tensor) => sum(checkpoint(counted, t)))(x()), mul(x(), 2));
    expect(await read(seen)).toEqual([2]);
  });

  it('reach examples of vmap and what scan carries, used from outside, at every order', async () => {
    const rows = vector(1, 2, 3, 4).reshape([2, 2]);
    const start = vector(0.5);
    /** The function of one example, whose checkpoints use it from outside: by itself, one in another, in the steps of a loop, and around one. */
    const forms: Readonly<Record<string, (run: Wrap) => (w: Tensor) => Tensor>> = {
      alone: (run) => (w) => sum(run((u) => tanh(mul(u, sum(w))), start)),
      nested: (run) => (w) =>
        sum(
          run(
            (u) =>
              mul(
                run((v) => tanh(mul(v, sum(w))), u),
                sum(w),
              ),
            start,
          ),
        ),
      inside: (run) => (w) =>
        sum(scan((c: Tensor) => [run((u) => tanh(mul(u, sum(w))), c), null], start, null, { length: 3 })[0]),
      around: (run) => (w) =>
        sum(run((u) => scan((c: Tensor) => [tanh(mul(c, sum(w))), null], u, null, { length: 3 })[0], start)),
      'made of it': (run) => (w) => {
        const twice = mul(w, 2);
        return sum(run((u) => mul(tanh(mul(u, twice)), w), start));
      },
    };
    const square = (f: (w: Tensor) => Tensor) => (w: Tensor) => sum(mul(grad(f)(w), grad(f)(w)));
    for (const [name, form] of Object.entries(forms)) {
      const [a, b] = [form(again), form(direct)];
      const all = (f: (w: Tensor) => Tensor) => (ws: Tensor) => sum(vmap(f)(ws));
      for (const [made, expected] of [
        [grad(all(a)), grad(all(b))],
        [grad(square(all(a))), grad(square(all(b)))],
        [vmap(grad(square(a))), vmap(grad(square(b)))],
      ] as const) {
        const [found, wanted] = [await read(made(rows)), await read(expected(rows))];
        found.forEach((value, i) => {
          expect(value, name).toBeCloseTo(wanted[i] as number, 10);
        });
        expect(wanted.every((value) => Math.abs(value) > 1e-12)).toBe(true);
      }
    }
    // Positions too, which have no gradient.
    const at = tensor([1, 0], { dtype: 'int32' });
    const picked = (run: Wrap) => (w: Tensor) =>
      sum(vmap((row: Tensor, i: Tensor) => run((u) => mul(u, take(row, i)), w))(rows, at));
    expect(await read(grad(picked(again))(vector(1, 1)))).toEqual([5, 5]);
  });

  it('reach an argument that is used from outside as well', async () => {
    const f = (run: Wrap) => (t: Tensor) => sum(run((u) => mul(mul(u, u), t), t));
    await same(grad(f(again))(x()), mul(mul(x(), x()), 3));
    await same(grad((t: Tensor) => sum(grad(f(again))(t)))(x()), mul(x(), 6));
    const twice = (t: Tensor) => sum(checkpoint((u: Tensor, v: Tensor) => mul(mul(u, v), t), t, t));
    await same(grad(twice)(x()), mul(mul(x(), x()), 3));
  });
  it('know a tensor from outside that a tape watches between the two runs', async () => {
    const [a, b] = [tensor([1, 2, 3], { requiresGrad: true }), tensor([4, 5, 6])];
    const y = checkpoint((t: Tensor) => mul(mul(t, t), b), a);
    const tape = new GradientTape();
    tape.watch(b);
    sum(y).backward();
    tape.dispose();
    expect(await read(a.grad!)).toEqual([8, 20, 36]);
    expect(b.grad).toBeNull();
  });
});

/** compile: replays against calls of the function itself, and inside of and around other functions. */
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  bernoulli,
  compile,
  checkpoint,
  crossEntropy,
  detach,
  dropout,
  flush,
  full,
  GradientTape,
  grad,
  keep,
  memory,
  noGrad,
  ones,
  profile,
  rand,
  scan,
  scope,
  seed,
  setEngine,
  setLogger,
  softmax,
  stats,
  take,
  type Tensor,
  tensor,
  valueAndGrad,
  vmap,
  warmup,
  zeros,
} from '../index.ts';
import { batch, numbers, replaysOf, type Program } from './fixtures/programs.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
  setLogger(null);
  seed(0);
});

describe('a replay does what the function does', () => {
  it('of arguments alone', async () => {
    expect(await replaysOf(() => ({ f: (x) => softmax(x).mul(3), state: [] }))).toBe(4);
  });

  it('refuses indices from the host as the function does', async () => {
    const table = tensor([10, 20, 30]);
    const step = compile((index: Tensor) => take(table, index.reshape([2, 1])));
    const integers = (...list: number[]): Tensor => tensor(list, { dtype: 'int32' });
    for (const list of [
      [0, 1],
      [2, 1],
      [1, 1],
      [0, -3],
    ] as const)
      await step(integers(...list)).data();
    const before = stats().replays;
    expect(await step(integers(2, 0)).array()).toEqual([[30], [10]]);
    expect(stats().replays).toBe(before + 1);
    expect(() => step(integers(2, 3))).toThrow(/^\[take\] index out of range: 3 for size 3/);
    // Computed ones are moved to the nearest end, as without compile.
    expect(await step(integers(2, 3).mul(1)).array()).toEqual([[30], [30]]);
  });

  it('refuses indices from the host also where it was recorded with computed ones', async () => {
    const table = tensor([10, 20, 30]);
    const integers = (...list: number[]): Tensor => tensor(list, { dtype: 'int32' });
    const computed = async (...list: number[]): Promise<Tensor> => {
      const t = integers(...list).mul(1);
      await t.data();
      return t;
    };
    const ways: readonly ((index: Tensor) => Tensor)[] = [
      (index) => take(table, index),
      (index) => take(table, index.reshape([2, 1])),
      (index) => take(table, index.cast('int64')),
      (index) => table.gather(index, { axis: 0 }),
      (index) => crossEntropy(table.reshape([1, 3]).expand([2, 3]), index),
    ];
    for (const [at, way] of ways.entries()) {
      const step = compile(way);
      for (const list of [
        [0, 1],
        [2, 1],
        [1, 1],
        [0, 0],
      ] as const)
        await step(await computed(...list)).data();
      const before = stats().replays;
      const [plain, replayed] = [way(integers(2, 0)), step(integers(2, 0))];
      expect(await replayed.array()).toEqual(await plain.array());
      expect(stats().replays, `of ${at}`).toBe(before + 1);
      expect(() => step(integers(2, 3)), `of ${at}`).toThrow(/out of range: 3 for/);
    }
  });

  it('refuses a tensor of one number that is no index or class, also where it is an argument', async () => {
    const table = tensor([10, 20, 30]);
    const rows = tensor([[1, 2, 4]]);
    const same = (value: number): Tensor => full([1], value, { dtype: 'int32' });
    const pick = compile((index: Tensor) => table.take(index));
    const loss = compile((target: Tensor) => crossEntropy(rows, target));
    for (const value of [0, 1, 2, 0]) {
      await pick(same(value)).data();
      await loss(same(value)).data();
    }
    expect(await pick(same(2)).array()).toEqual([30]);
    expect(() => pick(same(3))).toThrow(/^\[take\] index out of range: 3 for size 3/);
    expect(() => loss(same(3))).toThrow(/^\[crossEntropy\] class number out of range: 3 for 3 classes/);
  });

  it('forgets what it knew of indices that it overwrites', async () => {
    const [table, index] = [tensor([10, 20, 30, 40, 50, 60, 70, 80]), tensor([7], { dtype: 'int32' })];
    const halve = compile(() => void index.assign(index.floorDivide(2)));
    for (let i = 0; i < 3; i++) halve();
    expect(await take(table.narrow(0, 0, 2), index).array()).toEqual([10]);
  });

  it('with a tensor from outside that is assigned in place, and one that is not', async () => {
    const make = (): Program => {
      const [w, v] = [batch(30), batch(31)];
      return { f: (x) => [w.assign(w.mul(0.5).add(x)), w.sum(), v.mul(x)], state: [w, v] };
    };
    expect(await replaysOf(make)).toBeGreaterThan(3);
  });

  it('where copies of what it assigns are kept now and then, whose memory it may not overwrite', async () => {
    const weight = tensor([1, 2, 3]);
    const step = compile((x: Tensor) => scope(() => void weight.assign(weight.sub(x.mul(weight)))), { check: 2 });
    const [x, kept, seen] = [tensor([0.5, -1, 0.5]), [] as Tensor[], [] as number[]];
    for (let i = 0; i < 40; i++) {
      step(x);
      if (i % 3 === 2) {
        kept.push(keep(detach(weight)));
        seen.push(i);
      }
    }
    const values = await Promise.all(kept.map((t) => t.array()));
    for (const [k, i] of seen.entries())
      expect(values[k]).toEqual([0.5 ** (i + 1), 2 * 2 ** (i + 1), 3 * 0.5 ** (i + 1)]);
    expect(stats().replays).toBeGreaterThan(10);
  });

  it('with assignments that swap tensors, name an argument, or do nothing', async () => {
    const make = (): Program => {
      const [a, b, c] = [batch(30), batch(31), batch(32)];
      const f = (x: Tensor): Tensor => {
        const before = a.add(0);
        a.assign(b);
        b.assign(before);
        c.assign(x);
        return a.mul(b).add(c);
      };
      return { f, state: [a, b, c] };
    };
    expect(await replaysOf(make)).toBeGreaterThan(2);
  });

  it('where results are views of arguments, and name one value twice', async () => {
    const f = (x: Tensor): Tensor[] => {
      const y = x.exp();
      return [x.reshape([2, 2]).transpose(), y, y.reshape([2, 2])];
    };
    expect(await replaysOf(() => ({ f, state: [] }))).toBe(4);
  });

  it('where arguments are slices of other tensors', async () => {
    const all = batch(50, [64]);
    const slices = Array.from({ length: 8 }, (_, i) => () => all.slice([{ start: 4 * i, stop: 4 * i + 4 }]));
    expect(await replaysOf(() => ({ f: (x) => x.mul(2).cumSum(0), state: [] }), slices)).toBeGreaterThan(3);
    all.dispose();
  });

  it('with random numbers, which advance as without', async () => {
    const f = (x: Tensor): Tensor[] => [
      dropout(x, { p: 0.5, training: true }),
      rand([3]),
      bernoulli(0.5, [8]),
      rand([2], { key: 5 }),
      rand([2], { dtype: 'float64' }),
    ];
    expect(await replaysOf(() => ({ f, state: [] }))).toBe(4);
    seed(3);
    const next = await numbers(rand([2]));
    const step = compile(() => rand([2]));
    for (let round = 0; round < 5; round++) {
      seed(3);
      expect(await numbers(step())).toEqual(next);
    }
    step.dispose();
  });

  it('with gradients, checkpoints and loops inside', async () => {
    const make = (): Program => {
      const w = batch(30);
      const cell = (h: Tensor): Tensor =>
        checkpoint((x: Tensor) => dropout(x.mul(w).tanh(), { p: 0.25, training: true }), h);
      const loss = (v: Tensor, x: Tensor): Tensor => {
        const [last] = scan((c: Tensor, each: Tensor) => [c.mul(v).add(each).tanh(), null], zeros([]), x);
        return cell(x.mul(v)).sum().add(last);
      };
      const f = (x: Tensor): Tensor => {
        const [value, slope] = valueAndGrad(loss)(w.mean(), x);
        w.assign(w.sub(slope.mul(0.1)));
        return value;
      };
      return { f, state: [w] };
    };
    expect(await replaysOf(make)).toBeGreaterThan(3);
  });

  it('with backward() and leaves', async () => {
    const make = (): Program => {
      const w = tensor([1, 2, 3, 4], { requiresGrad: true });
      const f = (x: Tensor): Tensor => {
        const loss = w.mul(x).square().sum();
        loss.backward();
        noGrad(() => w.assign(w.sub(w.grad!.mul(0.1))));
        w.grad = null;
        return loss.detach();
      };
      return { f, state: [w] };
    };
    expect(await replaysOf(make)).toBeGreaterThan(3);
  });

  it('with a loss that is added up after backward(), whose history is gone then', async () => {
    const make = (): Program => {
      const [w, total] = [tensor([1, 2, 3, 4], { requiresGrad: true }), zeros([])];
      const f = (x: Tensor): Tensor => {
        const loss = w.mul(x).square().mean();
        loss.backward();
        noGrad(() => w.assign(w.sub(w.grad!.mul(0.1))));
        w.grad = null;
        total.assign(total.add(loss));
        return loss.detach();
      };
      return { f, state: [w, total] };
    };
    expect(await replaysOf(make)).toBeGreaterThan(2);
  });

  it('with flushes inside, and data of the host that stays the same', async () => {
    const make = (): Program => {
      const w = batch(30);
      const f = (x: Tensor): Tensor => {
        w.assign(w.add(x));
        flush();
        const weights = tensor([1, 2, 3, 4]);
        return w.mul(weights).sum();
      };
      return { f, state: [w] };
    };
    expect(await replaysOf(make)).toBeGreaterThan(3);
  });

  it('for a graph of thousands of nodes', async () => {
    const f = (x: Tensor): Tensor => {
      let y = x;
      for (let i = 0; i < 300; i++) y = y.mul(0.99).add(i % 3);
      return y;
    };
    expect(await replaysOf(() => ({ f, state: [] }))).toBe(4);
  });

  it('keeps structure: objects, lists, other values, and tensors from outside', async () => {
    const w = ones([2]);
    const step = compile(({ x, y }: { x: Tensor; y: readonly Tensor[] }, scale: number, name: string) => ({
      [name]: [x.mul(scale), { sum: y[0]!.add(y[1]!) }],
      w,
      x,
      scale,
    }));
    for (let i = 0; i < 5; i++) {
      const [x, a, b] = [batch(i), batch(i + 1), batch(i + 2)];
      const found = step({ x, y: [a, b] }, 2, 'both');
      expect(Object.keys(found)).toEqual(['both', 'w', 'x', 'scale']);
      expect(found.w).toBe(w);
      expect(found.x).toBe(x);
      expect(found.scale).toBe(2);
      const [scaled, { sum }] = found.both as [Tensor, { sum: Tensor }];
      expect(await numbers(scaled)).toEqual(await numbers(x.mul(2)));
      expect(await numbers(sum)).toEqual(await numbers(a.add(b)));
    }
    expect(stats().replays).toBeGreaterThan(1);
    step.dispose();
  });
});

describe('around and inside of it', () => {
  it('derivatives, tapes, vmap and other compiled functions', async () => {
    const w = batch(3);
    const f = compile((x: Tensor) => x.mul(w).square().sum());
    const g = (x: Tensor): Tensor => x.mul(w).square().sum();
    const slope = compile(grad(f));
    const rows = compile(vmap(f));
    const outer = compile((x: Tensor) => f(x).add(slope(x).sum()));
    for (let i = 0; i < 5; i++) {
      const x = batch(i);
      const y = batch(i, [3, 4]);
      expect(await numbers(f(x))).toEqual(await numbers(g(x)));
      expect(await numbers(grad(f)(x))).toEqual(await numbers(grad(g)(x)));
      expect(await numbers(slope(x))).toEqual(await numbers(grad(g)(x)));
      expect(await numbers(vmap(f)(y))).toEqual(await numbers(vmap(g)(y)));
      expect(await numbers(rows(y))).toEqual(await numbers(vmap(g)(y)));
      expect(await numbers(outer(x))).toEqual(await numbers(scope(() => g(x).add(grad(g)(x).sum()))));
      using tape = new GradientTape();
      const watched = tape.watch(x);
      const loss = f(watched ?? x);
      const [found] = [tape.gradient(loss, x)];
      expect(await numbers(found)).toEqual(await numbers(grad(g)(x)));
    }
    expect(stats().replays).toBeGreaterThan(7);
  });

  it('scopes, pending work and warmup', async () => {
    const step = compile((x: Tensor) => {
      const y = x.mul(2);
      return [y, y.add(1)];
    });
    const x = ones([2]);
    flush();
    const { flushes } = stats();
    await warmup(() => step(x));
    expect(stats().flushes).toBe(flushes);
    const { numTensors } = memory();
    for (let i = 0; i < 6; i++) {
      let inner: readonly Tensor[] = [];
      const kept = scope(() => {
        const pending = x.add(i);
        inner = step(pending);
        return inner[1]!;
      });
      expect(inner[0]!.disposed).toBe(true);
      expect(await numbers(kept)).toEqual([2 * i + 3, 2 * i + 3]);
      kept.dispose();
    }
    expect(memory().numTensors).toBe(numTensors);
    expect(stats().replays).toBeGreaterThan(2);
    step.dispose();
  });

  it('profile and stats count replays', async () => {
    const step = compile((x: Tensor) => x.mul(2));
    const x = ones([2]);
    for (let i = 0; i < 3; i++) step(x);
    const { kernels, replays } = stats();
    const found = await profile(() => step(x));
    expect(found.kernels.length).toBe(1);
    expect(found.replays).toBe(stats().replays - replays);
    expect(stats().kernels).toBe(kernels + 1);
    step.dispose();
  });

  it('hands as much to the engine, and holds as much memory, as the function', async () => {
    const run = async (compiled: boolean): Promise<[number, number, number]> => {
      const engine = createNullEngine();
      await setEngine(engine);
      const w = scope(() => rand([64, 64], { key: 1 }));
      const f = (x: Tensor): Tensor => {
        w.assign(w.sub(x.transpose().matmul(x.matmul(w))));
        return w.sum();
      };
      const step = compiled ? compile(f) : (x: Tensor) => scope(() => f(x));
      const x = scope(() => rand([32, 64], { key: 2 }));
      for (let i = 0; i < 3; i++) step(x).dispose();
      engine.reset();
      const start = engine.counts();
      for (let i = 0; i < 3; i++) step(x).dispose();
      const { submits, dispatches, peakBytes } = engine.counts();
      w.dispose();
      return [submits - start.submits, dispatches - start.dispatches, peakBytes];
    };
    expect(await run(true)).toEqual(await run(false));
  });
});

/**
 * Updates in place. Beside each other, as optimizers make them: what one store of a kernel overwrites, another of its stores reads. On groups of
 * threads as on single ones, all reads come first.
 */
import { describe, expect, it } from 'vitest';
import {
  add,
  flush,
  indexAdd,
  indexCopy,
  mean,
  mul,
  scope,
  setEngine,
  sub,
  sum,
  type Tensor,
  tensor,
} from '../index.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';

const wave = (n: number, step: number): Float32Array => Float32Array.from({ length: n }, (_, i) => Math.sin(step * i));

describe.each([false, true])('groups of threads: %s', (simt) => {
  /** Three steps of `momentum = 0.9 momentum + g; value = value - 0.1 momentum` in place, and the same in plain numbers. */
  async function steps(shape: readonly number[], gradient: () => Tensor, plain: readonly number[]): Promise<void> {
    const fresh = (): Tensor => tensor(new Float32Array(plain.length).fill(1), { shape });
    const [momentum, value] = [fresh(), fresh()];
    flush();
    const [m, v] = [plain.map(() => 1), plain.map(() => 1)];
    for (let step = 0; step < 3; step++) {
      scope(() => {
        const next = add(mul(momentum, 0.9), gradient());
        const moved = sub(value, mul(next, 0.1));
        momentum.assign(next);
        value.assign(moved);
      });
      for (const [i, g] of plain.entries()) {
        m[i] = 0.9 * (m[i] as number) + g;
        v[i] = (v[i] as number) - 0.1 * (m[i] as number);
      }
    }
    const found = [...(await momentum.data()), ...(await value.data())] as number[];
    for (const [i, expected] of [...m, ...v].entries()) expect(found[i]).toBeCloseTo(expected, 3);
    momentum.dispose();
    value.dispose();
  }

  it('the sum that a group shares is added by one thread, once', async () => {
    await setEngine(createReferenceEngine({ simt }));
    const data = wave(4 * 8 * 300, 0.7);
    using x = tensor(data, { shape: [4, 8, 300] });
    const plain = Array.from({ length: 8 }, (_, c) => {
      let total = 0;
      for (let i = 0; i < 4 * 300; i++) total += data[Math.floor(i / 300) * 2400 + c * 300 + (i % 300)] as number;
      return total;
    });
    await steps([8], () => sum(x, { axis: [0, 2] }), plain);
  });

  it('rows whose reduction a group shares are written back by all its threads, once', async () => {
    await setEngine(createReferenceEngine({ simt }));
    const data = wave(5 * 700, 0.3);
    using x = tensor(data, { shape: [5, 700] });
    const plain = Array.from(data, (value, i) => {
      const row = data.subarray(Math.floor(i / 700) * 700, Math.floor(i / 700) * 700 + 700);
      return value - row.reduce((total, one) => total + one, 0) / 700;
    });
    await steps([5, 700], () => sub(x, mean(x, { axis: 1, keepDims: true })), plain);
  });
});

describe('what scatters update', () => {
  const start = [0, 1, 2, 3, 4, 5];
  const fresh = (): Tensor => tensor(start, { dtype: 'float32', shape: [3, 2] });

  /** Dispatches of one flush in which the tensor is assigned what `next` makes of it. */
  async function dispatches(next: (x: Tensor) => Tensor): Promise<number> {
    const engine = createNullEngine();
    await setEngine(engine);
    using x = fresh();
    flush();
    engine.reset();
    scope(() => void x.assign(next(x)));
    return engine.counts().dispatches;
  }

  it('stays where it is, if it is assigned the result', async () => {
    // Places and the update.
    expect(await dispatches((x) => indexCopy(x, [2], tensor([[7, 8]]), 0))).toBe(2);
    // What reads it first reads what was there.
    expect(await dispatches((x) => indexCopy(x, [2], sum(mul(x, x), { axis: 0, keepDims: true }), 0))).toBe(2);
  });

  it('is copied if anybody else may ask for it', async () => {
    const engine = createNullEngine();
    await setEngine(engine);
    using x = fresh();
    flush();
    engine.reset();
    using y = scope(() => indexCopy(x, [2], tensor([[7, 8]]), 0));
    expect(y.shape).toEqual([3, 2]);
    expect(engine.counts().dispatches).toBe(3);
  });

  it.each([false, true])('has the values that plain numbers have; groups of threads: %s', async (simt) => {
    await setEngine(createReferenceEngine({ simt }));
    using x = fresh();
    using places = tensor(Int32Array.of(2, 0, 2));
    flush();
    for (let step = 0; step < 2; step++)
      scope(() => {
        const rows = mul(sum(x, { axis: 0, keepDims: true }), tensor([[1], [2], [3]]));
        x.assign(indexCopy(x, places, rows, 0));
      });
    // [0 1; 2 3; 4 5] sums to [6 9]: rows 2 and 0 become 3 and 2 times that; then [12 18; 2 3; 18 27] to [32 48].
    expect(await x.array()).toEqual([
      [64, 96],
      [2, 3],
      [96, 144],
    ]);
    scope(() =>
      x.assign(
        indexAdd(
          x,
          [0, 0],
          tensor([
            [1, 2],
            [3, 4],
          ]),
          0,
        ),
      ),
    );
    expect(await x.array()).toEqual([
      [68, 102],
      [2, 3],
      [96, 144],
    ]);
  });
});

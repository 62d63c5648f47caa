/**
 * Another shape at every step: a network trained on batches of every size, a recurrent one on sequences of many lengths. Compared with
 * the formulas in float64, written plainly.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import {
  grads,
  matmul,
  mean,
  memory,
  relu,
  scope,
  setEngine,
  sigmoid,
  square,
  stats,
  sum,
  tanh,
  tensor,
  type Tensor,
  transpose,
} from '@polygrad/core';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeRandom, type Random } from './oracle/random.ts';

beforeAll(async () => {
  await setEngine(createCpuEngine({ threads: 2 }));
});

type Matrix = number[][];

const rows = (n: number, make: (i: number) => number[]): Matrix => Array.from({ length: n }, (_, i) => make(i));
const list = (n: number, make: (i: number) => number): number[] => Array.from({ length: n }, (_, i) => make(i));

function matrix(random: Random, height: number, width: number): Matrix {
  return rows(height, () => list(width, () => Math.fround(random() - 0.5)));
}

function upload(m: Matrix, shape: readonly number[] = [m.length, m[0]!.length]): Tensor {
  return tensor(Float32Array.from(m.flat()), { shape });
}

const at = (m: Matrix, i: number, j: number): number => m[i]![j]!;

/** a b^T. */
function product(a: Matrix, b: Matrix): Matrix {
  return rows(a.length, (i) => list(b.length, (j) => a[i]!.reduce((s, x, k) => s + x * at(b, j, k), 0)));
}

const turned = (a: Matrix): Matrix => rows(a[0]!.length, (j) => list(a.length, (i) => at(a, i, j)));
const map = (f: (...x: number[]) => number, ...of: Matrix[]): Matrix =>
  rows(of[0]!.length, (i) => list(of[0]![0]!.length, (j) => f(...of.map((m) => at(m, i, j)))));

/** 1 .. n in an order without pattern. */
const shuffled = (n: number, step: number): number[] => list(n, (i) => 1 + ((i * step) % n));

function close(found: ArrayLike<number>, wanted: readonly number[], tolerance: number): void {
  expect(found.length).toBe(wanted.length);
  const off = Math.max(...wanted.map((w, i) => Math.abs(found[i]! - w) / (1 + Math.abs(w))));
  expect(off).toBeLessThan(tolerance);
}

describe('another shape at every step', () => {
  it('Q-learning with batches of all sizes follows float64', async () => {
    const random = makeRandom(7);
    const [states, hidden, actions, rate] = [5, 24, 3, 0.2];
    let [a, b] = [matrix(random, hidden, states), matrix(random, actions, hidden)];
    const [w, v] = [upload(a), upload(b)];
    let held = 0;
    for (const [step, n] of shuffled(70, 29).slice(0, 24).entries()) {
      const x = matrix(random, n, states);
      const target = list(n, () => Math.fround(random()));
      const taken = rows(n, () => {
        const action = Math.floor(random() * actions);
        return list(actions, (j) => (j === action ? 1 : 0));
      });
      const loss = scope(() => {
        const [input, goal, mask] = [upload(x), tensor(target, { dtype: 'float32' }), upload(taken)];
        const lossOf = (p: Tensor, q: Tensor): Tensor => {
          const values = matmul(relu(matmul(input, transpose(p))), transpose(q));
          return mean(square(sum(values.mul(mask), 1).sub(goal)));
        };
        const [dw, dv] = grads(lossOf)(w, v) as [Tensor, Tensor];
        const before = lossOf(w, v);
        w.assign(w.sub(dw.mul(rate)));
        v.assign(v.sub(dv.mul(rate)));
        return before;
      });
      const inner = product(x, a);
      const active = map((z) => Math.max(z, 0), inner);
      const off = map(
        (q, m, t) => m * (q - t),
        product(active, b),
        taken,
        rows(n, (i) => list(actions, () => target[i]!)),
      );
      const wanted = off.flat().reduce((s, d) => s + d * d, 0) / n;
      const dq = map((d) => (2 * d) / n, off);
      const dInner = map((d, z) => (z > 0 ? d : 0), product(dq, turned(b)), inner);
      b = map((p, d) => p - rate * d, b, product(turned(dq), turned(active)));
      a = map((p, d) => p - rate * d, a, product(turned(dInner), turned(x)));
      close([await loss.item()], [wanted], 1e-4);
      loss.dispose();
      // Nothing of a step stays behind on the device.
      if (step === 1) held = memory().numBuffers;
      if (step > 1) expect(memory().numBuffers).toBe(held);
    }
    expect(stats().planMisses).toBeGreaterThanOrEqual(24);
    close((await w.data()) as Float32Array, a.flat(), 1e-4);
    close((await v.data()) as Float32Array, b.flat(), 1e-4);
  });

  it('a recurrent network on sequences of many lengths and batches has the values and derivatives of float64', async () => {
    const random = makeRandom(11);
    const [inputs, hidden] = [3, 4];
    const [a, b] = [matrix(random, 2 * hidden, inputs), matrix(random, 2 * hidden, hidden)];
    const [w, u] = [upload(a), upload(b)];
    const [along, alongToo] = [matrix(random, 2 * hidden, inputs), matrix(random, 2 * hidden, hidden)];
    for (const [length, n] of [
      [1, 2],
      [2, 1],
      [3, 5],
      [7, 3],
      [5, 8],
      [12, 2],
      [8, 1],
      [21, 6],
      [33, 4],
      [17, 4],
    ] as const) {
      const x = rows(n * length, () => list(inputs, () => Math.fround(random() - 0.5)));
      /** h' = h + sigmoid(gate) (tanh(new) - h): all inputs are projected together, steps take their part. */
      const lossOf = (p: Tensor, q: Tensor): Tensor => {
        const projected = matmul(upload(x), transpose(p)).reshape([n, length, 2 * hidden]);
        let h = tensor(new Float32Array(n * hidden), { shape: [n, hidden] });
        for (let t = 0; t < length; t++) {
          const both = projected.select(1, t).add(matmul(h, transpose(q)));
          const gate = sigmoid(both.narrow(1, 0, hidden));
          h = h.add(gate.mul(tanh(both.narrow(1, hidden, hidden)).sub(h)));
        }
        return mean(square(h));
      };
      const plain = (p: Matrix, q: Matrix): number => {
        let h = rows(n, () => list(hidden, () => 0));
        for (let t = 0; t < length; t++) {
          const both = map(
            (y, z) => y + z,
            product(
              rows(n, (i) => x[i * length + t]!),
              p,
            ),
            product(h, q),
          );
          h = rows(n, (i) =>
            list(hidden, (j) => {
              const old = at(h, i, j);
              return old + (Math.tanh(at(both, i, hidden + j)) - old) / (1 + Math.exp(-at(both, i, j)));
            }),
          );
        }
        return h.flat().reduce((s, y) => s + y * y, 0) / (n * hidden);
      };
      const [loss, slope] = scope(() => {
        const [dp, dq] = grads(lossOf)(w, u) as [Tensor, Tensor];
        return [lossOf(w, u), sum(dp.mul(upload(along))).add(sum(dq.mul(upload(alongToo))))];
      });
      const moved = (k: number): number =>
        plain(
          map((p, d) => p + k * d, a, along),
          map((q, d) => q + k * d, b, alongToo),
        );
      close([await loss.item()], [plain(a, b)], 1e-5);
      close([await slope.item()], [(moved(1e-5) - moved(-1e-5)) / 2e-5], 1e-5);
      loss.dispose();
      slope.dispose();
    }
  });
});

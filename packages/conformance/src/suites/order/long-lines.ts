/** Lines that programs cut into blocks: lengths that are no multiple of anything. */
import * as pg from '@polygrad/core';
import type { ConformanceCase } from '../../case.ts';
import { assertClose, gamma } from '../../compare.ts';
import { nd } from '../../oracle/ndarray.ts';
import { makeRandom, seedOf } from '../../oracle/random.ts';
import { exact, gradientOf } from './values.ts';

function randomData(name: string, n: number): Float32Array {
  const random = makeRandom(seedOf(name));
  return Float32Array.from({ length: n }, () => Math.floor(random() * 4000) / 16 - 100);
}

export function longLineCases(): ConformanceCase[] {
  const order = (data: Float32Array, from: number, n: number): number[] =>
    Array.from({ length: n }, (_, i) => i).sort((i, j) => data[from + i]! - data[from + j]! || i - j);
  const sorted = [600, 9001, 17001].map((n) => ({
    name: `order / argSort of 2 lines of ${n}`,
    run: async () => {
      const data = randomData(`sort ${n}`, 2 * n);
      const [x, y] = pg.scope(() => {
        const all = pg.tensor(data, { shape: [2, n] });
        return [all, pg.argSort(all)];
      });
      const expected = [...order(data, 0, n), ...order(data, n, n)];
      assertClose('order', (await y.data()) as Int32Array, y.shape, nd([2, n], expected), exact);
      x.dispose();
      y.dispose();
      return undefined;
    },
  }));
  const wide = [50, 9001].map((n) => ({
    name: `order / argSort of ${n} float64`,
    run: async () => {
      const random = makeRandom(seedOf(`wide ${n}`));
      // Differences in both halves of the bits.
      const data = Float64Array.from({ length: n }, () => (Math.floor(random() * 7) - 3) * (1 + random() * 2 ** -30));
      const x = pg.tensor(data);
      const y = pg.argSort(x);
      const expected = Array.from(data.keys()).sort((i, j) => data[i]! - data[j]! || i - j);
      assertClose('order', (await y.data()) as Int32Array, y.shape, nd([n], expected), exact);
      x.dispose();
      y.dispose();
      return undefined;
    },
  }));
  const scans = [33333, 40000].map((n) => ({
    name: `order / cumSum and its gradient, one line of ${n}`,
    run: async () => {
      const data = randomData(`scan ${n}`, n);
      const [x, y, g] = pg.scope(() => {
        const line = pg.tensor(data);
        return [line, pg.cumSum(line), gradientOf((v) => pg.cumProd(pg.add(pg.mul(v, 0), 1)), line)];
      });
      let sum = 0;
      let size = 0;
      const slack: number[] = [];
      const expected = Array.from(data, (v) => {
        sum += v;
        size += Math.abs(v);
        slack.push(gamma(n) * size);
        return sum;
      });
      const close = { rtol: 1.3e-6, atol: 1e-5 };
      assertClose('sum', (await y.data()) as Float32Array, y.shape, nd([n], expected), close, nd([n], slack));
      const none = nd([n], new Array<number>(n).fill(0));
      assertClose('gradient', (await g.data()) as Float32Array, g.shape, none, exact);
      for (const tensor of [x, y, g]) tensor.dispose();
      return undefined;
    },
  }));
  const top = [70000, 66001].map((n) => ({
    name: `order / topK of ${n}`,
    run: async () => {
      const data = randomData(`top ${n}`, n);
      const [x, v, i] = pg.scope(() => {
        const line = pg.tensor(data);
        return [line, ...pg.topK(line, 20, { largest: false })];
      });
      const expected = order(data, 0, n).slice(0, 20);
      assertClose('places', (await i.data()) as Int32Array, i.shape, nd([20], expected), exact);
      for (const tensor of [x, v, i]) tensor.dispose();
      return undefined;
    },
  }));
  return [...sorted, ...wide, ...scans, ...top];
}

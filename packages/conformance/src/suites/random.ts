/** Random numbers: the same bits on every engine, checked against Threefry written out here and its published answers. */
import * as pg from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import { arrayOf } from '../host.ts';
import { threefry } from '../oracle/random.ts';

const numbers = async (t: pg.Tensor): Promise<readonly number[]> => (await arrayOf(t)).data;

function sameBits(what: string, actual: readonly number[], expected: readonly number[]): void {
  const bad = actual.findIndex((x, i) => x !== expected[i]);
  if (bad >= 0 || actual.length !== expected.length) {
    throw new Error(`${what}: element ${bad} is ${actual[bad]} where ${expected[bad]} is expected`);
  }
}

export function randomCases(): ConformanceCase[] {
  return [
    {
      name: 'random / the generator of the suite gives the published answers (Random123, kat_vectors)',
      run: async () => {
        sameBits('zeros', threefry([0, 0], [0, 0]), [0x6b200159, 0x99ba4efe]);
        sameBits('ones', threefry([0xffffffff, 0xffffffff], [0xffffffff, 0xffffffff]), [0x1cb996fc, 0xbb002be7]);
        sameBits('pi', threefry([0x13198a2e, 0x03707344], [0x243f6a88, 0x85a308d3]), [0xc4923a9c, 0x483df7a0]);
        return undefined;
      },
    },
    ...[1, 7, 130, 1000].map((size) => ({
      name: `random / rand of ${size} elements has the bits of its key`,
      run: async () => {
        const key: [number, number] = [3, 0x12345678];
        const actual = await numbers(pg.rand([size], { key }));
        const expected = Array.from({ length: size }, (_, i) =>
          Math.fround((threefry(key, [i, 0])[0] >>> 8) * 2 ** -24),
        );
        sameBits('rand', actual, expected);
        return undefined;
      },
    })),
    ...[0.25, 0.5, 0.9].map((p) => ({
      name: `random / dropout of ${p} keeps what the bits of its key keep, and so does its gradient`,
      run: async () => {
        const key: [number, number] = [7, 99];
        const x = pg.arange(1, 301, 1, { dtype: 'float32' });
        const kept = Array.from({ length: 300 }, (_, i) => threefry(key, [i, 0])[0] < (1 - p) * 2 ** 32);
        const drop = (t: pg.Tensor): pg.Tensor => pg.dropout(t, { p, key });
        const wrong = (actual: number, expected: number): boolean => Math.abs(actual - expected) > 1e-6 * expected;
        const forward = await numbers(drop(x));
        const gradient = await numbers(pg.grad((t: pg.Tensor) => pg.sum(drop(t)))(x));
        x.dispose();
        for (const [i, keep] of kept.entries()) {
          const scale = keep ? 1 / (1 - p) : 0;
          if (wrong(forward[i]!, (i + 1) * scale) || wrong(gradient[i]!, scale))
            throw new Error(
              `element ${i}: ${forward[i]}, slope ${gradient[i]}, where ${(i + 1) * scale}, ${scale} are expected`,
            );
        }
        return undefined;
      },
    })),
    {
      name: 'random / a seed repeats, the next call differs',
      run: async () => {
        pg.seed(5);
        const first = await numbers(pg.rand([9]));
        const second = await numbers(pg.rand([9]));
        pg.seed(5);
        sameBits('after the same seed', await numbers(pg.rand([9])), first);
        if (second.join() === first.join()) throw new Error('two calls gave the same numbers');
        return undefined;
      },
    },
    {
      name: 'random / randn has the moments of the normal distribution',
      run: async () => {
        const x = await numbers(pg.randn([4000], { key: 11 }));
        const mean = x.reduce((a, b) => a + b, 0) / x.length;
        const variance = x.reduce((a, b) => a + (b - mean) ** 2, 0) / x.length;
        // Four standard errors: 1/sqrt(n) for the mean, sqrt(2/n) for the variance.
        if (Math.abs(mean) > 4 / Math.sqrt(4000)) throw new Error(`mean ${mean}`);
        if (Math.abs(variance - 1) > 4 * Math.sqrt(2 / 4000)) throw new Error(`variance ${variance}`);
        return undefined;
      },
    },
    {
      name: 'random / a permutation holds every index once',
      run: async () => {
        const x = await numbers(pg.permutation(67, { key: 3 }));
        sameBits(
          'sorted',
          [...x].sort((a, b) => a - b),
          Array.from({ length: 67 }, (_, i) => i),
        );
        return undefined;
      },
    },
  ];
}

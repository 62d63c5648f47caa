/** Median and quantiles: ranks are found without sorting, and are those of sorted lists. */
import { beforeEach, expect, it } from 'vitest';
import { createReferenceEngine } from '@polygrad/testing';
import { grad, median, profile, quantile, setEngine, sum, type Tensor, tensor } from '../../index.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
});

/** Numbers of which many are equal. */
const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => ((i * 7919) % (n >> 1)) - n / 4);

const sorted = (line: readonly number[]): number[] => [...line].sort((a, b) => a - b);

it.each([
  [50, 6],
  [101, 5],
  [600, 4],
  [2049, 2],
  [40_000, 1],
])('median and quantile of lines of %d are those of sorted ones, and of NaN NaN', async (n, lines) => {
  const data = numbers(n * lines);
  if (lines > 1) data[n + 3] = Number.NaN;
  const rows = Array.from({ length: lines }, (_, i) => data.slice(i * n, (i + 1) * n));
  const x = tensor(data, { shape: [lines, n] });
  const at = (q: number): number[] =>
    rows.map((row) => {
      if (row.some(Number.isNaN)) return Number.NaN;
      const [order, place] = [sorted(row), q * (n - 1)];
      const [low, high] = [order[Math.floor(place)]!, order[Math.ceil(place)]!];
      return Math.fround(low + (high - low) * (place % 1));
    });
  const { value, kernels } = await profile(() => median(x, 1));
  expect(kernels.filter(({ name }) => /radix|move|chunks/.test(name))).toEqual([]);
  expect(await value.array()).toEqual(at(0.5));
  for (const [i, expected] of at(0.93).entries()) {
    const [got] = [((await quantile(x, 0.93, 1).array()) as number[])[i]!];
    if (Number.isNaN(expected)) expect(got).toBeNaN();
    else expect(Math.abs(got - expected)).toBeLessThanOrEqual(1e-6 * Math.abs(expected));
  }
  // Several at once are sorted, and those of single ones.
  const both = (await quantile(x, [0.5, 0.93], 1).array()) as number[][];
  expect(both).toEqual([await median(x, 1).array(), await quantile(x, 0.93, 1).array()]);
});

it('gradients of every order go to the elements that a stable sort has there', async () => {
  const n = 300;
  const line = Array.from({ length: n }, (_, i) => (i * 37) % 40);
  const order = line.map((_, i) => i).sort((a, b) => line[a]! - line[b]! || a - b);
  const x = tensor(line, { dtype: 'float64' });
  const cubed = (y: Tensor): Tensor => median(y).pow(3);
  const expected = (at: number): number[] => line.map((_, i) => (i === order[149] || i === order[150] ? at : 0));
  const middle = (line[order[149]!]! + line[order[150]!]!) / 2;
  expect(await grad(cubed)(x).array()).toEqual(expected((3 * middle ** 2) / 2));
  const second = grad((y: Tensor) => sum(grad(cubed)(y)))(x);
  expect(await second.array()).toEqual(expected(3 * middle));
});

it('a line with NaN gives its gradient to a NaN', async () => {
  const x = tensor([
    [1, Number.NaN, 3, Number.NaN],
    [4, 2, 8, 6],
  ]);
  expect(await grad((y: Tensor) => sum(median(y, { axis: 1, interpolation: 'lower' })))(x).array()).toEqual([
    [0, 1, 0, 0],
    [1, 0, 0, 0],
  ]);
});

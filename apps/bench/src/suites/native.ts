/** What machine code is for, and what it has lost at: products in and beyond caches, convolutions, rows, orders, training steps. */
import type { BenchCase } from '../work/cases.ts';
import type { Suite } from '../harness/suite.ts';

const products = (sizes: readonly (readonly [number, number, number])[]): BenchCase[] =>
  sizes.map(([m, n, k]) => ({ id: [m, n, k].join('x'), work: { kind: 'gemm', m, n, k } }));

const square = (n: number) => [n, n, n] as const;

const images = (sizes: readonly (readonly [number, number, number, number])[]): BenchCase[] =>
  sizes.map(([batch, channels, side, filters]) => ({
    id: `conv-${[batch, channels, side, filters].join('x')}`,
    work: { kind: 'conv', batch, channels, side, filters },
  }));

const n = 2 ** 16;
const rows = 2 ** 20;

const quick: readonly BenchCase[] = [
  ...products([square(256), square(512), square(1024)]),
  ...images([[16, 64, 28, 64]]),
  { id: 'softmax', work: { kind: 'softmax', n: rows } },
  { id: 'sort-rows', work: { kind: 'sort-rows', n } },
  { id: 'cnn-adam', work: { kind: 'cnn', batch: 64, optimizer: 'adam' } },
];

const full: readonly BenchCase[] = [
  ...products([
    ...[128, 256, 512, 1000, 1024, 1500, 2048].map(square),
    [128, 784, 128],
    [128, 10, 784],
    [1, 1024, 1024],
    [1024, 8, 1024],
  ]),
  ...images([
    [16, 64, 28, 64],
    [8, 128, 14, 128],
    [64, 8, 14, 16],
  ]),
  { id: 'add', work: { kind: 'add', n } },
  { id: 'gelu', work: { kind: 'gelu', n } },
  { id: 'softmax', work: { kind: 'softmax', n: rows } },
  { id: 'layer-norm', work: { kind: 'layer-norm', n: rows } },
  { id: 'add-transposed', work: { kind: 'add-transposed', n: rows } },
  { id: 'sort-rows', work: { kind: 'sort-rows', n } },
  { id: 'cum-sum-rows', work: { kind: 'cum-sum-rows', n } },
  { id: 'mlp-adam', work: { kind: 'mlp', batch: 128, optimizer: 'adam' } },
  { id: 'cnn-adam', work: { kind: 'cnn', batch: 64, optimizer: 'adam' } },
];

export const native: Suite = {
  name: 'native',
  title: 'Work for the native engine, by case',
  peers: ['cpu-engine', 'numpy', 'torch'],
  cases: (isQuick) => (isQuick ? quick : full),
  goals: () => [],
};

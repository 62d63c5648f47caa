/**
 * `node apps/bench/dist/neighbours.js [--filter TEXT] [--threads N] [--turns N]`: sizes around powers of two, primes among them, in
 * alternation in one process. Lists those more than 25 % below their neighbours.
 *
 * Sizes of a group differ by less than one part in five, and each takes its turn in every round, so a processor that changes its speed
 * does so for all of them. A size is compared by time for an element, best of all turns, with the median of its group.
 */
import { parseArgs } from 'node:util';
import { createCpuEngine } from '@polygrad/backend-cpu';
import {
  add,
  avgPool2d,
  cast,
  contiguous,
  conv2d,
  cumSum,
  type DType,
  depthwiseConv2d,
  gelu,
  layerNorm,
  matmul,
  max,
  maxPool2d,
  permute,
  scope,
  setEngine,
  softmax,
  sort,
  sum,
  type Tensor,
  take,
  tensor,
  transpose,
} from '@polygrad/core';
import { numbers, repetitions, timed } from './turns.ts';

interface Family {
  readonly name: string;
  /** Middles of the groups of sizes. */
  readonly centres: readonly number[];
  readonly shape: (n: number) => readonly number[];
  readonly run: (a: Tensor, b: Tensor) => Tensor;
  /** Shape of a second operand: a kernel. */
  readonly second?: (n: number) => readonly number[];
  /** Dtype of the operands; default: float32. */
  readonly dtype?: DType;
  /** The second operand holds places in the first one, in no order. */
  readonly places?: boolean;
  /** What time is taken for; default: the elements of the first operand. */
  readonly work?: (n: number) => number;
}

const lengths = [64, 256, 1024, 4096, 65536, 1048576];
const widths = [16, 64, 256, 1024, 4096];
const rowsOf = (n: number): number[] => [Math.max(4, Math.floor(262144 / n)), n];
const columnsOf = (n: number): number[] => [n, Math.max(4, Math.floor(262144 / n))];

const families: readonly Family[] = [
  { name: 'add', centres: lengths, shape: (n) => [n], run: (a) => add(a, a) },
  { name: 'gelu', centres: lengths, shape: (n) => [n], run: (a) => gelu(a) },
  { name: 'sum', centres: lengths, shape: (n) => [n], run: (a) => sum(a) },
  { name: 'sum-rows', centres: widths, shape: rowsOf, run: (a) => sum(a, { axis: 1 }) },
  { name: 'max-rows', centres: widths, shape: rowsOf, run: (a) => max(a, { axis: 1 }) },
  { name: 'sum-columns-of', centres: widths, shape: columnsOf, run: (a) => sum(a, { axis: 0 }) },
  { name: 'sum-columns', centres: widths, shape: rowsOf, run: (a) => sum(a, { axis: 0 }) },
  { name: 'max-columns', centres: widths, shape: rowsOf, run: (a) => max(a, { axis: 0 }) },
  {
    name: 'sum-middle',
    centres: [16, 64, 256],
    shape: (n) => [Math.ceil(262144 / n / 64), 64, n],
    run: (a) => sum(a, { axis: 1 }),
  },
  {
    name: 'add-transposed',
    centres: [64, 256, 512, 1024, 2048],
    shape: (n) => [n, n],
    run: (a) => scope(() => add(a, transpose(a))),
  },
  {
    name: 'add-transposed-64',
    centres: [64, 256, 512, 1024],
    shape: (n) => [n, n],
    dtype: 'float64',
    run: (a) => scope(() => add(a, transpose(a))),
  },
  {
    name: 'copy-transposed',
    centres: [64, 256, 512, 1024, 2048],
    shape: (n) => [n, n],
    run: (a) => scope(() => contiguous(transpose(a))),
  },
  {
    name: 'to-nhwc',
    centres: [16, 64, 256],
    shape: (n) => [2, n, 28, 28],
    run: (a) => scope(() => contiguous(permute(a, [0, 2, 3, 1]))),
  },
  {
    name: 'to-nchw',
    centres: [16, 64, 256],
    shape: (n) => [2, 28, 28, n],
    run: (a) => scope(() => contiguous(permute(a, [0, 3, 1, 2]))),
  },
  { name: 'softmax', centres: widths, shape: rowsOf, run: (a) => softmax(a) },
  { name: 'layer-norm', centres: widths, shape: rowsOf, run: (a) => layerNorm(a) },
  { name: 'matmul', centres: [32, 64, 128, 256], shape: (n) => [n, n], run: (a) => matmul(a, a), work: (n) => n ** 3 },
  {
    name: 'matmul-narrow',
    centres: [16, 64],
    shape: (n) => [4096, n],
    second: (n) => [n, 32],
    run: (a, b) => matmul(a, b),
  },
  {
    name: 'conv-size',
    centres: [16, 32, 64],
    shape: (n) => [2, 8, n, n],
    second: () => [8, 8, 3, 3],
    run: (a, b) => conv2d(a, b, { padding: 1 }),
  },
  ...(['nchw', 'nhwc'] as const).flatMap((layout): Family[] => {
    const images = (n: number): number[] => (layout === 'nchw' ? [2, n, 28, 28] : [2, 28, 28, n]);
    return [
      {
        name: `conv-${layout}`,
        centres: [16, 32],
        shape: images,
        second: (n) => [n, n, 3, 3],
        run: (a, b) => conv2d(a, b, { padding: 1, layout }),
        work: (n) => n * n,
      },
      {
        name: `depthwise-${layout}`,
        centres: [16, 64],
        shape: images,
        second: (n) => [n, 1, 3, 3],
        run: (a, b) => depthwiseConv2d(a, b, { padding: 1, layout }),
      },
      { name: `max-pool-${layout}`, centres: [16, 64], shape: images, run: (a) => maxPool2d(a, 2, { layout }) },
      { name: `average-pool-${layout}`, centres: [16, 64], shape: images, run: (a) => avgPool2d(a, 2, { layout }) },
    ];
  }),
  { name: 'cum-sum-rows', centres: widths, shape: rowsOf, run: (a) => cumSum(a, 1) },
  {
    name: 'take-rows',
    centres: widths,
    shape: rowsOf,
    places: true,
    run: (a, b) => take(a, b, 0),
  },
  { name: 'sort-rows', centres: [64, 256, 1024], shape: (n) => [Math.ceil(32768 / n), n], run: (a) => sort(a, 1) },
];

/** Sizes about a power of two: neighbours, a prime among them. */
function sizesAround(centre: number): number[] {
  const step = Math.max(1, Math.floor(centre / 16));
  return [...new Set([centre - step, centre - 1, centre, centre + 1, centre + 3, centre + step])];
}

/** Milliseconds a sample takes at least. */
const sampleMs = 0.4;

function operand({ dtype }: Family, shape: readonly number[], seed: number): Tensor {
  const x = numbers(shape, seed);
  return dtype === undefined ? x : cast(x, dtype);
}

/** Every place below `n` once: steps of a number that shares no factor with most others. */
function placesIn(n: number): Tensor {
  return tensor(Int32Array.from({ length: n }, (_, i) => (i * 7919) % n));
}

/** Nanoseconds for an element, best of all turns, by size. */
async function measure(family: Family, centre: number, turns: number): Promise<Map<number, number>> {
  const entries = [];
  for (const n of sizesAround(centre)) {
    const a = operand(family, family.shape(n), 1);
    const places = family.places === true ? placesIn(family.shape(n)[0] as number) : undefined;
    const b = places ?? (family.second === undefined ? a : operand(family, family.second(n), 2));
    const run = (): Tensor => family.run(a, b);
    const times = await repetitions(run, 12, sampleMs);
    entries.push({ n, work: family.work?.(n) ?? a.size, operands: [a, b], run, times, best: Number.POSITIVE_INFINITY });
  }
  for (let turn = 0; turn < turns; turn++) {
    for (let k = 0; k < entries.length; k++) {
      const entry = entries[(k + turn) % entries.length] as (typeof entries)[number];
      entry.best = Math.min(entry.best, await timed(entry.run, entry.times));
    }
  }
  for (const { operands } of entries) for (const t of new Set(operands)) t.dispose();
  return new Map(entries.map(({ n, work, best }) => [n, (best * 1e6) / work]));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((x, y) => x - y);
  return sorted[sorted.length >> 1] as number;
}

const { values } = parseArgs({
  options: { filter: { type: 'string' }, threads: { type: 'string' }, turns: { type: 'string' } },
});
const turns = Number(values.turns ?? 30);
await setEngine(createCpuEngine({ threads: Number(values.threads ?? 1) }));
let cliffs = 0;
for (const family of families) {
  if (values.filter !== undefined && !family.name.includes(values.filter)) continue;
  for (const centre of family.centres) {
    const found = await measure(family, centre, turns);
    const middle = median([...found.values()]);
    const cells = [...found].map(([n, ns]) => {
      const ratio = middle / ns;
      if (ratio < 0.75) cliffs++;
      return `${n}: ${ratio.toFixed(2)}${ratio < 0.75 ? ' CLIFF' : ''}`;
    });
    process.stdout.write(`${family.name.padEnd(18)} ${middle.toFixed(3).padStart(8)} ns  ${cells.join('  ')}\n`);
  }
}
process.stdout.write(`${cliffs} of these sizes are more than 25 % below their neighbours\n`);
process.exit(0);

/**
 * `node apps/bench/dist/commands/channels-last.js [--filter TEXT] [--threads N] [--turns N]`: images with channels last beside channels first.
 *
 * Convolutions, poolings and batch norm, forward and both gradients, of the same numbers in both layouts, taking turns in one process.
 * The ratio is the time of channels last over that of channels first, each the best of its turns.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import {
  avgPool2d,
  batchNorm,
  conv2d,
  depthwiseConv2d,
  grad,
  type Layout,
  maxPool2d,
  mul,
  scope,
  setEngine,
  sum,
  type Tensor,
} from '@polygrad/core';
import { numbers, repetitions, timed } from './turns.ts';
import { optionsOf } from './usage.ts';

type Run = (x: Tensor, kernel: Tensor, layout: Layout) => Tensor;

interface Family {
  readonly name: string;
  /** Shape of the kernel for so many channels. */
  readonly kernel: (channels: number) => readonly number[];
  readonly run: Run;
  /** What derivatives are taken by. */
  readonly parts: readonly ('input' | 'weight')[];
}

const none = (): number[] => [1];
const square = (c: number): number[] => [c, c, 3, 3];
const deep = (c: number): number[] => [c, 1, 3, 3];
const input = ['input'] as const;
const both = ['input', 'weight'] as const;

const families: readonly Family[] = [
  { name: 'conv', kernel: square, run: (x, k, layout) => conv2d(x, k, { padding: 1, layout }), parts: both },
  {
    name: 'conv-strided',
    kernel: square,
    run: (x, k, layout) => conv2d(x, k, { padding: 1, stride: 2, layout }),
    parts: both,
  },
  { name: 'conv-1x1', kernel: (c) => [c, c, 1, 1], run: (x, k, layout) => conv2d(x, k, { layout }), parts: both },
  {
    name: 'depthwise',
    kernel: deep,
    run: (x, k, layout) => depthwiseConv2d(x, k, { padding: 1, layout }),
    parts: both,
  },
  {
    name: 'depthwise-strided',
    kernel: deep,
    run: (x, k, layout) => depthwiseConv2d(x, k, { padding: 1, stride: 2, layout }),
    parts: both,
  },
  { name: 'max-pool', kernel: none, run: (x, _, layout) => maxPool2d(x, 2, { layout }), parts: input },
  {
    name: 'max-pool-3',
    kernel: none,
    run: (x, _, layout) => maxPool2d(x, 3, { stride: 2, padding: 1, layout }),
    parts: input,
  },
  { name: 'avg-pool', kernel: none, run: (x, _, layout) => avgPool2d(x, 2, { layout }), parts: input },
  {
    name: 'avg-pool-3',
    kernel: none,
    run: (x, _, layout) => avgPool2d(x, 3, { stride: 2, padding: 1, layout }),
    parts: input,
  },
  { name: 'batch-norm', kernel: none, run: (x, _, layout) => batchNorm(x, { training: true, layout }), parts: input },
];

/** Images of so many channels and pixels a side, about 200 thousand elements. */
const sizes: readonly (readonly [channels: number, side: number])[] = [
  [3, 56],
  [8, 56],
  [17, 28],
  [64, 28],
  [64, 7],
];
const elements = 200_000;
const sampleMs = 0.3;

interface Side {
  readonly once: () => Tensor;
  readonly tensors: readonly Tensor[];
}

/** One computation in one layout, ready to run again and again. */
function prepare(family: Family, part: string, channels: number, side: number, layout: Layout): Side {
  const batch = Math.max(1, Math.round(elements / channels / side / side));
  const shape = layout === 'nhwc' ? [batch, side, side, channels] : [batch, channels, side, side];
  const x = numbers(shape, 1);
  const kernel = numbers(family.kernel(channels), 2);
  const forward = (): Tensor => family.run(x, kernel, layout);
  if (part === 'forward') return { once: forward, tensors: [x, kernel] };
  const given = forward();
  const weights = numbers(given.shape, 3);
  given.dispose();
  const loss = (a: Tensor, b: Tensor): Tensor => scope(() => sum(mul(family.run(a, b, layout), weights)));
  const slope = part === 'input' ? grad(loss, { argnums: 0 }) : grad(loss, { argnums: 1 });
  return { once: () => slope(x, kernel), tensors: [x, kernel, weights] };
}

const values = optionsOf(import.meta.url, {
  filter: { type: 'string' },
  threads: { type: 'string', default: '1' },
  turns: { type: 'string', default: '40' },
});
/** Slower than this is too far apart. */
const limit = 1.25;
const turns = Number(values.turns);
await setEngine(createCpuEngine({ threads: Number(values.threads) }));
let far = 0;
process.stdout.write(
  `time of channels last over channels first, best of ${turns} turns, ${values.threads} thread(s)\n`,
);
for (const family of families) {
  for (const part of ['forward', ...family.parts]) {
    const name = `${family.name} ${part}`;
    if (values.filter !== undefined && !name.includes(values.filter)) continue;
    const cells: string[] = [];
    for (const [channels, side] of sizes) {
      const sides = (['nchw', 'nhwc'] as const).map((layout) => prepare(family, part, channels, side, layout));
      const [first, last] = sides as [Side, Side];
      const times: number[] = [];
      for (const { once } of sides) times.push(await repetitions(once, 6, sampleMs));
      const [n, m] = times as [number, number];
      const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY] as [number, number];
      for (let turn = 0; turn < turns; turn++) {
        best[0] = Math.min(best[0], await timed(first.once, n));
        best[1] = Math.min(best[1], await timed(last.once, m));
      }
      const ratio = best[1] / best[0];
      if (ratio > limit) far++;
      const cell = `${channels}x${side}: ${ratio.toFixed(2)}${ratio > limit ? '*' : ' '} (${(best[0] * 1000).toFixed(0)} us)`;
      cells.push(cell.padEnd(23));
      for (const { tensors } of sides) for (const t of tensors) t.dispose();
    }
    process.stdout.write(`${name.padEnd(25)} ${cells.join(' ')}\n`);
  }
}
process.stdout.write(`${far} of these take more than ${limit} times as long (*)\n`);
process.exit(0);

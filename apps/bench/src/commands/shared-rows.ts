/**
 * `node apps/bench/dist/commands/shared-rows.js [--engine NAME] [--filter TEXT] [--rounds N] [--programs]`: kernels of plans that sizes
 * share beside those of plans for one size, where rows are short or end at a size: attention, joined rows, positions of extrema, transposes.
 *
 * Each case has two engines in one process. Both have met the case at sizes one less, so that the plan of one of them is that of a class;
 * the other plans each size for itself. They take turns, and the least time inside of `submit` counts. `--programs` prints the kernels of both.
 */
import {
  argMax,
  concat,
  einsum,
  flush,
  getEngine,
  grad,
  matmul,
  max,
  mul,
  pad,
  profile,
  reshape,
  scaledDotProductAttention,
  scope,
  setDynamicSizes,
  setEngine,
  softmax,
  stats,
  sum,
  type Tensor,
  tensor,
  transpose,
} from '@polygrad/core';
import type { IEngine } from '@polygrad/core/engine';
import { printProgram } from '@polygrad/core/kernel';
import { geometricMean } from '../harness/stats.ts';
import { load } from '../reports/machine.ts';
import { createRunner } from '../runners/polygrad.ts';
import { fill } from '../work/inputs.ts';
import { tools } from '../work/tools.ts';
import { optionsOf } from './usage.ts';

type Results = Tensor | readonly Tensor[];

/** Shapes of operands at some sizes, and what is computed. */
interface Case {
  readonly name: string;
  readonly sizes: readonly (readonly number[])[];
  readonly shapes: (...n: number[]) => readonly (readonly number[])[];
  readonly f: (...x: Tensor[]) => Results;
}

const swapped = (x: Tensor): Tensor => transpose(x, -2, -1);
/** Operands that all have the sizes as their shape. */
const alike =
  (count: number) =>
  (...n: number[]): number[][] =>
    Array.from({ length: count }, () => n);
const heads = (t: number): number[][] => [1, 2, 3].map(() => [16, 4, t, 32]);
const attention = (...[q, k, v]: Tensor[]): Tensor => matmul(softmax(matmul(q!, swapped(k!)), -1), v!);
const gradients = (f: (...x: Tensor[]) => Tensor, ...x: Tensor[]): readonly Tensor[] =>
  grad(
    (...inputs: Tensor[]) => {
      const y = f(...inputs);
      return sum(mul(y, y));
    },
    { argnums: [0, 1, 2] },
  )(...x);
const columns = [
  [1000, 5],
  [500, 9],
  [2000, 3],
  [300, 19],
  [1000, 45],
  [200, 301],
] as const;
const lengths = [[9], [21], [33], [67], [100]] as const;

const cases: readonly Case[] = [
  {
    name: 'scores',
    sizes: lengths,
    shapes: (t) => heads(t).slice(1),
    f: (q, k) => matmul(q!, swapped(k!)),
  },
  { name: 'attention', sizes: lengths, shapes: heads, f: (q, k, v) => attention(q!, k!, v!) },
  {
    name: 'gradients of attention',
    sizes: lengths,
    shapes: heads,
    f: (...x) => gradients(attention, ...x),
  },
  {
    name: 'sdpa',
    sizes: lengths,
    shapes: heads,
    f: (q, k, v) => scaledDotProductAttention(q!, k!, v!),
  },
  {
    name: 'gradients of sdpa',
    sizes: lengths,
    shapes: heads,
    f: (...x) => gradients((q, k, v) => scaledDotProductAttention(q!, k!, v!), ...x),
  },
  {
    name: 'einsum bij,bkj->bik',
    sizes: [
      [17, 23, 37],
      [50, 33, 11],
      [9, 71, 100],
      [5, 9, 12],
    ],
    shapes: alike(2),
    f: (a, b) => einsum('bij,bkj->bik', a!, b!),
  },
  {
    name: 'sum over joined rows',
    sizes: columns,
    shapes: alike(2),
    f: (a, b) => sum(concat([a!, b!], 1), 1),
  },
  {
    name: 'max over joined rows',
    sizes: columns,
    shapes: alike(2),
    f: (a, b) => max(concat([a!, b!], 1), 1),
  },
  {
    name: 'softmax of joined rows',
    sizes: columns,
    shapes: alike(2),
    f: (a, b) => softmax(concat([a!, b!], 1), 1),
  },
  {
    name: 'sum over both of pad',
    sizes: columns,
    shapes: alike(1),
    f: (a) =>
      sum(
        pad(a!, [
          [0, 0],
          [1, 2],
        ]),
        1,
      ),
  },
  {
    name: 'sum of reshaped',
    sizes: [
      [17, 23, 37],
      [50, 33, 11],
      [300, 5, 6],
    ],
    shapes: alike(1),
    f: (x) => sum(reshape(x!, [x!.shape[0]!, -1]), 1),
  },
  {
    name: 'argMax',
    sizes: [
      [1000, 5],
      [1000, 9],
      [1000, 33],
      [1000, 36],
      [1000, 40],
      [1000, 48],
      [1000, 63],
      [300, 301],
    ],
    shapes: alike(1),
    f: (x) => argMax(x!, 1),
  },
  {
    name: 'concat',
    sizes: columns,
    shapes: alike(2),
    f: (a, b) => concat([a!, b!], 1),
  },
  {
    name: 'concat of three',
    sizes: columns,
    shapes: alike(3),
    f: (a, b, c) => concat([a!, b!, c!], 1),
  },
  {
    name: 'sum of squares',
    sizes: [
      [3000, 5],
      [3000, 6],
      [3000, 7],
      [3000, 9],
    ],
    shapes: alike(1),
    f: (x) => sum(mul(x!, x!), 1),
  },
  {
    name: 'softmax',
    sizes: [
      [3000, 5],
      [3000, 6],
      [3000, 7],
      [3000, 9],
    ],
    shapes: alike(1),
    f: (x) => softmax(x!, 1),
  },
  {
    name: 'transpose',
    sizes: [
      [3000, 5],
      [3000, 6],
      [3000, 7],
      [3000, 12],
      [1000, 45],
    ],
    shapes: alike(1),
    f: (x) => mul(swapped(x!), 2),
  },
  {
    name: 'transpose of three',
    sizes: [
      [300, 33, 5],
      [100, 64, 9],
    ],
    shapes: alike(1),
    f: (x) => mul(swapped(x!), 2),
  },
];

/** From these nanoseconds on, a run is likely to be interrupted where others work, and processor time counts. */
const leastByProcessor = 5e5;

interface Side {
  readonly engine: IEngine;
  readonly compute: () => Results;
  readonly binds: number;
  /** Nanoseconds inside of `submit` since they were last set to zero, and the least of one run. */
  time: number;
  best: number;
}

const operandsOf = (shapes: readonly (readonly number[])[]): Tensor[] =>
  shapes.map((shape, i) => {
    const count = shape.reduce((product, n) => product * n, 1);
    return tensor(fill(i + 1, count, -1, 1), { shape });
  });

async function once({ engine, compute }: Pick<Side, 'engine' | 'compute'>): Promise<void> {
  const results = scope(compute);
  flush();
  await engine.idle();
  for (const y of [results].flat()) y.dispose();
}

/** A case on an engine of its own, which has met it at sizes one less. */
async function sideOf(name: string, { shapes, f }: Case, n: readonly number[], shares: boolean): Promise<Side> {
  await createRunner({ engine: name, threads: 1, folder: '', tools });
  const engine = getEngine();
  setDynamicSizes(shares ? 'automatic' : 'never');
  const before = operandsOf(shapes(...n.map((x) => x - 1)));
  await once({ engine, compute: () => f(...before) });
  for (const x of before) x.dispose();
  const operands = operandsOf(shapes(...n));
  const compute = (): Results => f(...operands);
  await once({ engine, compute });
  const side: Side = { engine, compute, binds: stats().binds, time: 0, best: Number.POSITIVE_INFINITY };
  const submit = engine.submit.bind(engine);
  engine.submit = (commands) => {
    const before = process.cpuUsage();
    const start = process.hrtime.bigint();
    submit(commands);
    const clock = Number(process.hrtime.bigint() - start);
    const { user, system } = process.cpuUsage(before);
    side.time += clock < leastByProcessor ? clock : Math.min(clock, (user + system) * 1e3);
  };
  return side;
}

/** The kernels of a side: their loops, and with `programs` all of their programs. */
async function kernelsOf(side: Side): Promise<string> {
  await setEngine(side.engine);
  const { kernels } = await profile(() => once(side));
  const least = kernels.map(() => Number.POSITIVE_INFINITY);
  for (let i = 0; i < 100; i++)
    for (const [at, { milliseconds }] of (await profile(() => once(side))).kernels.entries())
      least[at] = Math.min(least[at]!, milliseconds ?? Number.NaN);
  return kernels
    .map(({ name, transforms, program }, at) => {
      const time = ` ${(least[at]! * 1e3).toFixed(1)} us`;
      return `## ${name}${time}\n${transforms.join('\n')}\n${printProgram(program)}\n`;
    })
    .join('\n');
}

const values = optionsOf(import.meta.url, {
  engine: { type: 'string', default: 'native' },
  filter: { type: 'string', default: '' },
  rounds: { type: 'string', default: '20' },
  programs: { type: 'boolean', default: false },
});
const rounds = Number(values.rounds);
/** Milliseconds of one turn. */
const turn = 8;
const ratios: number[] = [];
process.stdout.write(
  `${values.engine}, one thread, least of ${rounds} turns of ${turn} ms, load ${load().toFixed(0)}\n`,
);
for (const one of cases)
  for (const n of one.sizes) {
    const name = `${one.name} ${n.join('x')}`;
    if (!values.filter.split(',').some((text) => name.includes(text))) continue;
    const sides = [await sideOf(values.engine, one, n, false), await sideOf(values.engine, one, n, true)] as const;
    for (let round = 0; round < rounds; round++)
      for (const side of sides) {
        await setEngine(side.engine);
        for (const until = performance.now() + turn; performance.now() < until; ) {
          side.time = 0;
          await once(side);
          side.best = Math.min(side.best, side.time);
        }
      }
    const [own, shared] = sides;
    const ratio = own.best / shared.best;
    const times = [own, shared].map(({ best }) => `${(best / 1e3).toFixed(1).padStart(9)} us`).join('');
    process.stdout.write(`${name.padEnd(34)}${times}  ${shared.binds === 0 ? 'own plans' : ratio.toFixed(2)}\n`);
    if (shared.binds > 0) ratios.push(ratio);
    if (values.programs) process.stdout.write(`# own\n${await kernelsOf(own)}\n# shared\n${await kernelsOf(shared)}\n`);
    for (const { engine } of sides) engine.dispose();
  }
if (ratios.length > 0) {
  const sorted = [...ratios].sort((a, b) => a - b);
  const below = sorted.filter((ratio) => ratio < 0.9).length;
  process.stdout.write(
    `${sorted.length} with shared plans: median ${sorted[sorted.length >> 1]!.toFixed(2)}, ` +
      `geometric mean ${geometricMean(sorted).toFixed(2)}, least ${sorted[0]!.toFixed(2)}; ${below} below 0.90\n`,
  );
}
process.exit(0);

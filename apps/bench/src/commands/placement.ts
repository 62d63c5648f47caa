/**
 * What choosing engines costs: the time of each operation under the policy `automatic` against that on the CPU engine alone and on a device alone.
 * Sizes go from 100 elements on, and all take turns in one process.
 *
 *     node apps/bench/dist/commands/placement.js [--device native|opencl|webgpu] [--most 1000000] [--rounds 40] [--budget 15000] [--threads N] [--here]
 *
 * Inputs stay between runs, and results are not read; they are made three times. `--here`: all thresholds are infinite, so all stays on the CPU engine, and is compared with it. A round is some
 * samples of half a millisecond of each of the three. Figures are the fewest milliseconds of a run in any sample, and those of the tenth of all samples that
 * were fastest. What comes before is told apart: the first runs, in which is decided and data moved, with plans and kernels that are there.
 */
import { loadavg } from 'node:os';
import '@polygrad/backend-cpu';
import {
  calibrate,
  ExecutionContext,
  flush,
  getBackend,
  type IEngine,
  idle,
  type OperationFamily,
  setEngine,
  type Tensor,
} from '@polygrad/core';
import { numbers } from './turns.ts';
import { optionsOf } from './usage.ts';

const works: Readonly<
  Record<string, (n: number) => readonly [inputs: readonly Tensor[], run: (x: readonly Tensor[]) => Tensor]>
> = {
  elementwise: (n) => [
    [numbers([n], 1), numbers([n], 2)],
    ([x, y]) => {
      const product = x!.mul(y!);
      const sum = product.add(1);
      product.dispose();
      return sum;
    },
  ],
  reduction: (n) => [[numbers([n], 1)], ([x]) => x!.sum()],
  product: (n) => {
    const side = Math.round(Math.sqrt(n));
    return [[numbers([side, side], 1), numbers([side, side], 2)], ([x, y]) => x!.matmul(y!)];
  },
};

const least = (values: readonly number[]): number => Math.min(...values);

/** The tenth of all that is fastest ends here. */
function tenth(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 10)]!;
}

const percent = (x: number): string => `${(100 * (x - 1)).toFixed(1)} %`;

interface Way {
  readonly run: () => Tensor;
  readonly enter: () => Promise<() => void>;
  readonly times: number[];
}

/** Milliseconds of a sample, and of the runs before the first one, about; samples of a turn. */
const sampleMs = 0.5;
const samples = 4;
const startMs = 200;
/** How often data is made. */
const trials = 3;

/** Milliseconds of a run, of so many. */
async function timed(run: () => Tensor, times: number): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < times; i++) {
    const y = run();
    flush();
    y.dispose();
  }
  await idle();
  return (performance.now() - start) / times;
}

/** The first so many runs: where the last was done, the runs up to the first one that was done there and stayed, and their milliseconds. */
async function started(run: () => Tensor, most: number): Promise<{ where: string; runs: number; time: number }> {
  let where = '';
  let [runs, time] = [0, 0];
  const start = performance.now();
  for (let i = 1; i <= most; i++) {
    const y = run();
    flush();
    if (y.device !== where) [where, runs, time] = [y.device, i, performance.now() - start];
    y.dispose();
  }
  await idle();
  return { where, runs, time };
}

const text = { type: 'string' } as const;
const values = optionsOf(import.meta.url, {
  device: { ...text, default: 'native' },
  most: { ...text, default: '1000000' },
  rounds: { ...text, default: '40' },
  budget: { ...text, default: '15000' },
  threads: { ...text, default: '0' },
  here: { type: 'boolean', default: false },
});
const { device: name, here: staysHere } = values;
const [most, rounds, threads] = [Number(values.most), Number(values.rounds), Number(values.threads)];
const families = [
  'elementwise',
  'reduction',
  'product',
  'convolution',
  'indexing',
  'sort',
  'scan',
] satisfies OperationFamily[];
await import(`@polygrad/backend-${name}`);
const options = threads > 0 ? { threads } : {};
const cpu = await setEngine('cpu', options);
const device: IEngine = await getBackend(name)!.create(name === 'native' ? options : {});
const thresholds = await calibrate({ device, budget: Number(values.budget), store: null });
if (staysHere) for (const family of families) thresholds.set(family, Number.POSITIVE_INFINITY);
const shown = families.map((family) => `${family} ${thresholds.get(family).toPrecision(2)}`).join(', ');
process.stdout.write(`${name} (${device.device}), load ${loadavg()[0]!.toFixed(1)}\nthresholds: ${shown}\n`);
process.stdout.write(
  'work         elements     cpu ms  device ms    auto ms  where    over the better: least, tenth   start ms (runs)\n',
);

const counts: number[] = [];
for (let n = 100; n <= most; n *= 10) counts.push(n);
// The first row is measured once more before all others, and not shown: by then JavaScript is compiled well.
let isShown = false;
for (const [work, make] of Object.entries(works)) {
  for (const n of isShown ? counts : [counts[0]!, ...counts]) {
    const on = (engine: IEngine) => async (): Promise<() => void> => {
      await setEngine(engine);
      return () => {};
    };
    const context = new ExecutionContext({ policy: 'automatic', device, thresholds });
    const placed = async (): Promise<() => void> => {
      await setEngine(cpu);
      await context.activate();
      return () => context.deactivate();
    };
    const times: Readonly<Record<'cpu' | 'device' | 'auto', number[]>> = { cpu: [], device: [], auto: [] };
    let first: Awaited<ReturnType<typeof started>> | null = null;
    // Where memory lies makes some percent, so data is made more than once.
    for (let trial = 0; trial < trials; trial++) {
      // What is on the CPU engine at first is the same data for both.
      const [here, run] = make(n);
      await setEngine(device);
      const [there] = make(n);
      const ways: readonly Way[] = [
        { run: () => run(here), enter: on(cpu), times: times.cpu },
        { run: () => run(there), enter: on(device), times: times.device },
        { run: () => run(here), enter: placed, times: times.auto },
      ];
      let repeats = 1;
      for (const { run, enter } of ways.slice(0, 2)) {
        const leave = await enter();
        await timed(run, 3);
        repeats = Math.max(repeats, Math.ceil(sampleMs / (await timed(run, 20))));
        leave();
      }
      const leave = await placed();
      const start = await started(ways[2]!.run, Math.max(20, Math.ceil((repeats * startMs) / sampleMs)));
      first ??= start;
      leave();
      for (let round = 0; round < rounds / trials; round++) {
        for (let at = 0; at < ways.length; at++) {
          const { run, enter, times } = ways[(at + round) % ways.length]!;
          const leave = await enter();
          // Decisions are made anew with every activation: what is measured is what they cost from then on.
          await timed(run, Math.max(3, repeats));
          for (let i = 0; i < samples; i++) times.push(await timed(run, repeats));
          leave();
        }
      }
      for (const t of [...here, ...there]) t.dispose();
    }
    const over = (of: (values: readonly number[]) => number): string =>
      percent(of(times.auto) / (staysHere ? of(times.cpu) : Math.min(of(times.cpu), of(times.device))));
    const cells = Object.values(times).map((list) => least(list).toPrecision(3).padStart(10));
    const { where, runs, time } = first!;
    const before = Math.max(0, time - runs * tenth(times.auto));
    if (isShown)
      process.stdout.write(
        `${work.padEnd(12)} ${String(n).padStart(8)} ${cells.join(' ')}  ${where.padEnd(8)} ${over(least).padStart(12)} ${over(tenth).padStart(12)}   ${before.toFixed(1).padStart(10)} (${runs})\n`,
      );
    isShown = true;
  }
}
process.stdout.write(`load ${loadavg()[0]!.toFixed(1)}\n`);
process.exit(0);

/**
 * What choosing engines costs: the time of each operation under the policy `automatic` against that on the CPU engine alone and on a device
 * alone, at sizes from 100 elements on, in turns in one process.
 *
 *     node apps/bench/dist/commands/placement.js [--device opencl|webgpu|native] [--most 1000000] [--rounds 15] [--here]
 *
 * Inputs stay between runs, and results are not read. `--here`: all thresholds are infinite, so all stays on the CPU engine. Each figure is the
 * median of the rounds' ratios; a round times all three, the first of them another one each time.
 */
import '@polygrad/backend-cpu';
import {
  calibrate,
  ExecutionContext,
  flush,
  getBackend,
  type IEngine,
  idle,
  setEngine,
  type Tensor,
} from '@polygrad/core';
import { numbers } from './turns.ts';

const works: Readonly<
  Record<string, (n: number) => readonly [inputs: readonly Tensor[], run: (x: readonly Tensor[]) => Tensor]>
> = {
  elementwise: (n) => [[numbers([n], 1), numbers([n], 2)], ([x, y]) => x!.mul(y!).add(1)],
  reduction: (n) => [[numbers([n], 1)], ([x]) => x!.sum()],
  product: (n) => {
    const side = Math.round(Math.sqrt(n));
    return [[numbers([side, side], 1), numbers([side, side], 2)], ([x, y]) => x!.matmul(y!)];
  },
};

function argument(name: string, usual: string): string {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? usual : (process.argv[at + 1] ?? usual);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}

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

const name = argument('device', 'opencl');
const most = Number(argument('most', '1000000'));
const rounds = Number(argument('rounds', '15'));
const staysHere = process.argv.includes('--here');
await import(`@polygrad/backend-${name}`);
const cpu = await setEngine('cpu');
const device: IEngine = await getBackend(name)!.create();
const thresholds = await calibrate({ device, budget: 2000, store: null });
if (staysHere)
  for (const family of Object.keys(works)) thresholds.set(family as 'elementwise', Number.POSITIVE_INFINITY);
process.stdout.write(`${name} (${device.device}): thresholds ${JSON.stringify(thresholds)}\n`);
process.stdout.write('work         elements     cpu ms  device ms    auto ms  over the better\n');

for (const [work, make] of Object.entries(works)) {
  for (let n = 100; n <= most; n *= 10) {
    const ways: {
      readonly run: () => Tensor;
      readonly enter: () => Promise<() => void>;
      readonly dispose: () => void;
    }[] = [];
    for (const way of ['cpu', 'device', 'auto'] as const) {
      const context = new ExecutionContext({ policy: 'automatic', device, thresholds });
      const enter = async (): Promise<() => void> => {
        if (way !== 'auto') {
          await setEngine(way === 'cpu' ? cpu : device);
          return () => {};
        }
        await setEngine(cpu);
        await context.activate();
        return () => context.deactivate();
      };
      const leave = await enter();
      const [inputs, run] = make(n);
      ways.push({ run: () => run(inputs), enter, dispose: () => inputs.forEach((t) => void t.dispose()) });
      leave();
    }
    const times: number[][] = [[], [], []];
    let repeats = 20;
    for (let round = -3; round < rounds; round++) {
      for (let at = 0; at < ways.length; at++) {
        const which = (at + round + 3) % ways.length;
        const leave = await ways[which]!.enter();
        // Decisions are made anew with every activation: what is measured is what they cost from then on.
        await timed(ways[which]!.run, 3);
        const time = await timed(ways[which]!.run, repeats);
        leave();
        if (round >= 0) times[which]!.push(time);
        else repeats = Math.max(3, Math.min(2000, Math.ceil(10 / time)));
      }
    }
    const over = times[2]!.map((auto, i) => auto / Math.min(times[0]![i]!, times[1]![i]!));
    const ratio = Math.min(...times[2]!) / Math.min(...times[0]!, ...times[1]!);
    const cells = times.map((list) =>
      Math.min(...list)
        .toPrecision(3)
        .padStart(10),
    );
    process.stdout.write(
      `${work.padEnd(12)} ${String(n).padStart(8)} ${cells.join(' ')}  best ${(100 * (ratio - 1)).toFixed(1)} %, median ${(100 * (median(over) - 1)).toFixed(1)} %\n`,
    );
    for (const { dispose } of ways) dispose();
  }
}
process.exit(0);

/**
 * `node apps/bench/dist/commands/attention.js [--engine cpu|native] [--turns N] [--only TEXT]`: attention in one kernel beside its whole form and that in
 * blocks, forward and with the gradients of all operands.
 *
 * The forms take turns in one process, with one thread. A figure is the least of a form's turns: whole time or processor time, whichever is less. So
 * what else runs on the machine shows as little as it can.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createNativeEngine } from '@polygrad/backend-native';
import {
  type AttentionOptions,
  flush,
  getEngine,
  grads,
  keep,
  scaledDotProductAttention,
  scope,
  setEngine,
  square,
  sum,
  type Tensor,
} from '@polygrad/core';
import { load } from '../reports/machine.ts';
import { numbers } from './turns.ts';
import { optionsOf } from './usage.ts';

type Shape = readonly [batch: number, heads: number, rows: number, columns: number, width: number];

const cases: readonly (readonly [name: string, shape: Shape, causal: boolean])[] = [
  ['GPT, batch 8', [8, 4, 128, 128, 64], true],
  ['256 places', [2, 8, 256, 256, 64], true],
  ['512 places', [1, 8, 512, 512, 64], true],
  ['512 places', [1, 8, 512, 512, 64], false],
  ['512 places, wide heads', [1, 8, 512, 512, 128], true],
  ['1024 places', [1, 8, 1024, 1024, 64], true],
  ['1024 places', [1, 8, 1024, 1024, 64], false],
  ['2048 places', [1, 4, 2048, 2048, 64], true],
  ['4096 places', [1, 2, 4096, 4096, 64], true],
  ['one query', [1, 8, 1, 512, 64], false],
];

const forms = ['whole', 'blocks', 'kernel'] as const;

const values = optionsOf(import.meta.url, {
  engine: { type: 'string', default: 'cpu' },
  turns: { type: 'string', default: '15' },
  only: { type: 'string', default: '' },
});

/** Milliseconds of one computation. */
async function timed(run: () => readonly Tensor[]): Promise<number> {
  const [before, start] = [process.cpuUsage(), performance.now()];
  const results = scope(() => run().map((t) => keep(t)));
  flush();
  await getEngine().idle();
  const { user, system } = process.cpuUsage(before);
  const least = Math.min(performance.now() - start, (user + system) / 1000);
  for (const t of results) t.dispose();
  return least;
}

await setEngine(
  values.engine === 'native' ? createNativeEngine({ threads: 1 }) : await createCpuEngine({ threads: 1 }),
);
process.stdout.write(
  `${getEngine().name}, milliseconds, least of ${values.turns} turns, load ${load().toFixed(0)}\n` +
    `| shape | pass | ${forms.join(' | ')} |\n| --- | --- | ${forms.map(() => '---').join(' | ')} |\n`,
);
for (const [name, [batch, heads, rows, columns, width], causal] of cases) {
  if (!name.includes(values.only)) continue;
  const operands = [rows, columns, columns].map((n, i) => numbers([batch, heads, n, width], i + 1));
  for (const pass of ['forward', 'with gradients']) {
    const best: number[] = forms.map(() => Number.POSITIVE_INFINITY);
    const runs = forms.map((form) => {
      const options: AttentionOptions = { form, causal };
      const attend = (...[q, k, v]: Tensor[]): Tensor =>
        scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, options);
      const backward = grads((...xs: Tensor[]) => sum(square(attend(...xs))));
      return pass === 'forward' ? () => [attend(...operands)] : () => backward(...operands) as Tensor[];
    });
    for (let turn = -2; turn < Number(values.turns); turn++)
      for (const [i, run] of runs.entries()) {
        const took = await timed(run);
        if (turn >= 0) best[i] = Math.min(best[i]!, took);
      }
    const figures = best.map((ms) => ms.toFixed(ms < 1 ? 2 : 1)).join(' | ');
    process.stdout.write(
      `| ${name}${causal ? ', causal' : ''}: ${batch} x ${heads} heads of ${width} | ${pass} | ${figures} |\n`,
    );
  }
}

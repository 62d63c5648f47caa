/**
 * `node apps/bench/dist/commands/replays.js [--turns N] [--batch N]`: a step of training with `compile` beside the same step without.
 *
 * Both take turns in one process, with networks of their own that began alike. On the engine that computes nothing the figure is time of JavaScript
 * alone, with the comparisons that `compile` makes in between. On the CPU engine, with one thread, it is that of whole steps.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { compile, crossEntropy, getEngine, randint, scope, seed, setEngine, type Tensor } from '@polygrad/core';
import { Adam, type AnyModule, Linear, lossAndGrad, ReLU, Sequential } from '@polygrad/nn';
import { createNullEngine } from '@polygrad/testing';
import { cnn } from '../networks/images.ts';
import { load } from '../reports/machine.ts';
import { numbers } from './turns.ts';
import { optionsOf } from './usage.ts';

interface Case {
  readonly name: string;
  readonly input: readonly number[];
  readonly model: () => { readonly model: AnyModule; readonly loss: (x: Tensor, y: Tensor) => Tensor };
}

const cases: readonly Case[] = [
  {
    name: 'mlp',
    input: [784],
    model: () => {
      const model = new Sequential(new Linear(784, 128), new ReLU(), new Linear(128, 10));
      return { model, loss: (x, y) => crossEntropy(model.forward(x), y) };
    },
  },
  { name: 'cnn', input: [1, 28, 28], model: cnn },
];

type Step = (x: Tensor, y: Tensor) => Tensor;

function stepOf(one: Case): Step {
  seed(1);
  const { model, loss } = one.model();
  const optimizer = new Adam(model.parameters());
  return (x, y) => {
    const { value, grads } = lossAndGrad(model, () => loss(x, y));
    optimizer.step(grads);
    return value;
  };
}

/** Steps of a turn: as many as lie between two comparisons. */
const steps = 129;

/** Microseconds for a step. */
async function turn(step: Step, x: Tensor, y: Tensor): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < steps; i++) step(x, y).dispose();
  await getEngine().idle();
  return ((performance.now() - start) / steps) * 1000;
}

const values = optionsOf(import.meta.url, {
  turns: { type: 'string', default: '30' },
  batch: { type: 'string', default: '32' },
});
const [turns, batch] = [Number(values.turns), Number(values.batch)];
process.stdout.write(
  `microseconds for a step, least and median of ${turns} turns; batch ${batch}, load ${load().toFixed(0)}\n`,
);
for (const engine of [createNullEngine(), await createCpuEngine({ threads: 1 })]) {
  await setEngine(engine);
  for (const one of cases) {
    const [x, y] = [numbers([batch, ...one.input], 1), scope(() => randint(0, 10, [batch]))];
    const plain = stepOf(one);
    const forms: readonly (readonly [string, Step])[] = [
      ['recorded', (a, b) => scope(() => plain(a, b))],
      ['compiled', compile(stepOf(one))],
    ];
    const found = forms.map((): number[] => []);
    for (let i = 0; i < turns; i++)
      for (const [at, [, step]] of forms.entries()) found[at]?.push(await turn(step, x, y));
    const text = found.map((samples, at) => {
      const sorted = [...samples].sort((a, b) => a - b);
      return `${forms[at]?.[0]} ${sorted[0]?.toFixed(1)} / ${sorted[sorted.length >> 1]?.toFixed(1)}`;
    });
    process.stdout.write(`${engine.name} ${one.name}: ${text.join(', ')}\n`);
  }
}

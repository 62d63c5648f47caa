/**
 * Steps whose work fails, at every call of an engine and in every mode of recording. Parameters, state and count are those of the last step that was
 * completed. The training goes on from there to the bits it would have had.
 */
import {
  flush,
  grads,
  idle,
  PolygradError,
  scope,
  setEager,
  setEngine,
  setPendingLimits,
  type Tensor,
  tensor,
} from '@polygrad/core';
import {
  createFaultyEngine,
  createReferenceEngine,
  type Fault,
  faultKinds,
  type FaultyMember,
} from '@polygrad/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { parameter } from '../module/parameter.ts';
import { Adam } from './adam.ts';
import { ParameterGroups } from './groups.ts';
import type { Optimizer } from './optimizer.ts';
import { SGD } from './sgd.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

const steps = 4;
const engine = createFaultyEngine(createReferenceEngine());

/** How operations are recorded and when they are flushed. */
const modes = {
  'as usual': () => undefined,
  'op by op': () => setEager(true),
  'with few pending nodes': () => setPendingLimits({ nodes: 3 }),
  'with few pending bytes': () => setPendingLimits({ bytes: 1 }),
};

const optimizers: Record<string, (parameters: Tensor[]) => Optimizer> = {
  momentum: (parameters) => new SGD(parameters, { lr: 0.1, momentum: 0.9 }),
  Adam: (parameters) => new Adam(parameters, { lr: 0.1 }),
  groups: ([first, ...others]) =>
    new ParameterGroups(SGD, [{ parameters: [first!], lr: 0.05 }, { parameters: others }], { lr: 0.1, momentum: 0.9 }),
};

interface Training {
  step(): void;
  /** Parameters, state and count as one text. */
  state(): Promise<string>;
  dispose(): void;
}

async function makeTraining(make: (parameters: Tensor[]) => Optimizer): Promise<Training> {
  const parameters = [[0.5, -1], [2], [0.25, 1, -3]].map((values) => parameter(tensor(values)));
  const optimizer = make(parameters);
  const loss = (a: Tensor, b: Tensor, c: Tensor): Tensor => a.mul(b).square().sum().add(c.mul(b).sin().sum());
  await idle();
  return {
    step: () => scope(() => optimizer.step(scope(() => grads(loss)(...(parameters as [Tensor, Tensor, Tensor]))))),
    state: async () => {
      const values: unknown[] = [];
      for (const p of parameters) values.push(await p.array());
      const { slots, steps: count } = await optimizer.state();
      return JSON.stringify([count, values, Object.values(slots).map(({ data }) => [...data])]);
    },
    dispose: () => {
      optimizer.dispose();
      for (const p of parameters) p.dispose();
    },
  };
}

/** The state after each step, and the calls of the engine that one step makes. */
async function healthy(make: (parameters: Tensor[]) => Optimizer, mode: () => void) {
  const training = await makeTraining(make);
  mode();
  const states = [await training.state()];
  engine.arm(null);
  for (let at = 0; at < steps; at++) {
    training.step();
    states.push(await training.state());
  }
  const calls = { ...engine.calls };
  training.dispose();
  flush();
  await idle();
  return { states, calls };
}

afterEach(() => {
  engine.arm(null);
  setEager(false);
  setPendingLimits();
});

const allModes = Object.keys(modes) as (keyof typeof modes)[];
describe.each(allModes)('a step that fails, recorded %s', (mode) => {
  it.each(sampled(Object.keys(optimizers), 3, allModes.indexOf(mode)))(
    'leaves the values of the last one that was completed: %s',
    async (name) => {
      const make = optimizers[name]!;
      await setEngine(engine);
      const { states, calls } = await healthy(make, modes[mode]);
      const broken: string[] = [];
      let failed = 0;
      for (const member of ['alloc', 'compile', 'submit'] as FaultyMember[])
        for (const kind of faultKinds[member].filter((one) => one === 'memory' || one === 'refused'))
          for (let at = 1; at <= calls[member]; at++) {
            const fault: Fault = { member, kind, at, times: 2, begun: 1 };
            const training = await makeTraining(make);
            modes[mode]();
            engine.arm(fault);
            for (let done = 0, tries = 0; done < steps; tries++) {
              expect(tries).toBeLessThan(5 * steps);
              try {
                training.step();
              } catch (error) {
                if (!(error instanceof PolygradError)) throw error;
                failed++;
              }
              let state: string | null = null;
              while (state === null) state = await training.state().catch(() => null);
              done = states.indexOf(state);
              if (done >= 0) continue;
              broken.push(`${kind} at ${member} ${at}: ${state}`);
              break;
            }
            engine.arm(null);
            training.dispose();
          }
      expect(broken).toEqual([]);
      expect(failed).toBeGreaterThan(0);
    },
  );
});

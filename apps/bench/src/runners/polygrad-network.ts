/** Networks of Polygrad: training steps as `fit` writes them, repeated at one size or done at one size after the other. */
import {
  announce,
  compile,
  memory,
  noGrad,
  scope,
  type ScheduleStats,
  stats,
  type Tensor,
  tensor,
} from '@polygrad/core';
import { Adam, lossAndGrad } from '@polygrad/nn';
import { makeNetwork } from '../networks/make.ts';
import { learningRate, type NetworkWork, type SizesWork } from '../work/cases.ts';
import type { HostArray } from '../work/networks.ts';
import type { Subject } from '../work/trial.ts';
import { settled } from './polygrad-input.ts';
import type { Prepared } from './runner.ts';
import type { Tools } from '../work/tools.ts';

function onDevice(inputs: readonly HostArray[]): Tensor[] {
  return inputs.map(({ data, shape }) => tensor(data, { shape }));
}

interface Trained {
  /** A training step; its loss. */
  step(inputs: readonly Tensor[]): Tensor;
  infer(inputs: readonly Tensor[]): Tensor;
  /** The next token of a sequence. */
  next(token: Tensor): Tensor;
  dispose(): void;
}

function trained(spec: NetworkWork['spec'], training: boolean, generating: boolean = false, compiled = false): Trained {
  const network = makeNetwork(spec);
  const { model } = network;
  if (!training) model.eval();
  const decoder = generating ? network.decoder?.() : undefined;
  const optimizer = training ? new Adam(model.parameters(), { lr: learningRate.adam }) : null;
  const step = (inputs: readonly Tensor[]): Tensor => {
    const { value, grads } = lossAndGrad(model, () => network.loss(...inputs));
    optimizer?.step(grads);
    return value;
  };
  const replayed = compiled ? compile(step) : null;
  return {
    step: replayed ?? ((inputs) => scope(() => step(inputs))),
    infer: (inputs) => scope(() => network.infer(...inputs)),
    next: (token) => {
      if (decoder === undefined) throw new Error(`${spec.network} generates nothing`);
      return noGrad(() => scope(() => decoder.step(token)));
    },
    dispose: () => {
      replayed?.dispose();
      decoder?.dispose();
      optimizer?.dispose();
      model.dispose();
    },
  };
}

/** Losses that are compared: before and after the first update. */
const losses = 2;

/** A training step at one size. The engine is new: its greatest use of memory is that of this network. */
export function prepareNetwork(tools: Tools, { spec, batch, length }: NetworkWork): Prepared {
  const draw = tools.inputsOf(spec, batch, length);
  const sets = Array.from({ length: tools.labelSets }, (_, set) => onDevice(draw(batch, length, set)));
  const network = trained(spec, true);
  let at = 0;
  const step = (): Tensor => network.step(sets[at++ % sets.length]!);
  return {
    repeats: true,
    run: async (count) => {
      for (let i = 0; i < count; i++) step().dispose();
      await settled();
    },
    probe: async () => {
      const found: number[] = [];
      for (let i = 0; i < losses; i++) {
        const loss = step();
        found.push(await loss.item());
        loss.dispose();
      }
      return found;
    },
    peakBytes: () => memory().peakBytes,
    dispose: () => {
      network.dispose();
      for (const t of sets.flat()) t.dispose();
    },
  };
}

/** Plans made so far, and the milliseconds they took; older checkouts count neither, but flushes whose plan was not known. */
function planned(): { readonly plans: number; readonly ms?: number } {
  const { plansMade, planMisses, planning }: Partial<ScheduleStats> & Pick<ScheduleStats, 'planMisses'> = stats();
  return { plans: plansMade ?? planMisses, ...(planning === undefined ? {} : { ms: planning }) };
}

function lastToken([ids]: readonly HostArray[]): HostArray[] {
  const { data } = ids as HostArray;
  return [{ data: data.slice(-1), shape: [1, 1] }];
}

/** A network that is used at one size after the other. */
export function sizesSubject(tools: Tools, work: SizesWork): () => Subject {
  const { spec, varies, use } = work;
  const most = Math.max(...work.sizes);
  const draw = tools.inputsOf(spec, varies === 'batch' ? most : work.batch, varies === 'length' ? most : work.length);
  return () => {
    const network = trained(spec, use === 'train', use === 'generate', work.compiled);
    const before = planned();
    const inputsAt = (size: number, at: number): Tensor[] => {
      const [batch, length] = varies === 'batch' ? [size, work.length] : [work.batch, size];
      const drawn = draw(batch, length, at);
      return onDevice(use === 'generate' ? lastToken(drawn) : drawn);
    };
    return {
      use: async (size, at) => {
        // As `fit` does with the size of the last batch.
        if (at === 0 && work.announced !== undefined) {
          const later = inputsAt(work.announced, at);
          announce(() => network.step(later));
          for (const t of later) t.dispose();
        }
        const inputs = inputsAt(size, at);
        const value =
          use === 'train'
            ? network.step(inputs)
            : use === 'generate'
              ? network.next(inputs[0]!)
              : network.infer(inputs);
        const read = await value.item();
        for (const t of [...inputs, value]) t.dispose();
        return read;
      },
      planning: () => {
        const { plans, ms } = planned();
        return { plans: plans - before.plans, ...(ms === undefined ? {} : { ms: ms - (before.ms ?? 0) }) };
      },
    };
  };
}

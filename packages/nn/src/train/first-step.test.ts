/** fit on an engine that makes kernels beside the program: the first step waits for them, tells how far they are, and counts once. */
import { flush, type IEngine, isRehearsing, mseLoss, type ReadyProgress, seed, setEngine } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BatchNorm2d } from '../layers/norm.ts';
import { Dropout } from '../layers/dropout.ts';
import { Linear } from '../layers/linear.ts';
import { Sequential } from '../module/sequential.ts';
import { hostState } from '../module/state.ts';
import { Adam } from '../optim/adam.ts';
import type { TrainBatch } from './batch.ts';
import { fit } from './fit.ts';
import { progress } from './progress.ts';

const batch: TrainBatch = {
  x: { dtype: 'float32', shape: [4, 2], data: new Float32Array([0, 0, 0, 1, 1, 0, 1, 1]) },
  y: { dtype: 'float32', shape: [4, 1], data: new Float32Array([1, 2, 3, 4]) },
};

/** The interpreter, saying that its kernels take three turns of the event loop; `said` is what happened, in order. */
function slowEngine(said: string[]): IEngine {
  const engine = createReferenceEngine();
  let making = 0;
  const { compile, submit } = engine;
  engine.compile = (programs) => {
    making += programs.length;
    return compile(programs);
  };
  engine.submit = (commands) => {
    said.push(making > 0 ? 'submitted too early' : 'submitted');
    submit(commands);
  };
  engine.ready = async (told?: (made: ReadyProgress) => void) => {
    const total = making;
    for (let done = 0; done <= 3 && total > 0; done++) {
      told?.({ done: Math.floor((total * done) / 3), total });
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    making = 0;
  };
  return engine;
}

const before = createReferenceEngine();
beforeEach(() => setEngine(before));
afterEach(() => expect(isRehearsing()).toBe(false));

async function trained(engine: IEngine, told: (line: string) => void = () => {}): Promise<unknown> {
  await setEngine(engine);
  seed(3);
  using model = new Sequential(new Linear(2, 3), new Dropout(0.5), new Linear(3, 1));
  using optimizer = new Adam(model.parameters(), { lr: 0.1 });
  const { epochs } = await fit(model, [batch, batch], {
    optimizer,
    loss: mseLoss,
    epochs: 2,
    callbacks: [progress('lines', undefined, told)],
  });
  return { losses: epochs.map(({ loss, steps }) => [loss, steps]), state: await hostState(model.stateDict()) };
}

describe('the first step of fit', () => {
  it('runs when its kernels are ready, and gives what it gives on any engine', async () => {
    const said: string[] = [];
    const engine = slowEngine(said);
    const plain = await trained(createReferenceEngine());
    const lines: string[] = [];
    const slow = await trained(engine, (line) => lines.push(line));
    expect(slow).toEqual(plain);
    expect(lines[0]).toMatch(/^compiling \d+ kernels$/);
    expect(lines.slice(1).map((line) => line.slice(0, 9))).toEqual(['epoch 1/2', 'epoch 2/2']);
  });

  it('tells callbacks how far it is, before the first step', async () => {
    const said: string[] = [];
    const engine = slowEngine(said);
    await setEngine(engine);
    using model = new Linear(2, 1);
    using optimizer = new Adam(model.parameters());
    flush();
    await engine.ready?.();
    const seen: (string | number)[] = [];
    said.length = 0;
    await fit(model, [batch], {
      optimizer,
      loss: mseLoss,
      epochs: 2,
      callbacks: [
        {
          onCompile: ({ done, total }) => seen.push(done / total),
          onStep: ({ step }) => {
            seen.push(`step ${step}`);
            expect(said).not.toContain('submitted too early');
          },
        },
      ],
    });
    expect(seen[0]).toBe(0);
    expect(seen.indexOf(1)).toBe(seen.indexOf('step 1') - 1);
    expect(seen.filter((entry) => entry === 'step 1')).toHaveLength(2);
  });

  it('counts the batch once in running statistics', async () => {
    const image: TrainBatch = {
      ...batch,
      x: { dtype: 'float32', shape: [4, 1, 1, 2], data: batch.x.data as Float32Array },
    };
    const means: unknown[] = [];
    for (const engine of [createReferenceEngine(), slowEngine([])]) {
      await setEngine(engine);
      using norm = new BatchNorm2d(1);
      using optimizer = new Adam(norm.parameters());
      await fit(norm, [image], { optimizer, loss: (x) => x.mul(x).mean(), epochs: 1 });
      means.push(await hostState(norm.stateDict()));
    }
    expect(means[1]).toEqual(means[0]);
  });

  it('fails in its own words, once', async () => {
    await setEngine(slowEngine([]));
    using model = new Linear(3, 1);
    using optimizer = new Adam(model.parameters());
    await expect(fit(model, [batch], { optimizer, loss: mseLoss, epochs: 1 })).rejects.toThrow(/\[/);
  });
});

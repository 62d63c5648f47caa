/** The cases of the suite `sizes` with small networks: that they go through their sizes, and what they ask of the planner, counted. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createNativeEngine, nativeProvider } from '@polygrad/backend-native';
import { compile, noGrad, setEngine, stats, tensor } from '@polygrad/core';
import type { IEngine } from '@polygrad/core/engine';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { TrialCase } from '../harness/suite.ts';
import { makeNetwork } from '../networks/make.ts';
import { sizesSubject } from '../runners/polygrad-network.ts';
import { tools } from '../work/tools.ts';
import { runTrial } from '../work/trial.ts';
import { sizeCases } from './sizes.ts';

/** Plans made and flushes bound to a new size: exactly; programs compiled and kernels dispatched: at most, as widths of vectors differ. */
interface Counts {
  readonly plans: number;
  readonly binds: number;
  readonly programs: number;
  readonly kernels: number;
}

const limits: Readonly<Record<string, Counts>> = {
  // The first size has a plan of its own, the second makes that of its class.
  mlp: { plans: 2, binds: 10, programs: 20, kernels: 182 },
  'policy-gradient': { plans: 2, binds: 19, programs: 22, kernels: 264 },
  // Each length is bound once: replays ask for no plan.
  'policy-gradient-compiled': { plans: 2, binds: 48, programs: 22, kernels: 1320 },
  'gpt-train': { plans: 2, binds: 7, programs: 103, kernels: 744 },
  // One token, 2 to 7, 8 to 511.
  'gpt-generate': { plans: 3, binds: 23, programs: 43, kernels: 512 },
  // What is left of a length after whole blocks of steps.
  lstm: { plans: 8, binds: 21, programs: 25, kernels: 1818 },
  'whole-mlp': { plans: 2, binds: 22, programs: 20, kernels: 218 },
  'whole-gpt': { plans: 2, binds: 7, programs: 103, kernels: 459 },
  'whole-generate': { plans: 3, binds: 19, programs: 43, kernels: 372 },
  'gpt-generate-cached': { plans: 1, binds: 0, programs: 13, kernels: 336 },
  'resnet18-infer': { plans: 2, binds: 4, programs: 94, kernels: 522 },
  // Both batches are known.
  'last-batch': { plans: 1, binds: 10, programs: 10, kernels: 252 },
};

const grownPrompt: Counts = { plans: 3, binds: 19, programs: 43, kernels: 372 };

const engines: Readonly<Record<string, () => IEngine | Promise<IEngine>>> = {
  cpu: () => createCpuEngine({ threads: 1 }),
  native: () => createNativeEngine({ threads: 1 }),
};

const hasNative = (await nativeProvider.probe()).score > 0;

describe.each(Object.entries(engines))('%s', (name, make) => {
  let engine: IEngine;
  let compiled: () => number;
  beforeEach(async ({ skip }) => {
    if (name === 'native' && !hasNative) skip('this machine has no native engine');
    engine = await setEngine(await make());
    const spy = vi.spyOn(engine, 'compile');
    compiled = () => spy.mock.calls.reduce((count, [programs]) => count + programs.length, 0);
  });
  afterEach(() => engine?.dispose());

  /** Counts of what is done. */
  async function counted(act: () => Promise<void>): Promise<Counts> {
    const [before, programs] = [stats(), compiled()];
    await act();
    const { plansMade, binds, kernels } = stats();
    return {
      plans: plansMade - before.plansMade,
      binds: binds - before.binds,
      programs: compiled() - programs,
      kernels: kernels - before.kernels,
    };
  }

  function check({ programs, kernels, ...exact }: Counts, limit: Counts): void {
    expect({ ...exact, programs, kernels }).toMatchObject({ plans: limit.plans, binds: limit.binds });
    expect(programs, 'programs').toBeLessThanOrEqual(limit.programs);
    expect(kernels, 'kernels').toBeLessThanOrEqual(limit.kernels);
  }

  it.each(sizeCases(true).map((one): [string, TrialCase] => [one.id, one]))('%s', async (id, one) => {
    const counts = await counted(async () => {
      const reply = await runTrial(one.work, sizesSubject(tools, one.work));
      expect(reply.times).toHaveLength(one.work.sizes.length);
      expect(reply.again).toHaveLength(one.work.again.length);
      expect(reply.probe.every(Number.isFinite)).toBe(true);
      expect(one.value(one.ns(reply)!)).toBeGreaterThan(0);
      for (const figure of Object.values(one.figures(reply))) expect(figure).toBeGreaterThan(0);
    });
    check(counts, limits[id]!);
  });

  it('a prompt that grows, compiled, with nothing kept', async () => {
    const { model, infer } = makeNetwork({
      network: 'gpt',
      layers: 1,
      width: 16,
      heads: 4,
      vocabulary: 32,
      places: 32,
    });
    model.eval();
    const next = compile(infer);
    const counts = await counted(async () => {
      for (let length = 1; length <= 20; length++) {
        const ids = tensor(new Int32Array(length), { shape: [1, length] });
        const value = noGrad(() => next(ids));
        expect(Number.isFinite(await value.item())).toBe(true);
        for (const t of [ids, value]) t.dispose();
      }
    });
    next.dispose();
    check(counts, grownPrompt);
  });
});

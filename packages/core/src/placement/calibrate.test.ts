/** Calibration of devices whose costs are known: a clock that goes on as work is submitted. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createNullEngine } from '@polygrad/testing';
import type { IEngine, TuningStore } from '../engine/engine.ts';
import { EngineMissingError } from '../engine/errors.ts';
import { registerBackend, setEngine } from '../engine/registry.ts';
import { memory } from '../index.ts';
import { createRuntime, type Runtime, useRuntime } from '../runtime/runtime.ts';
import { isWhole } from '@polygrad/compiler/fixtures/everyday';
import { calibrate } from './calibrate.ts';

let before: Runtime;
let clock = 0;
/** How many times longer everything takes at this time. */
let disturbed: (time: number) => number = () => 1;
const now = (): number => clock;

/** An engine that takes so many milliseconds for a batch, and for each million bytes that its kernels are given; copies take so long too. */
function timed(name: string, launch: number, million: number): IEngine {
  const inner = createNullEngine();
  const cost = (bytes: number): void => {
    clock += disturbed(clock) * (launch + (million * bytes) / 1e6);
  };
  return {
    ...inner,
    name,
    device: `${name} of tests`,
    submit(commands) {
      let bytes = 0;
      for (const command of commands)
        if (command.kind === 'dispatch') for (const binding of command.bindings) bytes += binding.bytes;
      cost(bytes);
      inner.submit(commands);
    },
    upload(to, data) {
      cost(to.bytes);
      inner.upload(to, data);
    },
    downloadSync(from, into) {
      cost(from.bytes);
      return into;
    },
  };
}

async function between(cpu: IEngine, device: IEngine): Promise<void> {
  useRuntime(before);
  useRuntime(createRuntime());
  const probe = async (): Promise<{ score: number; reason: string; device: string }> => ({
    score: 1,
    reason: 'for tests',
    device: 'none',
  });
  registerBackend({ name: 'cpu', probe, create: () => cpu });
  await setEngine(device);
}

beforeEach(() => {
  before = useRuntime(createRuntime());
  clock = 0;
  disturbed = () => 1;
});
afterEach(() => {
  useRuntime(before);
});

describe('calibrate', () => {
  it('finds where the costs of two engines meet, adds 10 %, and keeps that for the two', async () => {
    // Three operands of 4 bytes: 0.12 n / 1000 ms on the processor, 10 ms and a tenth of that on the device.
    await between(timed('cpu', 0, 10), timed('card', 10, 1));
    const held = memory();
    const texts = new Map<string, string>();
    const store: TuningStore = {
      load: async (name) => texts.get(name) ?? null,
      save: async (name, text) => void texts.set(name, text),
    };
    const thresholds = await calibrate({ store, now, budget: 0 });
    const elementwise = 10 / (12e-5 - 1.2e-5);
    expect(thresholds.measured).toBe(true);
    expect(thresholds.get('elementwise') / (1.1 * elementwise)).toBeCloseTo(1, 2);
    // One operand is read.
    const reduction = 10 / (4e-5 - 0.4e-5);
    expect(thresholds.get('reduction') / (1.1 * reduction)).toBeCloseTo(1, 1);
    const { upload, download } = thresholds.costs.device;
    for (const { latency, perByte } of [upload, download]) {
      expect(latency / 10).toBeCloseTo(1, 3);
      expect(perByte * 1e6).toBeCloseTo(1, 6);
    }
    // The curves are the costs themselves.
    for (const [size, milliseconds] of thresholds.costs.cpu.families.elementwise)
      expect(milliseconds / (12e-5 * size)).toBeCloseTo(1, 2);
    expect(memory().numTensors).toBe(held.numTensors);
    const took = clock;
    const again = await calibrate({ store, now, budget: 0 });
    expect(clock).toBe(took);
    expect([...texts.values()]).toEqual([again.stringify()]);
    expect(again.stringify()).toBe(thresholds.stringify());
  });

  it.runIf(isWhole)('is not misled by other work: neither by slow beginnings nor by bursts', async () => {
    const engines = (): [IEngine, IEngine] => [timed('cpu', 0.002, 1), timed('card', 0.006, 0.6)];
    await between(...engines());
    const { costs } = await calibrate({ store: null, now, budget: 200 });
    clock = 0;
    let bursts = 0;
    disturbed = (time) => {
      const factor = time < 40 ? 6 : time % 7 < 2 ? 3 : 1;
      if (factor > 1) bursts++;
      return factor;
    };
    await between(...engines());
    const again = await calibrate({ store: null, now, budget: 200 });
    expect(bursts).toBeGreaterThan(1000);
    for (const side of ['cpu', 'device'] as const)
      for (const family of ['elementwise', 'reduction', 'product', 'scan'] as const)
        for (const [i, [size, milliseconds]] of again.costs[side].families[family].entries())
          if (size < 5e4) {
            const calm = costs[side].families[family][i]!;
            expect(calm[0]).toBe(size);
            expect(milliseconds / calm[1], `${side} ${family} ${size}`).toBeCloseTo(1, 1);
          }
  });

  it('says what is missing', async () => {
    await setEngine(timed('card', 1, 1));
    await expect(calibrate({ store: null })).rejects.toThrow(EngineMissingError);
    const cpu = timed('cpu', 0, 1);
    await between(cpu, cpu);
    await expect(calibrate({ store: null })).rejects.toThrow(/there is nothing to compare the cpu engine with/);
  });
});

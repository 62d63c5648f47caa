import { memoryStore, type TuningStore } from '@polygrad/core/engine';
import { setEngine, tensor } from '@polygrad/core';
import { afterAll, describe, expect, it } from 'vitest';
import { findAdapter } from './adapter.ts';
import { openDevice } from './device.ts';
import { WebGpuEngine } from './engine.ts';
import { testEngine } from './fixtures/device.ts';

const engine = (await testEngine()) as WebGpuEngine;
afterAll(() => engine?.dispose());

/** A store that says what was kept in it. */
function watched(): { store: TuningStore; kept: Promise<string> } {
  const store = memoryStore();
  let tell: (text: string) => void = () => {};
  const kept = new Promise<string>((resolve) => {
    tell = resolve;
  });
  const save = async (key: string, value: string): Promise<void> => {
    await store.save(key, value);
    tell(value);
  };
  return { store: { load: store.load, save }, kept };
}

describe.skipIf(engine === null)('tiles are measured', () => {
  it('by itself on hardware, on request elsewhere', async () => {
    const found = await findAdapter({});
    if (typeof found === 'string') throw new Error(found);
    const device = await openDevice(found);
    const made = new WebGpuEngine(device, { ...found, software: false });
    expect(made.tuning?.automatic).toBe(true);
    expect(made.tuning?.store).toBeDefined();
    made.dispose();
    if (engine.software) expect(engine.tuning).toBeUndefined();
    await expect(testEngine({ tuning: 7 as unknown as boolean })).rejects.toThrow('bad tuning: 7');
  });

  it('soon after a product was first run, with the same results after as before', async () => {
    const { store, kept } = watched();
    const own = (await testEngine({ tuning: { store, automatic: true } })) as WebGpuEngine;
    try {
      await setEngine(own);
      const numbers = (rows: number, columns: number) =>
        tensor(
          Float32Array.from({ length: rows * columns }, (_, i) => ((i * 7) % 11) - 5),
          { shape: [rows, columns] },
        );
      const [a, b] = [numbers(40, 48), numbers(48, 36)];
      const before = await a.matmul(b).data();
      expect(JSON.parse(await kept).tiles).toHaveProperty('float32 48x32x48x1 k.c 1');
      // Small integers: sums are exact in any order.
      expect(await a.matmul(b).data()).toEqual(before);
    } finally {
      own.dispose();
      await setEngine(engine);
    }
  });
});

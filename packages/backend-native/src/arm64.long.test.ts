/** Machine code of arm64, run by an emulator: the whole conformance suite, in parts. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { runConformance } from '@polygrad/conformance';
import { comparePrograms, randomProgram } from '@polygrad/testing';
import { describe, expect, it, vi } from 'vitest';
import { createNativeEngine } from './create.ts';
import { emulatedAddon, whyNotEmulated } from './testing/emulated.ts';
import { TwinEngine } from './testing/twins.ts';

const missing = whyNotEmulated();
vi.mock('./addon.ts', () => ({ loadAddon: () => emulatedAddon() }));

/** Parts that the suite is cut into. */
const parts = 4;

describe.skipIf(missing !== null)('arm64', () => {
  it.each([false, true])('random programs give what the reference engine gives, checked: %s', async (checked) => {
    const engine = createNativeEngine({ threads: 1, checked });
    const programs = Array.from({ length: 600 }, (_, i) => randomProgram(i + 1001));
    expect(await comparePrograms(engine, programs)).toEqual([]);
    engine.dispose();
  });

  it('passes the suite with the loops of its own registers', async () => {
    const engine = createNativeEngine({ threads: 1 });
    const { failed, passed } = await runConformance({ engine, sample: 41 });
    expect(failed).toBe(0);
    expect(passed).toBeGreaterThan(500);
    engine.dispose();
  });

  it.each(Array.from({ length: parts }, (_, i) => i + 1))(
    `writes what the CPU engine writes, %i of ${parts}`,
    async (part) => {
      const twins = new TwinEngine(
        createNativeEngine({ threads: 1, vectorBytes: 16 }),
        createCpuEngine({ threads: 1 }),
      );
      const { failed } = await runConformance({ engine: twins, slice: [part, parts] });
      expect(twins.differences).toEqual([]);
      expect(failed).toBe(0);
      twins.dispose();
    },
  );
});

/** Machine code of arm64, run by an emulator: many random programs, and the conformance suite with the loops that its registers ask for. */
import { runConformance } from '@polygrad/conformance';
import { comparePrograms, randomProgram } from '@polygrad/testing';
import { describe, expect, it, vi } from 'vitest';
import { createNativeEngine } from './create.ts';
import { emulatedAddon, whyNotEmulated } from './testing/emulated.ts';

const missing = whyNotEmulated();
vi.mock('./addon.ts', () => ({ loadAddon: () => emulatedAddon() }));

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
});

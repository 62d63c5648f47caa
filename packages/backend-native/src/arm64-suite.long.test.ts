/** Machine code of arm64, run by an emulator: every dispatch of the whole conformance suite writes what the CPU engine writes, bit for bit. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { runConformance } from '@polygrad/conformance';
import { describe, expect, it, vi } from 'vitest';
import { createNativeEngine } from './create.ts';
import { emulatedAddon, whyNotEmulated } from './testing/emulated.ts';
import { TwinEngine } from './testing/twins.ts';

const missing = whyNotEmulated();
vi.mock('./addon.ts', () => ({ loadAddon: () => emulatedAddon() }));

async function compare(part: number): Promise<void> {
  const twins = new TwinEngine(createNativeEngine({ threads: 1, vectorBytes: 16 }), createCpuEngine({ threads: 1 }));
  const { results } = await runConformance({ engine: twins, slice: [part, 8] });
  expect(twins.differences).toEqual([]);
  expect(results.filter((r) => r.outcome === 'failed').map((r) => `${r.name}: ${r.detail}`)).toEqual([]);
  expect(twins.compared).toBeGreaterThan(1000);
  twins.dispose();
}

describe.skipIf(missing !== null)('arm64', () => {
  it('writes what the CPU engine writes, 1 of 8', () => compare(1));
  it('writes what the CPU engine writes, 2 of 8', () => compare(2));
  it('writes what the CPU engine writes, 3 of 8', () => compare(3));
  it('writes what the CPU engine writes, 4 of 8', () => compare(4));
  it('writes what the CPU engine writes, 5 of 8', () => compare(5));
  it('writes what the CPU engine writes, 6 of 8', () => compare(6));
  it('writes what the CPU engine writes, 7 of 8', () => compare(7));
  it('writes what the CPU engine writes, 8 of 8', () => compare(8));
});

/**
 * Machine code of arm64, run by an emulator: random programs against the reference engine, and every dispatch of cases of the conformance suite
 * against the CPU engine, bit for bit.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { runConformance } from '@polygrad/conformance';
import { comparePrograms, randomProgram } from '@polygrad/testing';
import { describe, expect, it, vi } from 'vitest';
import { createNativeEngine } from './create.ts';
import { manyConstants, manyValues } from './fixtures/large-programs.ts';
import { wrongHalves } from './fixtures/half-cases.ts';
import { valueCases } from './fixtures/value-cases.ts';
import { emulatedAddon, whyNotEmulated } from './testing/emulated.ts';
import { TwinEngine } from './testing/twins.ts';
import { isWhole, sampled } from '@polygrad/compiler/fixtures/everyday';

const missing = whyNotEmulated();
vi.mock('./addon.ts', () => ({ loadAddon: () => emulatedAddon() }));

describe.skipIf(missing !== null)('arm64', () => {
  it.each([false, true])('random programs give what the reference engine gives, checked: %s', async (checked) => {
    const engine = createNativeEngine({ threads: 1, checked });
    expect(engine.caps.vectorBytes).toBe(16);
    const programs = Array.from({ length: isWhole ? 40 : 20 }, (_, i) => randomProgram(i + 1));
    expect(await comparePrograms(engine, programs)).toEqual([]);
    engine.dispose();
  });

  it('every operation on special values gives what the reference engine gives', async () => {
    const engine = createNativeEngine({ threads: 1 });
    expect((await comparePrograms(engine, sampled([...valueCases()], 3))).slice(0, 40)).toEqual([]);
    engine.dispose();
  });

  it('float16 is cast as the contract says', async () => {
    expect(await wrongHalves(createNativeEngine({ threads: 1 }))).toEqual([]);
  });

  it.runIf(isWhole)('code and frames may be larger than an instruction reaches', async () => {
    const engine = createNativeEngine({ threads: 1 });
    const cases = [manyConstants(20_000), manyValues(6000)];
    // They take the ways that are meant: addresses made of two parts, for constants and for the frame.
    for (const [i, way] of [/adr x16, \./, /add x16, sp, #0x\w+, lsl #12/].entries()) {
      const [kernel] = engine.compile([cases[i]!.program]);
      expect((await engine.source(kernel!)).text).toMatch(way);
    }
    expect((await comparePrograms(engine, cases)).map((text) => text.slice(0, 200))).toEqual([]);
    engine.dispose();
  });

  it('writes what the CPU engine writes', async () => {
    const twins = new TwinEngine(createNativeEngine({ threads: 1, vectorBytes: 16 }), createCpuEngine({ threads: 1 }));
    const { failed } = await runConformance({ engine: twins, sample: 1201 });
    expect(twins.differences).toEqual([]);
    expect(failed).toBe(0);
    expect(twins.compared).toBeGreaterThan(40);
    twins.dispose();
  });
});

/** With vectors of 16 bytes every dispatch of the conformance suite writes what the CPU engine writes, bit for bit: a part of the cases here. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { runConformance } from '@polygrad/conformance';
import { expect, it } from 'vitest';
import { createNativeEngine } from './create.ts';
import { targets } from './testing/targets.ts';
import { TwinEngine } from './testing/twins.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

const isas = sampled([...new Set(targets().map(([isa]) => isa))], 2);

it.each(isas)('%s', async (isa) => {
  const twins = new TwinEngine(
    createNativeEngine({ threads: 1, isa, vectorBytes: 16 }),
    createCpuEngine({ threads: 1 }),
  );
  const { failed } = await runConformance({ engine: twins, sample: 301 });
  expect(twins.differences).toEqual([]);
  expect(failed).toBe(0);
  expect(twins.compared).toBeGreaterThan(200);
  twins.dispose();
});

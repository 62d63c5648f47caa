/** With vectors of 16 bytes every dispatch of the conformance suite writes what the CPU engine writes, bit for bit: every ninth case. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { runConformance } from '@polygrad/conformance';
import { expect, it } from 'vitest';
import { createNativeEngine } from './create.ts';
import { targets } from './testing/targets.ts';
import { TwinEngine } from './testing/twins.ts';

const isas = [...new Set(targets().map(([isa]) => isa))];

it.each(isas)('%s', async (isa) => {
  const twins = new TwinEngine(
    createNativeEngine({ threads: 1, isa, vectorBytes: 16 }),
    createCpuEngine({ threads: 1 }),
  );
  const { failed } = await runConformance({ engine: twins, sample: 9 });
  expect(twins.differences).toEqual([]);
  expect(failed).toBe(0);
  twins.dispose();
});

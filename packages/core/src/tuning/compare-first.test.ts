/** Two engines compared in a program that has no tensors yet, as auto-detection does: nothing here may import them. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { expect, it } from 'vitest';
import { compareEngines } from './compare.ts';

it('needs no tensor', async () => {
  let clock = 0;
  const engines = [createCpuEngine({ threads: 1 }), createCpuEngine({ threads: 1 })] as const;
  const { ratio } = await compareEngines(...engines, { now: () => clock++ });
  expect(ratio).toBe(1);
  for (const engine of engines) engine.dispose();
});

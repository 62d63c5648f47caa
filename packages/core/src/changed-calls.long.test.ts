/** All changed calls of every public function, on the CPU engine and the reference engine. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { expect, it } from 'vitest';
import { compareCalls } from './fixtures/compare-calls.ts';

it('every function has the values of the reference engine whatever it is called with', async () => {
  const report = await compareCalls(await createCpuEngine({ threads: 2 }), { each: 1e6 });
  expect(report.never).toEqual([]);
  expect(report.differences).toEqual([]);
  expect(report.accepted).toBeGreaterThan(5000);
});

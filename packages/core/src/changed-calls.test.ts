/** A few calls of every public function, right and changed ones, on the CPU engine and the reference engine. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { expect, it } from 'vitest';
import { compareCalls } from './fixtures/compare-calls.ts';

it('every function is called rightly, and has the values of the reference engine', async () => {
  const report = await compareCalls(await createCpuEngine({ threads: 1 }), { each: 4 });
  expect(report.never).toEqual([]);
  expect(report.differences).toEqual([]);
  expect(report.accepted).toBeGreaterThan(600);
});

/** Cases that run with both kinds of plans: what fails, and what is taken for another order of sums. */
import { clearPlans, mul, scope, setDynamicSizes, setEngine, sum, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { BothPlans } from './both-plans.ts';
import type { CaseResult, ConformanceCase } from './case.ts';

let both: BothPlans;

beforeEach(async () => {
  both = new BothPlans(createReferenceEngine());
  await setEngine(both.engine);
});
afterEach(() => {
  setDynamicSizes('automatic');
  clearPlans();
});

const passed = (name: string): CaseResult => ({ name, outcome: 'passed', detail: '', milliseconds: 0 });

/** Runs a case of which `f` gives the results to be read, of the first run and of the second. */
async function outcome(f: (again: number) => Tensor[]): Promise<CaseResult> {
  let again = 0;
  const item: ConformanceCase = {
    name: 'case',
    run: async () => {
      for (const y of scope(() => f(again))) {
        await y.data();
        y.dispose();
      }
      again++;
      return undefined;
    },
  };
  return both.run(item, async (one) => {
    await one.run();
    return passed(one.name);
  });
}

const rows = (first: number): Tensor => tensor([first, 2, 3, 4, 5, 6], { shape: [2, 3] });

it('passes what has the same bits', async () => {
  expect(await outcome(() => [mul(rows(1), 2)])).toEqual(passed('case'));
  expect([both.bound, both.otherBits]).toEqual([1, 0]);
});

it('fails what has other bits though nothing is summed', async () => {
  expect(await outcome((again) => [mul(rows(again), 2)])).toMatchObject({
    outcome: 'failed',
    detail: 'other bits in read 0, byte 3 with plans for classes of sizes, and nothing is summed',
  });
  expect(
    await outcome((again) => (again === 0 ? [mul(rows(1), 2)] : [mul(rows(1), 2), mul(rows(1), 3)])),
  ).toMatchObject({
    outcome: 'failed',
    detail: '2 reads in place of 1 with plans for classes of sizes, and nothing is summed',
  });
});

it('leaves the order of sums to the case', async () => {
  const long = (again: number): Tensor => sum(tensor(Array.from({ length: 40 }, (_, i) => again + i)));
  expect(await outcome((again) => [long(again)])).toEqual(passed('case'));
  expect([both.bound, both.otherBits]).toEqual([1, 1]);
});

it('counts no case without a plan for a class', async () => {
  expect(await outcome(() => [mul(tensor([2]), 2)])).toEqual(passed('case'));
  expect(both.bound).toBe(0);
});

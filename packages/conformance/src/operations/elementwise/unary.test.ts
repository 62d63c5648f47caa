/** Formulas of functions of one operand at infinities: random programs call them there wherever the domain of the row has them. */
import * as pg from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { expect, it } from 'vitest';
import { unaryRows } from './unary.ts';

it('what the library gives of infinities is what the formulas say', async () => {
  await pg.setEngine(createReferenceEngine());
  const functions: Partial<Record<string, unknown>> = { ...pg };
  const wrong: string[] = [];
  let compared = 0;
  for (const { name, f, of, domain, options } of unaryRows) {
    const run = functions[name];
    if (of === 'integers' || of === 'bool' || options !== undefined || typeof run !== 'function') continue;
    for (const x of [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      if (domain?.(x) === false) continue;
      const [got] = Array.from(await run(pg.tensor([x], { dtype: 'float64' })).data(), Number);
      compared++;
      const value = Number(f(x));
      const same = Object.is(got, value) || got === value || Math.abs(got! - value) < 1e-14;
      if (!same) wrong.push(`${name}(${x}): ${got}, ${value}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(compared).toBeGreaterThan(40);
});

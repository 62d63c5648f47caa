/** Sweeps of the decomposed functions over float32 (fixtures/sweep.ts), on engines with float64, with fused multiply-add, and without float64. */
import { expect, it } from 'vitest';
import { functions, fusedCaps, plainCaps, singleCaps, unary } from '../fixtures/accuracy.ts';
import { sweep } from '../fixtures/sweep.ts';

it.each(functions)('$op within $ulp units, 5 without float64', ({ op, exact, ulp }) => {
  const versions = [plainCaps, fusedCaps, singleCaps].map((caps) => unary(op, 'float32', caps));
  const { worst, count } = sweep(op, versions, exact);
  const found = worst.map((w) => `${w.ulp.toFixed(3)} at ${w.at}`).join(', ');
  console.info(`${op}: ${found} (${count} numbers)`);
  for (const [k, bound] of [ulp, ulp, 5].entries()) expect(worst[k]?.ulp, found).toBeLessThanOrEqual(bound);
});

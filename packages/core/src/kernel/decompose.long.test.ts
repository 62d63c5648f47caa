/** Sweeps of the decomposed functions over float32: every 61st number, on engines with float64 and without. */
import { describe, expect, it } from 'vitest';
import { floatOfBits, functions, fusedCaps, plainCaps, singleCaps, unary, worst } from './fixtures/accuracy.ts';

const STEP = 61;

function* sweep(): Generator<number> {
  for (let pattern = 0; pattern < 2 ** 32; pattern += STEP) yield floatOfBits(pattern);
}

describe('every 61st float32', () => {
  it.each(functions)('$op within $ulp units', ({ op, exact, ulp }) => {
    const found = worst(unary(op, 'float32', plainCaps), exact, sweep());
    expect(found.ulp, `at ${found.at}`).toBeLessThanOrEqual(ulp);
  });

  it.each(functions)('$op within $ulp units with fused multiply-add', ({ op, exact, ulp }) => {
    const found = worst(unary(op, 'float32', fusedCaps), exact, sweep());
    expect(found.ulp, `at ${found.at}`).toBeLessThanOrEqual(ulp);
  });

  it.each(functions)('$op within 5 units without float64', ({ op, exact }) => {
    const found = worst(unary(op, 'float32', singleCaps), exact, sweep());
    expect(found.ulp, `at ${found.at}`).toBeLessThanOrEqual(5);
  });
});

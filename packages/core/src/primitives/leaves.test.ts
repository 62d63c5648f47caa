import { describe, expect, it } from 'vitest';
import { Exprs } from '@polygrad/compiler/ir/expr';
import { threefry } from './leaves.ts';

describe('threefry', () => {
  // Random123's known answers for Threefry-2x32 with 20 rounds, first words. Constants fold to the result.
  it('gives the known answer of Random123 for 20 rounds', () => {
    const e = new Exprs();
    const zero = e.constant('uint32', 0);
    // Operations on constants fold, so the expression is the number.
    const got = threefry(e, zero, zero, zero);
    expect(got.op === 'CONST' && got.arg.value).toBe(0x6b200159);
  });
});

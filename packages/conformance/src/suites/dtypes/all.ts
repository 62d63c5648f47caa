/** Every dtype to its limits, as cases: all that is compared is compared exactly. */
import type { DType } from '@polygrad/core';
import type { ConformanceCase } from '../../case.ts';
import type { Target } from '../../expand.ts';
import { checkCasts } from './casts.ts';
import { checkGiven, checkRefusals } from './given.ts';
import { checkArithmetic, checkReductions } from './integers.ts';
import { checkMoving } from './movements.ts';
import { checkPromotion } from './promotion.ts';
import { checkSmallFloat } from './small-floats.ts';
import { floats, integers } from './values.ts';

export function dtypeCases(target: Target): ConformanceCase[] {
  const cases: ConformanceCase[] = [];
  const add = (name: string, dtypes: readonly DType[], run: () => Promise<void>): void => {
    cases.push({
      name: `dtypes / ${name}`,
      run: async () => {
        const missing = dtypes.find((d) => !target.holds(d));
        if (missing !== undefined) return { skip: `the engine does not hold ${missing}` };
        await run();
        return undefined;
      },
    });
  };
  for (const dtype of integers) {
    add(`arithmetic of ${dtype}`, [dtype], () => checkArithmetic(dtype));
    add(`reductions of ${dtype}`, [dtype], () => checkReductions(dtype));
    add(`numbers given and read as ${dtype}`, [dtype], () => checkGiven(dtype));
    add(`refusals of ${dtype}`, [dtype], async () => checkRefusals(dtype));
  }
  for (const dtype of [...integers, ...floats]) add(`movements of ${dtype}`, [dtype], () => checkMoving(dtype));
  for (const dtype of [...integers, ...floats, 'bool'] as const)
    add(`casts from ${dtype}`, [dtype], () => checkCasts(dtype, target));
  for (const dtype of ['float16', 'bfloat16'] as const)
    add(`sums and roundings of ${dtype}`, [dtype], () => checkSmallFloat(dtype));
  add('promotion', [], () => checkPromotion(target));
  return cases;
}

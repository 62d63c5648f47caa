/** All cases of the suite, in the order they run. */
import type { DType } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';
import { expand } from '../expand.ts';
import type { Target } from '../target.ts';
import type { GoldenCase } from '../goldens/file.ts';
import { operations } from '../operations/registry.ts';
import { accuracyCases } from './accuracy.ts';
import { compositionSpecs } from './compositions.ts';
import { customCases } from './custom.ts';
import { denormalCases } from './denormals.ts';
import { checkCasts } from './dtypes/casts.ts';
import { checkGiven, checkRefusals } from './dtypes/given.ts';
import { checkArithmetic, checkReductions } from './dtypes/integers.ts';
import { checkHalfProducts } from './dtypes/half-products.ts';
import { checkMoving } from './dtypes/movements.ts';
import { checkPromotion } from './dtypes/promotion.ts';
import { checkSmallFloat } from './dtypes/small-floats.ts';
import { floats, integers } from './dtypes/values.ts';
import { errorCases } from './errors.ts';
import { exactCases } from './exact-values.ts';
import { goldenCases } from './goldens.ts';
import { layerCases } from './layers.ts';
import { loopCases } from './loop-cases.ts';
import { loopSpecs } from './loops.ts';
import { replayCases } from './replays.ts';
import { matrixSpecs } from './matrices.ts';
import { mixedPrecisionCases } from './mixed-precision.ts';
import { memoryCases } from './memory.ts';
import { dataSizedCases } from './order/data-sized.ts';
import { orderDTypeCases } from './order/dtypes.ts';
import { longLineCases } from './order/long-lines.ts';
import { orderRefusals } from './order/refused.ts';
import { specialValueCases } from './order/special-values.ts';
import { randomCases } from './random.ts';
import { samplingCases } from './sampling.ts';
import { decodingCases } from './decoding.ts';
import { specialPairCases } from './special/pairs.ts';
import { specialPointCases } from './special/points.ts';
import { specialCases } from './special.ts';
import { transformCases } from './transforms.ts';

/** Every dtype to its limits: all that is compared is compared exactly. */
function dtypeCases(target: Target): ConformanceCase[] {
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
  for (const dtype of ['float16', 'bfloat16'] as const)
    add(`products and convolutions of ${dtype}`, [dtype, 'float32'], () => checkHalfProducts(dtype));
  add('promotion', [], () => checkPromotion(target));
  return cases;
}

/**
 * What no row checks of operations whose result depends on the order along an axis, on indices or on data. Left out are dtypes that the engine does
 * not hold.
 */
function orderCases(target: Target): ConformanceCase[] {
  const all = [
    ...specialValueCases(),
    ...dataSizedCases(),
    ...longLineCases(),
    ...orderDTypeCases(target),
    ...orderRefusals(),
  ];
  return target.holds('float64') ? all : all.filter(({ name }) => !name.includes('float64'));
}

export function allCases(target: Target, goldens: readonly GoldenCase[] | null, long: boolean): ConformanceCase[] {
  return [
    ...operations.flatMap(({ specs }) => specs.flatMap((spec) => expand(spec, target))),
    ...[...compositionSpecs(), ...loopSpecs(), ...matrixSpecs()].flatMap((spec) => expand(spec, target)),
    ...accuracyCases(target),
    ...dtypeCases(target),
    ...specialCases(target),
    ...specialPointCases(target),
    ...specialPairCases(target),
    ...denormalCases(target),
    ...exactCases(target),
    ...orderCases(target),
    ...errorCases(),
    ...memoryCases(),
    ...transformCases(),
    ...loopCases(target),
    ...customCases(target),
    ...layerCases(),
    ...mixedPrecisionCases(),
    ...replayCases(),
    ...randomCases(),
    ...samplingCases(),
    ...decodingCases(target),
    ...goldenCases(goldens, long, target),
  ];
}

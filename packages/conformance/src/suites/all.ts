/** All cases of the suite, in the order they run. */
import type { ConformanceCase } from '../case.ts';
import { expand, type Target } from '../expand.ts';
import type { GoldenCase } from '../goldens/file.ts';
import { operations } from '../operations/registry.ts';
import { accuracyCases } from './accuracy.ts';
import { compositionSpecs } from './compositions.ts';
import { dtypeCases } from './dtypes/all.ts';
import { errorCases } from './errors.ts';
import { exactCases } from './exact-values.ts';
import { goldenCases } from './goldens.ts';
import { memoryCases } from './memory.ts';
import { orderCases } from './order/all.ts';
import { randomCases } from './random.ts';
import { specialCases } from './special.ts';
import { transformCases } from './transforms.ts';

export function allCases(target: Target, goldens: readonly GoldenCase[] | null, long: boolean): ConformanceCase[] {
  return [
    ...operations.flatMap(({ specs }) => specs.flatMap((spec) => expand(spec, target))),
    ...compositionSpecs().flatMap((spec) => expand(spec, target)),
    ...accuracyCases(target),
    ...dtypeCases(target),
    ...specialCases(target),
    ...exactCases(target),
    ...orderCases(target),
    ...errorCases(),
    ...memoryCases(),
    ...transformCases(),
    ...randomCases(),
    ...goldenCases(goldens, long, target),
  ];
}

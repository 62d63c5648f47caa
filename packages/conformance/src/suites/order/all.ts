/** What no row checks of operations whose result depends on the order along an axis, on indices or on data, in the order it runs. */
import type { ConformanceCase } from '../../case.ts';
import type { Target } from '../../expand.ts';
import { dataSizedCases } from './data-sized.ts';
import { orderDTypeCases } from './dtypes.ts';
import { longLineCases } from './long-lines.ts';
import { orderRefusals } from './refused.ts';
import { specialValueCases } from './special-values.ts';

/** All of them, but those of dtypes the engine does not hold. */
export function orderCases(target: Target): ConformanceCase[] {
  const all = [
    ...specialValueCases(),
    ...dataSizedCases(),
    ...longLineCases(),
    ...orderDTypeCases(target),
    ...orderRefusals(),
  ];
  return target.holds('float64') ? all : all.filter(({ name }) => !name.includes('float64'));
}

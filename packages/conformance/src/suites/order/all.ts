/** All that concerns operations whose result depends on the order along an axis, on indices or on data, in the order it runs. */
import type { ConformanceCase } from '../../case.ts';
import type { Target } from '../../expand.ts';
import type { OpSpec } from '../../spec.ts';
import { dataSizedCases } from './data-sized.ts';
import { orderDTypeCases } from './dtypes.ts';
import { longLineCases } from './long-lines.ts';
import { quantileSpecs } from './quantiles.ts';
import { orderRefusals } from './refused.ts';
import { diffSpecs, scanSpecs } from './running.ts';
import { searchSpecs } from './searching.ts';
import { sortSpecs } from './sorting.ts';
import { specialValueCases } from './special-values.ts';

export function orderSpecs(): OpSpec[] {
  return [...scanSpecs(), ...diffSpecs(), ...sortSpecs(), ...quantileSpecs(), ...searchSpecs()];
}

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

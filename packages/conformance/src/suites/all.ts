/** All cases of the suite, in the order they run. */
import type { ConformanceCase } from '../case.ts';
import { expand, type Target } from '../expand.ts';
import type { OpSpec } from '../spec.ts';
import { axisSpecs } from './along-axes.ts';
import { creationSpecs } from './creation.ts';
import { predicateSpecs } from './predicates.ts';
import { composedSpecs } from './composed.ts';
import { attentionFamilySpecs } from './attention.ts';
import { contractionSpecs } from './contraction.ts';
import { distanceSpecs } from './distance.ts';
import { dtypeCases } from './dtypes.ts';
import { elementwiseSpecs } from './elementwise.ts';
import type { GoldenCase } from '../goldens/file.ts';
import { errorCases } from './errors.ts';
import { goldenCases } from './goldens.ts';
import { imageSpecs } from './images.ts';
import { linearAlgebraSpecs } from './linear-algebra.ts';
import { lossSpecs } from './loss.ts';
import { lossOptionSpecs } from './loss-options.ts';
import { memoryCases } from './memory.ts';
import { movementSpecs } from './movement.ts';
import { normalizationSpecs } from './normalization.ts';
import { orderSpecs } from './order.ts';
import { orderCases } from './order-special.ts';
import { partSpecs } from './parts.ts';
import { randomCases } from './random.ts';
import { rearrangingSpecs } from './rearranging.ts';
import { reductionSpecs } from './reduction.ts';
import { scatterSpecs } from './scattering.ts';
import { samplingSpecs } from './sampling.ts';
import { specialCases } from './special.ts';
import { transformCases } from './transforms.ts';
import { specialFunctionSpecs } from './special-functions.ts';

/** What the suite knows of operations. */
export function allSpecs(): readonly OpSpec[] {
  return [
    ...creationSpecs(),
    ...predicateSpecs(),
    ...axisSpecs(),
    ...elementwiseSpecs(),
    ...composedSpecs(),
    ...specialFunctionSpecs(),
    ...reductionSpecs(),
    ...movementSpecs(),
    ...rearrangingSpecs(),
    ...contractionSpecs(),
    ...imageSpecs(),
    ...normalizationSpecs(),
    ...orderSpecs(),
    ...scatterSpecs(),
    ...partSpecs(),
    ...linearAlgebraSpecs(),
    ...distanceSpecs(),
    ...lossSpecs(),
    ...lossOptionSpecs(),
    ...samplingSpecs(),
    ...attentionFamilySpecs(),
  ];
}

export function allCases(target: Target, goldens: readonly GoldenCase[] | null, long: boolean): ConformanceCase[] {
  return [
    ...allSpecs().flatMap((spec) => expand(spec, target)),
    ...dtypeCases(target),
    ...specialCases(target),
    ...orderCases(target),
    ...errorCases(),
    ...memoryCases(),
    ...transformCases(),
    ...randomCases(),
    ...goldenCases(goldens, long, target),
  ];
}

/** All cases of the suite, in the order they run. */
import type { ConformanceCase } from '../case.ts';
import { expand, type Target } from '../expand.ts';
import type { GoldenCase } from '../goldens/file.ts';
import type { OpSpec } from '../spec.ts';
import { accuracyCases } from './accuracy.ts';
import { adaptivePoolSpecs } from './adaptive-pooling.ts';
import { axisSpecs } from './along-axes.ts';
import { attentionFamilySpecs } from './attention.ts';
import { composedSpecs } from './composed.ts';
import { contractionSpecs } from './contraction.ts';
import { convolutionSpecs } from './convolutions.ts';
import { creationSpecs } from './creation.ts';
import { distanceSpecs } from './distance.ts';
import { dtypeCases } from './dtypes/all.ts';
import { einsumSpecs } from './einsum.ts';
import { binarySpecs, unarySpecs } from './elementwise.ts';
import { errorCases } from './errors.ts';
import { exactCases } from './exact-values.ts';
import { goldenCases } from './goldens.ts';
import { linearAlgebraSpecs } from './linear-algebra.ts';
import { lossSpecs } from './loss/all.ts';
import { memoryCases } from './memory.ts';
import { movementSpecs } from './movement.ts';
import { nestedReductionSpecs } from './nested-reductions.ts';
import { normalizationSpecs } from './normalization.ts';
import { orderCases, orderSpecs } from './order/all.ts';
import { partSpecs } from './parts.ts';
import { poolSpecs, unpoolSpec } from './pooling.ts';
import { randomCases } from './random.ts';
import { rearrangingSpecs } from './rearranging.ts';
import { reductionSpecs } from './reduction.ts';
import { samplingSpecs } from './sampling.ts';
import { scatterSpecs } from './scattering.ts';
import { specialFunctionSpecs } from './special-functions.ts';
import { specialCases } from './special.ts';
import { ternarySpecs } from './ternary.ts';
import { transformCases } from './transforms.ts';

/** What the suite knows of operations. */
export function allSpecs(): readonly OpSpec[] {
  return [
    ...creationSpecs(),
    ...axisSpecs(),
    ...unarySpecs(),
    ...binarySpecs(),
    ...ternarySpecs(),
    ...composedSpecs(),
    ...specialFunctionSpecs(),
    ...reductionSpecs(),
    ...nestedReductionSpecs(),
    ...movementSpecs(),
    ...rearrangingSpecs(),
    ...contractionSpecs(),
    ...convolutionSpecs(),
    ...poolSpecs(),
    ...adaptivePoolSpecs(),
    unpoolSpec(),
    ...normalizationSpecs(),
    ...orderSpecs(),
    ...scatterSpecs(),
    ...partSpecs(),
    ...einsumSpecs(),
    ...linearAlgebraSpecs(),
    ...distanceSpecs(),
    ...lossSpecs(),
    ...samplingSpecs(),
    ...attentionFamilySpecs(),
  ];
}

export function allCases(target: Target, goldens: readonly GoldenCase[] | null, long: boolean): ConformanceCase[] {
  return [
    ...allSpecs().flatMap((spec) => expand(spec, target)),
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

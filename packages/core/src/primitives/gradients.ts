/** The gradient rule of every primitive. */
import type { PrimitiveName } from '../graph/attrs.ts';
import { type CommonPrimitive, definitionOf, type Gradients } from '../graph/definition.ts';
import type { GradientRule } from '../graph/rules.ts';
import { barrierGradients } from './barriers.ts';
import { contractionGradients } from './contraction.ts';
import { elementwiseGradients } from './elementwise.ts';
import type { leaves } from './leaves.ts';
import { movementGradients } from './movement.ts';
import { reductionGradients } from './reduction.ts';
import { windowGradients } from './windows.ts';

const common: Gradients<Exclude<CommonPrimitive, keyof typeof leaves>> = {
  ...elementwiseGradients,
  ...reductionGradients,
  ...movementGradients,
  ...windowGradients,
  ...contractionGradients,
  ...barrierGradients,
};

const none = (): readonly null[] => [];

/** The rule of a primitive of which there is a node. Leaves have none: their gradient is zero. */
export function gradientRuleOf<P extends PrimitiveName>(op: P): GradientRule<P> {
  return (common as { readonly [Q in P]?: GradientRule<Q> })[op] ?? definitionOf(op).gradient ?? none;
}

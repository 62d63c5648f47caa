/** The gradient rule of every primitive but those that bring theirs (primitives/). Leaves and steps have none: their gradient is zero. */
import type { PrimitiveName } from '../../graph/attrs.ts';
import { type CommonPrimitive, definitionOf } from '../../graph/definition.ts';
import { dotGeneralRule, convRule } from './contraction.ts';
import { binaryRules, castRule, unaryRules, whereRule } from './elementwise.ts';
import { concatRule, expandRule, padRule, permuteRule, reshapeRule, sliceRule } from './movement.ts';
import { foldRule, reduceRule, windowRule } from './reduction.ts';
import type { GradientRule } from '../../graph/rules.ts';

const none = (): readonly null[] => [];

/** The table. `stopGradient` passes gradients only where a custom rule says so (custom-gradient.ts). */
export const gradientRules: { readonly [P in CommonPrimitive]: GradientRule<P> } = {
  ...unaryRules,
  ...binaryRules,
  buffer: none,
  scalar: none,
  constant: none,
  iota: none,
  randomBits: none,
  where: whereRule,
  cast: castRule,
  bitcast: none,
  reduce: reduceRule,
  argReduce: none,
  reshape: reshapeRule,
  permute: permuteRule,
  expand: expandRule,
  slice: sliceRule,
  pad: padRule,
  concat: concatRule,
  window: windowRule,
  fold: foldRule,
  dotGeneral: dotGeneralRule,
  conv: convRule,
  stopGradient: none,
  after: ({ grad }) => [grad, null],
  contiguous: ({ grad }) => [grad],
};

/** The rule of a primitive of which there is a node. */
export function gradientRuleOf<P extends PrimitiveName>(op: P): GradientRule<P> {
  return definitionOf(op)?.gradient ?? (gradientRules as unknown as { readonly [Q in P]: GradientRule<Q> })[op];
}

/** The gradient rule of every primitive. Leaves and steps have none: their gradient is zero. */
import type { PrimitiveName } from '../graph/attrs.ts';
import { dotGeneralRule, convRule } from './rules-contraction.ts';
import { binaryRules, castRule, fmaRule, unaryRules, whereRule } from './rules-elementwise.ts';
import {
  concatRule,
  expandRule,
  gatherRule,
  padRule,
  permuteRule,
  reshapeRule,
  scatterAddRule,
  sliceRule,
} from './rules-movement.ts';
import { scanRule } from './rules-scan.ts';
import { scatterRule } from './rules-scatter.ts';
import { foldRule, reduceRule, windowRule } from './rules-reduction.ts';
import type { GradientRule } from './rule.ts';

const none = (): readonly null[] => [];

/** The table. `stopGradient` passes gradients only where a custom rule says so (custom-gradient.ts). */
export const gradientRules: { readonly [P in PrimitiveName]: GradientRule<P> } = {
  ...unaryRules,
  ...binaryRules,
  buffer: none,
  scalar: none,
  constant: none,
  iota: none,
  randomBits: none,
  where: whereRule,
  fma: fmaRule,
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
  gather: gatherRule,
  scatterAdd: scatterAddRule,
  scatter: scatterRule,
  scan: scanRule,
  argSort: none,
  stopGradient: none,
  after: ({ grad }) => [grad, null],
  contiguous: ({ grad }) => [grad],
};

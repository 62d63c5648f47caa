/**
 * Primitives that bring their rules along: whoever records such a node hands over its definition, so that a program which never does
 * carries none of it. All others have their rules in the tables of graph/, primitives/ and planner/.
 *
 * A definition is an ordinary constant and nothing happens while modules load, so bundlers leave out what is not recorded. all.ts names
 * every definition, for tests.
 */
import { bringFunctions, type FloatFunctions } from '../arithmetic/functions.ts';
import type { BinaryPrimitive, PrimitiveName, UnaryPrimitive } from './attrs.ts';
import type { InferRule } from './infer-checks.ts';
import type { BatchRule, GradientRule, TangentRule } from './rules.ts';

/** Functions of floats that have a definition. */
// biome-ignore format: a table of operations reads better grouped
export type DefinedUnary = Extract<UnaryPrimitive,
  | 'ceil' | 'trunc' | 'round' | 'exp2' | 'expm1' | 'log2' | 'log10' | 'log1p'
  | 'sin' | 'cos' | 'tan' | 'asin' | 'acos' | 'atan' | 'sinh' | 'cosh' | 'tanh' | 'erf'>;
export type DefinedBinary = Extract<BinaryPrimitive, 'fmod' | 'pow' | 'atan2'>;

/** Primitives that have a definition. */
export type DefinedPrimitive =
  | DefinedUnary
  | DefinedBinary
  | 'fma'
  | 'gather'
  | 'scatterAdd'
  | 'scatter'
  | 'scan'
  | 'argSort';

/** Primitives whose rules every program carries. */
export type CommonPrimitive = Exclude<PrimitiveName, DefinedPrimitive>;

/** Elementwise primitives as they are recorded: by name, or by their definition. */
export type UnaryOperation = Exclude<UnaryPrimitive, DefinedUnary> | DefinitionIn<DefinedUnary>;
export type BinaryOperation = Exclude<BinaryPrimitive, DefinedBinary> | DefinitionIn<DefinedBinary>;
export type AnyDefinition = DefinitionIn<DefinedPrimitive>;
type DefinitionIn<P> = P extends DefinedPrimitive ? Definition<P> : never;

/** How kernels compute a primitive: planner/lowering/rules.ts fills it in. */
// biome-ignore lint/suspicious/noEmptyInterface: others add to it
// biome-ignore lint/correctness/noUnusedVariables: the name is part of the interface
export interface LoweringRules<P extends PrimitiveName> {}

/** Everything that belongs to one primitive. */
export interface Definition<P extends PrimitiveName> extends LoweringRules<P> {
  readonly op: P;
  readonly infer: InferRule<P>;
  readonly gradient: GradientRule<P>;
  /** None: the gradient rule turned around (autodiff/transpose.ts). */
  readonly tangent?: TangentRule<P>;
  readonly batch: BatchRule<P>;
  /** Element by element, so that slopes serve in both directions. */
  readonly elementwise?: true;
  /** The arithmetic of its kernel operation, for engines that have none. */
  readonly functions?: FloatFunctions;
}

const brought: { [P in PrimitiveName]?: Definition<P> } = {};

/** From now on nodes of this primitive may exist. */
export function bring(definition: AnyDefinition): void {
  if (brought[definition.op] !== undefined) return;
  (brought as Record<string, unknown>)[definition.op] = definition;
  if (definition.functions !== undefined) bringFunctions(definition.functions);
}

/** The definition of a primitive of which there is a node; none for common ones. */
export function definitionOf<P extends PrimitiveName>(op: P): Definition<P> | undefined {
  return brought[op];
}

/**
 * Primitives that bring their rules along: whoever records such a node hands over its definition, so that a program which never does
 * carries none of it. All others have their rules in the tables of graph/, autodiff/ and schedule/.
 *
 * A definition is an ordinary constant and nothing happens while modules load, so bundlers leave out what is not recorded. all.ts names
 * every definition, for tests.
 */
import type { BatchRule } from '../autodiff/batch-rule.ts';
import type { TangentRule } from '../autodiff/forward.ts';
import type { GradientRule } from '../autodiff/rule.ts';
import type { PrimitiveName } from '../graph/attrs.ts';
import type { InferRule } from '../graph/infer-checks.ts';
import type { ProgramRule } from '../schedule/programs.ts';
import type { SourceRule } from '../schedule/sources.ts';
import type { ValueRule } from '../schedule/values.ts';

/** Primitives that have a definition. */
export type DefinedPrimitive = 'gather' | 'scatterAdd' | 'scatter' | 'scan' | 'argSort';

/** Primitives whose rules every program carries. */
export type CommonPrimitive = Exclude<PrimitiveName, DefinedPrimitive>;

/** Everything that belongs to one primitive. */
export interface Definition<P extends PrimitiveName> {
  readonly op: P;
  readonly infer: InferRule<P>;
  readonly gradient: GradientRule<P>;
  /** None: the gradient rule turned around (autodiff/transpose.ts). */
  readonly tangent?: TangentRule<P>;
  readonly batch: BatchRule<P>;
  /** Where kernels compute it inside loop nests: what an element needs, and what it is. */
  readonly sources?: SourceRule<P>;
  readonly value?: ValueRule<P>;
  /** Where it has programs of its own. */
  readonly program?: ProgramRule<P>;
}

const brought: { [P in PrimitiveName]?: Definition<P> } = {};

/** From now on nodes of this primitive may exist. */
export function bring<P extends DefinedPrimitive>(definition: Definition<P>): void {
  (brought as Record<string, unknown>)[definition.op] = definition;
}

/** The definition of a primitive of which there is a node; none for common ones. */
export function definitionOf<P extends PrimitiveName>(op: P): Definition<P> | undefined {
  return brought[op];
}

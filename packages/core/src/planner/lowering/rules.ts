/** What a primitive's definition (graph/definition.ts) says of how kernels compute it. Types only. */
import type { PrimitiveName } from '../../graph/attrs.ts';
import type { PlanNode } from '../capture/plan-graph.ts';
import type { ProgramUnit } from './programs.ts';
import type { SourceRule } from './sources.ts';
import type { ValueRule } from './values.ts';

declare module '../../graph/definition.ts' {
  interface LoweringRules<P extends PrimitiveName> {
    /** Where kernels compute it inside loop nests: what an element needs, and what it is. */
    readonly sources?: SourceRule<P>;
    readonly value?: ValueRule<P>;
    /** Where it has programs of its own. */
    readonly programs?: (node: PlanNode<P>) => ProgramUnit;
  }
}

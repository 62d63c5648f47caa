/** What a primitive's definition (graph/definition.ts) says of how plans are made of it. Types only. */
import type { Attrs, PrimitiveName } from '../../graph/attrs.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { BinaryOp, TernaryOp, UnaryOp } from '../../ir/ir.ts';
import type { Shape } from '../../shape/view.ts';
import type { IntWriter } from '../capture/encode.ts';
import type { PlanNode } from '../capture/plan-graph.ts';
import type { Index } from './index-map.ts';
import type { ProgramUnit } from './programs.ts';
import type { SourceRule } from './sources.ts';
import type { ValueRule } from './values.ts';

declare module '../../graph/definition.ts' {
  interface LoweringRules<P extends PrimitiveName> {
    /**
     * Its attributes as integers, for plan keys; none where there is nothing to write. Two nodes have the same integers exactly when every
     * attribute that a kernel may depend on is equal. Shapes of computed nodes follow from primitive, attributes and sources.
     */
    readonly encode?: ((attr: Attrs[P], out: IntWriter) => void) | null;
    /** The part that a particular node plays, where attributes or sizes decide. */
    readonly roleOf?: (attr: Attrs[P], src: readonly { readonly shape: Shape }[]) => Role;
    /** The kernel operation that it is, for elementwise primitives that are exactly one. */
    readonly kernelOp?: UnaryOp | BinaryOp | TernaryOp | null;
    /** Movements without gates: the index into the source. */
    readonly move?: (e: Exprs, node: PlanNode<P>, index: Index) => Index;
    /** What an element needs of the sources. None: the same element of each, or what `move` says. */
    readonly sources?: SourceRule<P>;
    /** What an element is, made of that. None: the kernel operation, or the value of the source. */
    readonly value?: ValueRule<P>;
    /** Where it has programs of its own. */
    readonly programs?: (node: PlanNode<P>) => ProgramUnit;
  }
}

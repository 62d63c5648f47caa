/** The form of a gradient rule: how the gradient of a node's result becomes gradients of its sources. */
import type { Attrs, PrimitiveName } from '../../graph/attrs.ts';
import type { Node } from '../../graph/node.ts';

/** What a rule is given. */
export interface GradientContext<P extends PrimitiveName> {
  /** The node itself: its value is the output. */
  readonly node: Node<P>;
  readonly src: readonly Node[];
  readonly attr: Attrs[P];
  /** Gradient of the output: same shape and dtype. */
  readonly grad: Node;
  /** Which sources a gradient is wanted for. */
  readonly needs: readonly boolean[];
}

/**
 * Returns one gradient per source; null means zero. A gradient of an elementwise rule may have the broadcast shape and any float dtype: the walk
 * sums and casts it to the source's. Rules record nodes, so gradients can be differentiated in turn.
 */
export type GradientRule<P extends PrimitiveName> = (context: GradientContext<P>) => readonly (Node | null)[];

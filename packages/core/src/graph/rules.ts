/**
 * The forms of a primitive's rules: shapes are inferred (infer-checks.ts), gradients go from the result to the sources, tangents from the
 * sources to the result, and a batch of nodes becomes one. All record nodes, so what they make can be differentiated in turn.
 */
import type { Attrs, PrimitiveName } from './attrs.ts';
import type { Node } from './node.ts';

/** What a gradient rule is given. */
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

/** What a tangent rule is given: the node and, per source, its tangent (its shape and dtype) or null for no change; at least one is not null. */
export interface TangentContext<P extends PrimitiveName> {
  readonly node: Node<P>;
  readonly src: readonly Node[];
  readonly attr: Attrs[P];
  readonly tangents: readonly (Node | null)[];
}

/**
 * Returns the tangent of the result, or null for no change. It may have a shape that broadcasts to the result's. Undefined: the gradient rule is to
 * be turned around.
 */
export type TangentRule<P extends PrimitiveName> = (context: TangentContext<P>) => Node | null | undefined;

/** What a batching rule is given. */
export interface BatchContext<P extends PrimitiveName> {
  readonly node: Node<P>;
  /** The sources for one element of the batch. */
  readonly src: readonly Node[];
  readonly attr: Attrs[P];
  /** The sources with the batch in front; null where all elements share the source. At least one is not null, but for random bits. */
  readonly sources: readonly (Node | null)[];
  readonly size: number;
  /** Makes a graph recorded on other placeholders again for the whole batch (batch.ts). */
  readonly remake: (roots: readonly Node[], inputs: ReadonlyMap<Node, Node>) => Node[];
}

/** Returns a node of shape [size, ...node.shape]. */
export type BatchRule<P extends PrimitiveName> = (context: BatchContext<P>) => Node;

// Gradients given by users (autodiff/custom-gradient.ts), by the node they belong to: kept beside the graph, so that the graph itself stays plain
// data.

/** Rules by node: the gradients of src, from the gradient of the result. */
export const customRules: WeakMap<Node, (grad: Node, node: Node) => readonly (Node | null)[]> = new WeakMap();

/** Of these, the ones whose value and gradient belong to one element: masks of `where` pass by them as by elementwise primitives. */
export const elementwiseCustom: WeakSet<Node> = new WeakSet();

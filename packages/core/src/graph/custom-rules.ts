/**
 * Gradients given by users (autodiff/custom-gradient.ts), by the node they belong to: kept beside the graph, so that the graph itself stays
 * plain data.
 */
import type { Node } from './node.ts';

/** Rules by node: the gradients of src, from the gradient of the result. */
export const customRules: WeakMap<Node, (grad: Node, node: Node) => readonly (Node | null)[]> = new WeakMap();

/** Of these, the ones whose value and gradient belong to one element: masks of `where` pass by them as by elementwise primitives. */
export const elementwiseCustom: WeakSet<Node> = new WeakSet();

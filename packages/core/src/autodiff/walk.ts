/**
 * The walk from results back to sources that applies gradient rules.
 *
 * What every rule would have to do is done here once: summing gradients of a value used several times, un-broadcasting to the
 * source's shape, casting back to its dtype, and keeping branches that `where` did not take free of NaN.
 */
import * as p from '../graph/primitives.ts';
import type { PrimitiveName } from '../graph/attrs.ts';
import { isOp, type Node } from '../graph/node.ts';
import {
  type CommonPrimitive,
  customRules,
  definitionOf,
  elementwiseCustom,
  type GradientRule,
  type Gradients as Rules,
} from '../graph/definition.ts';
import { barrierGradients, type leaves } from '../primitives/leaves.ts';
import { contractionGradients } from '../primitives/contraction.ts';
import { elementwiseGradients } from '../primitives/elementwise.ts';
import { movementGradients } from '../primitives/movement.ts';
import { reductionGradients } from '../primitives/reduction.ts';
import { windowGradients } from '../primitives/windows.ts';

/** Gradients by node. */
export type Gradients = Map<Node, Node>;

/** Adds to the gradient of a node. */
export function accumulate(gradients: Gradients, node: Node, gradient: Node): void {
  const before = gradients.get(node);
  gradients.set(node, before === undefined ? gradient : p.add(before, gradient));
}

/**
 * Applies the rules of `nodes` (in creation order, so sources come before users), last one first.
 *
 * @param gradients gradients of results to start with; those of all nodes reached are added
 * @param follow whether gradients flow into a node
 */
export function walk(
  nodes: readonly Node[],
  count: number,
  gradients: Gradients,
  follow: (node: Node) => boolean,
): void {
  for (let i = count - 1; i >= 0; i--) {
    const node = nodes[i]!;
    const grad = gradients.get(node);
    if (grad === undefined) continue;
    const needs = node.src.map(follow);
    if (!needs.includes(true)) continue;
    const results = applyRule(node, grad, needs);
    for (let s = 0; s < results.length; s++) {
      const result = results[s];
      if (needs[s] && result) accumulate(gradients, node.src[s]!, fitted(result, node.src[s]!));
    }
  }
}

/** In the shape and dtype of the source: summed over the axes along which it was stretched. */
export function fitted(gradient: Node, source: Node): Node {
  return p.cast(p.sumTo(gradient, source.shape), source.dtype);
}

const common: Rules<Exclude<CommonPrimitive, keyof typeof leaves>> = {
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

/** True if the node is a constant 0. */
function isZero(node: Node): boolean {
  return isOp(node, 'constant') && node.attr.value === 0;
}

/** Most masks of enclosing `where`s that are carried along. */
const mostMasks = 2;

/** The gradients of a node's sources; null for none. */
export function applyRule(node: Node, grad: Node, needs: readonly boolean[]): readonly (Node | null)[] {
  const custom = node.op === 'stopGradient' ? customRules.get(node) : undefined;
  if (node.op === 'stopGradient' && (custom === undefined || !elementwiseCustom.has(node)))
    return custom?.(grad, node) ?? [];
  const rule: GradientRule<PrimitiveName> =
    custom === undefined ? gradientRuleOf(node.op) : (c) => custom(c.grad, node);
  if (custom === undefined && (definitionOf(node.op).role !== 'elementwise' || node.op === 'add'))
    return rule({ node, src: node.src, attr: node.attr, grad, needs });
  // where(c, g, 0) times an infinite slope would be NaN where c is false. So the mask goes around the rule's result instead: the rule sees g.
  const masks: { readonly condition: Node; readonly zero: Node; readonly first: boolean }[] = [];
  let inner = grad;
  while (masks.length < mostMasks && isOp(inner, 'where') && inner.src.length === 3) {
    const [condition, a, b] = inner.src as [Node, Node, Node];
    if (isZero(b)) masks.push({ condition, zero: b, first: true });
    else if (isZero(a)) masks.push({ condition, zero: a, first: false });
    else break;
    inner = masks[masks.length - 1]?.first ? a : b;
  }
  const results = rule({ node, src: node.src, attr: node.attr, grad: inner, needs });
  if (masks.length === 0) return results;
  return results.map((result) => {
    if (result === null) return null;
    let masked = result;
    for (let i = masks.length - 1; i >= 0; i--) {
      const { condition, zero, first } = masks[i]!;
      // The zero keeps the shape the mask gave; its dtype follows a cast.
      const none = zero.dtype === masked.dtype ? zero : p.constant(0, masked.dtype, zero.shape);
      masked = first ? p.where(condition, masked, none) : p.where(condition, none, masked);
    }
    return masked;
  });
}

/**
 * Tangent rules: how changes of a node's sources become a change of its result. For `jvp`.
 *
 * Nearly every rule follows from what is there already. An elementwise primitive multiplies by the same slope in both directions, so
 * its gradient rule serves. A linear primitive does with changes what it does with values. The rest are their gradient rule
 * turned around: that rule is linear in the gradient, and the gradient of a linear map is its transpose. Tangents are graph nodes,
 * so they can be differentiated in turn, in either direction.
 */
import * as p from '../graph/primitives.ts';
import type { PrimitiveName } from '../graph/attrs.ts';
import { definitionOf, type GradientRule, type TangentRule } from '../graph/definition.ts';
import { isOp, type Node } from '../graph/node.ts';
import { opName } from '../graph/scope.ts';
import { endRecording, pauseRecording, startRecording, watchNode } from '../graph/tracking.ts';
import { barrierTangents } from '../primitives/leaves.ts';
import { contractionTangents } from '../primitives/contraction.ts';
import { elementwiseTangents } from '../primitives/elementwise.ts';
import { movementTangents } from '../primitives/movement.ts';
import { reductionTangents } from '../primitives/reduction.ts';
import { windowTangents } from '../primitives/windows.ts';
import { accumulate, applyRule, fitted, gradientRuleOf, type Gradients, walk } from './walk.ts';

/** Slope times tangent, source by source: what the gradient rule does with a gradient. */
function diagonal<P extends PrimitiveName>(rule: GradientRule<P>): TangentRule<P> {
  return ({ node, src, attr, tangents }) => {
    let sum: Node | null = null;
    tangents.forEach((tangent, i) => {
      if (tangent === null) return;
      const needs = src.map((_, at) => at === i);
      const part = rule({ node, src, attr, grad: tangent, needs })[i] ?? null;
      if (part === null) return;
      const cast = p.cast(part, node.dtype);
      sum = sum === null ? cast : p.add(sum, cast);
    });
    return sum;
  };
}

/** Primitives that are not in it, nor elementwise, are turned around (transpose.ts), which is always right and costs a few nodes more. */
const common: { readonly [P in PrimitiveName]?: TangentRule<P> } = {
  ...elementwiseTangents,
  ...reductionTangents,
  ...movementTangents,
  ...windowTangents,
  ...contractionTangents,
  ...barrierTangents,
};

function ruleOf<P extends PrimitiveName>(op: P): TangentRule<P> | undefined {
  const { tangent, role } = definitionOf(op);
  return common[op] ?? tangent ?? (role === 'elementwise' ? diagonal(gradientRuleOf(op)) : undefined);
}

/**
 * Applies the rules to `nodes` (in creation order, sources before users). To be called with flushes held.
 *
 * @param tangents those of the nodes to start from; those of all nodes reached are added
 * @returns the tangents
 */
export function pushForward(nodes: readonly Node[], tangents: Map<Node, Node>): Map<Node, Node> {
  for (const node of nodes) {
    if (tangents.has(node)) continue;
    const own = node.src.map((source) => tangents.get(source) ?? null);
    // What is behind a stopGradient flows nowhere.
    if (isOp(node, 'stopGradient')) own[0] = null;
    if (own.every((tangent) => tangent === null)) continue;
    const rule = ruleOf(node.op);
    let tangent = rule?.({ node, src: node.src, attr: node.attr, tangents: own });
    if (tangent === undefined) tangent = transposed(node, own);
    if (tangent !== null) tangents.set(node, p.broadcastTo(p.cast(tangent, node.dtype), node.shape));
  }
  return tangents;
}

// A node's tangent from its gradient rule: the rule is linear in the gradient, so the gradient of that linear map is its transpose.

/**
 * The change of a node's result for changes of its sources (null for none).
 *
 * Right for every primitive whose gradient rule can be differentiated, and the only way for gradients given by the user. The
 * rule sees a gradient of zeros; nothing of it is left in the result.
 */
export function transposed(node: Node, tangents: readonly (Node | null)[]): Node | null {
  const recording = startRecording(opName('jvp'), false);
  try {
    const probe = p.identity(p.zerosLike(node));
    watchNode(recording, probe);
    const needs = tangents.map((tangent) => tangent !== null);
    const parts = applyRule(node, probe, needs);
    pauseRecording(recording);
    const seeds: Gradients = new Map();
    parts.forEach((part, i) => {
      const tangent = tangents[i] ?? null;
      if (part === null || tangent === null) return;
      const fit = fitted(part, node.src[i]!);
      if ((fit.pins & recording.bit) !== 0) accumulate(seeds, fit, tangent);
    });
    const { bit, nodes } = recording;
    walk(nodes, nodes.length, seeds, (source) => (source.pins & bit) !== 0);
    return seeds.get(probe) ?? null;
  } finally {
    endRecording(recording);
  }
}

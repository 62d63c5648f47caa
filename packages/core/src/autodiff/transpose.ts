/** A node's tangent from its gradient rule: the rule is linear in the gradient, so the gradient of that linear map is its transpose. */
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { endRecording, pauseRecording, startRecording, watchNode } from '../graph/tracking.ts';
import { opName } from '../graph/scope.ts';
import { accumulate, applyRule, fitted, type Gradients, walk } from './walk.ts';

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

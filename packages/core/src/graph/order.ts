/** Nodes below some roots, sources before users. Realised nodes count as leaves, whatever history they keep. */
import type { Node } from './node.ts';

/**
 * All nodes the roots are computed from, themselves included, in creation order.
 *
 * @param through follow the kept history of realised nodes too
 */
export function nodesBelow(roots: readonly Node[], through: boolean = false): Node[] {
  const seen = new Set<Node>(roots);
  // A Set visits what is added while it is walked.
  for (const node of seen) {
    if (node.storage !== null && !through) continue;
    for (const source of node.src) seen.add(source);
  }
  return [...seen].sort((a, b) => a.id - b.id);
}

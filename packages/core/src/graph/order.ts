/** Nodes below some roots, sources before users. Realised nodes count as leaves, whatever history they keep. */
import { checkList } from '../shape/axes.ts';
import { ArgumentError } from '../shape/errors.ts';
import { shown } from '../shape/options.ts';
import { say, isList } from '../shape/shown.ts';
import type { Handle, Node } from './node.ts';

/** The nodes of tensors, or nodes themselves, that a user gives as roots of a graph. Throws ArgumentError in the name of `op`. */
export function rootNodes(op: string, roots: readonly (Node | Handle)[]): Node[] {
  const bad = (value: unknown): never => {
    throw new ArgumentError(op, say`bad roots: ${shown(value)}; must be a list of tensors, such as [loss]`);
  };
  if (!isList(roots)) return bad(roots);
  checkList(op, 'roots', roots, '[loss]');
  return roots.map((root: Node | Handle) => {
    const node = root !== null && typeof root === 'object' && 'node' in root ? root.node : root;
    return isList(node?.src) ? node : bad(root);
  });
}

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

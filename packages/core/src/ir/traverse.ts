/**
 * Ways through expressions, which share parts: each node is met once.
 */
import type { KNode } from './ir.ts';

const everySource = (n: KNode): readonly KNode[] => n.src;

/** All nodes that roots are made of, users first. `follow` says which sources of a node to look at; all, unless given. */
export function nodesOf(
  roots: readonly KNode[],
  follow: (n: KNode) => readonly KNode[] = everySource,
): ReadonlySet<KNode> {
  const seen = new Set<KNode>();
  const stack = [...roots];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    const sources = follow(n);
    for (let i = 0; i < sources.length; i++) stack.push(sources[i]!);
  }
  return seen;
}

/**
 * Does something for a node after it has been done for its sources, the last of them first, without recursion: expressions may be deep.
 *
 * @param isDone whether nothing is left to do for a node; true for it once `visit` returns
 * @param follow the sources that must be done before a node
 */
export function sourcesFirst(
  root: KNode,
  isDone: (n: KNode) => boolean,
  follow: (n: KNode) => readonly KNode[],
  visit: (n: KNode) => void,
): void {
  const stack = [root];
  while (stack.length > 0) {
    const n = stack[stack.length - 1]!;
    if (!isDone(n)) {
      const before = stack.length;
      const sources = follow(n);
      for (let i = 0; i < sources.length; i++) {
        const s = sources[i]!;
        if (!isDone(s)) stack.push(s);
      }
      if (stack.length > before) continue;
      visit(n);
    }
    stack.pop();
  }
}

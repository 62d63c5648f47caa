/** Nodes that are not in memory: which of them are still needed, which build on others, and which are independent of each other. */
import type { Node } from '../graph/node.ts';
import { isFree } from './placement.ts';

/** Nodes that are not in memory yet. */
export function open(nodes: readonly Node[]): readonly Node[] {
  return nodes.filter((node) => node.storage === null);
}

const isNeeded = (node: Node): boolean => node.storage === null && node.edges !== 'dead';

/** Nodes that have users and are not in memory. */
export function needed(nodes: readonly Node[]): readonly Node[] {
  // Usually all.
  for (let i = 0; i < nodes.length; i++) if (!isNeeded(nodes[i]!)) return nodes.filter(isNeeded);
  return nodes;
}

/** True if one of the nodes, or an unrealised source of them, is in `group`. */
export function buildsOn(nodes: readonly Node[], group: ReadonlySet<Node>): boolean {
  const seen = new Set(nodes);
  for (const node of seen) {
    if (group.has(node)) return true;
    for (const source of node.src) if (source.storage === null) seen.add(source);
  }
  return false;
}

/** Groups of roots that share no unrealised node; all of `together` are in one group. In the order of their first roots. */
export function componentsOf(roots: readonly Node[], together: ReadonlySet<Node>): Node[][] {
  const parent = roots.map((_, i) => i);
  const top = (i: number): number => {
    let at = i;
    while (parent[at] !== at) at = parent[at] = parent[parent[at]!]!;
    return at;
  };
  const owner = new Map<Node, number>();
  let first = -1;
  const join = (i: number, j: number): void => {
    const [a, b] = [top(i), top(j)];
    parent[Math.max(a, b)] = Math.min(a, b);
  };
  roots.forEach((root, i) => {
    if (together.has(root)) {
      if (first >= 0) join(first, i);
      else first = i;
    }
    const stack = [root];
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (node.storage !== null || (isFree(node) && node !== root)) continue;
      const other = owner.get(node);
      if (other !== undefined) {
        join(other, i);
        continue;
      }
      owner.set(node, i);
      stack.push(...node.src);
    }
  });
  const parts = new Map<number, Node[]>();
  roots.forEach((root, i) => {
    const at = top(i);
    const part = parts.get(at) ?? [];
    part.push(root);
    parts.set(at, part);
  });
  return [...parts.values()];
}

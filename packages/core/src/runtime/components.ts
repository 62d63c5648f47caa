/** Connected components of pending work: what shares no node still to be computed can fail, or be done, alone. */
import type { Node } from '../graph/node.ts';
import { isFree } from './holding.ts';

/** Roots in groups that share no node still to be computed; those of `together` are in one group. In the order of their first roots. */
export function componentsOf(roots: readonly Node[], together: ReadonlySet<Node>): Node[][] {
  const parent = roots.map((_, i) => i);
  const top = (i: number): number => {
    let at = i;
    while (parent[at] !== at) at = parent[at] = parent[parent[at] as number] as number;
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
    const part = parts.get(top(i));
    if (part === undefined) parts.set(top(i), [root]);
    else part.push(root);
  });
  return [...parts.values()];
}

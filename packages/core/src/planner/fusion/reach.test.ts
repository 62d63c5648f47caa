/** Reach, compared with walks over the edges. */
import { describe, expect, it } from 'vitest';
import { Reach } from './draft.ts';

/** Everything after `from`, by walking. */
function after(edges: readonly ReadonlySet<number>[], from: number): Set<number> {
  const seen = new Set<number>();
  const stack = [...(edges[from] as ReadonlySet<number>)];
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    if (seen.has(at)) continue;
    seen.add(at);
    stack.push(...(edges[at] as ReadonlySet<number>));
  }
  return seen;
}

describe('Reach', () => {
  it('knows after every edge what a walk finds', () => {
    let state = 7;
    const random = (n: number): number => {
      state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
      return (state >> 8) % n;
    };
    for (const count of [5, 40, 90]) {
      const reach = new Reach();
      const edges: Set<number>[] = [];
      // Where a kernel comes in time has nothing to do with when it was made.
      const time = Array.from({ length: count }, () => random(1000));
      for (let made = 0; made < count; made++) {
        expect(reach.join()).toBe(made);
        edges.push(new Set());
        for (let tries = 0; tries < 2; tries++) {
          const [a, b] = [random(made + 1), random(made + 1)];
          if ((time[a] as number) >= (time[b] as number)) continue;
          reach.connect(a, b);
          (edges[a] as Set<number>).add(b);
        }
        if (made % 8 !== 0 && made !== count - 1) continue;
        for (let from = 0; from <= made; from++) {
          const found = after(edges, from);
          for (let to = 0; to <= made; to++) expect(reach.leads(from, to)).toBe(found.has(to));
        }
      }
    }
  });
});

/** Minimum cuts against all ways to divide small networks. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FlowNetwork } from './min-cut.ts';

type Edge = readonly [from: number, to: number, capacity: number];

/** What a division costs: edges from the source's side to the sink's. */
const costOf = (edges: readonly Edge[], side: readonly boolean[]): number =>
  edges.reduce((sum, [from, to, capacity]) => sum + (side[from] && !side[to] ? capacity : 0), 0);

function networkOf(vertices: number, edges: readonly Edge[]): FlowNetwork {
  const network = new FlowNetwork();
  for (let i = 0; i < vertices; i++) expect(network.vertex()).toBe(i + 2);
  for (const edge of edges) network.edge(...edge);
  return network;
}

describe('the minimum cut', () => {
  it('costs no more than any other division', () => {
    const networks = fc
      .integer({ min: 0, max: 7 })
      .chain((vertices) =>
        fc.tuple(
          fc.constant(vertices),
          fc.array(
            fc.tuple(
              fc.nat(vertices + 1),
              fc.nat(vertices + 1),
              fc.oneof(fc.nat(9), fc.double({ min: 0, max: 5, noNaN: true })),
            ),
            { maxLength: 24 },
          ),
        ),
      );
    fc.assert(
      fc.property(networks, ([vertices, edges]) => {
        const side = networkOf(vertices, edges).cut();
        expect(side.slice(0, 2)).toEqual([true, false]);
        let least = Number.POSITIVE_INFINITY;
        for (let bits = 0; bits < 2 ** vertices; bits++) {
          const other = [true, false, ...Array.from({ length: vertices }, (_, i) => (bits & (1 << i)) !== 0)];
          least = Math.min(least, costOf(edges, other));
        }
        expect(Math.abs(costOf(edges, side) - least)).toBeLessThanOrEqual(1e-9 * (1 + least));
      }),
      { numRuns: 400 },
    );
  });

  it('of work that must be on the device is there: an edge without limit is not cut', () => {
    const network = new FlowNetwork();
    const [a, b] = [network.vertex(), network.vertex()];
    network.edge(a, 1, 3);
    network.edge(0, a, Number.POSITIVE_INFINITY);
    network.edge(a, b, 1);
    network.edge(b, 1, 5);
    expect(network.cut()).toEqual([true, false, true, false]);
  });

  it('is found in chains of any length', () => {
    const network = new FlowNetwork();
    let before = 0;
    for (let i = 0; i < 50_000; i++) {
      const vertex = network.vertex();
      network.edge(before, vertex, i === 30_000 ? 1 : 2);
      before = vertex;
    }
    network.edge(before, 1, 2);
    const side = network.cut();
    expect(side.filter(Boolean).length).toBe(1 + 30_000);
  });
});

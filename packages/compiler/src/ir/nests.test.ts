/** Which stores share a nest. */
import { expect, test } from 'vitest';
import { Exprs } from './expr.ts';
import type { KNode } from './ir.ts';
import { splitNests } from './free-ranges.ts';

test('stores outside all loops share a nest with those that reduce over the same ranges, also by way of a later one', () => {
  const e = new Exprs();
  const x = e.param(0, 'float32', 'read', 8);
  const [r, s, t] = [2, 4, 8].map((n) => e.range(n, 'reduce')) as [KNode, KNode, KNode];
  const sum = (range: KNode): KNode => e.reduce('sum', e.load(x, range), [range as never]);
  const store = (slot: number, value: KNode) => ({
    store: e.store(e.param(slot, 'float32', 'write', 1), e.i32(0), value),
    ranges: [],
  });
  const [a, b, c] = [store(1, sum(r)), store(2, sum(s)), store(3, sum(t))];
  expect(splitNests([a, b, c])).toEqual([[a], [b], [c]]);
  const both = store(4, e.add(sum(r), sum(t)));
  expect(splitNests([a, b, c, both])).toEqual([[a, c, both], [b]]);
});

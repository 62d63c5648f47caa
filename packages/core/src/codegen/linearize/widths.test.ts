/** Lanes of vectors where narrower ones are as good: those that leave the fewest steps. */
import { expect, it } from 'vitest';
import { Exprs } from '../../ir/expr.ts';
import { simdCaps } from '../fixtures/nests.ts';
import { vectorLanes } from './vector.ts';

function lanesOf(extent: number, narrowVectors: boolean): number {
  const e = new Exprs();
  const [x, y] = [e.param(0, 'float32', 'read', extent), e.param(1, 'float32', 'write', extent)];
  const i = e.range(extent);
  const store = e.store(y, i, e.mul(e.load(x, i), 2));
  return vectorLanes([{ store, ranges: [i] }], { ...simdCaps, vectorBytes: 64, narrowVectors });
}

it.each([
  [1024, 16],
  [100, 16],
  [28, 8],
  [14, 4],
  [10, 8],
  [3, 16],
])('%i elements: %i lanes', (extent, lanes) => {
  expect(lanesOf(extent, true)).toBe(lanes);
  expect(lanesOf(extent, false)).toBe(16);
});

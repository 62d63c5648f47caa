/** Machine code touches nothing outside of its memory: whoever does ends the process. */
import { expect, it } from 'vitest';
import { guardedDifferences } from './fixtures/guarded-programs.ts';
import { targets } from './testing/targets.ts';

const first = process.env.POLYGRAD_DRAWS === 'same' ? 1 : Math.floor(Date.now() / 1000) % 1_000_000;
const seeds = Array.from({ length: 400 }, (_, i) => first + i);

it.each(targets())('%s, vectors of %i bytes', (isa, vectorBytes) => {
  expect(guardedDifferences({ isa, vectorBytes }, seeds)).toEqual([]);
});

/** float16 by instructions of the processor, on every target that there is. */
import { expect, it } from 'vitest';
import { createNativeEngine } from './create.ts';
import { wrongHalves } from './fixtures/half-cases.ts';
import { targets } from './testing/targets.ts';

it.each(targets())('%s, vectors of %i bytes: float16 is cast as the contract says', async (isa, vectorBytes) => {
  expect(await wrongHalves(createNativeEngine({ threads: 1, isa, vectorBytes }))).toEqual([]);
});

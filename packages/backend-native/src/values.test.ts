/** Every operation and cast on every dtype, on special values, scalar and in vectors of several widths, against the reference engine. */
import { comparePrograms } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { createNativeEngine } from './create.ts';
import { valueCases } from './fixtures/value-cases.ts';
import { targets } from './testing/targets.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

describe.each(sampled(targets(), 2))('%s, vectors of %i bytes', (isa, vectorBytes) => {
  it('gives what the reference engine gives', async () => {
    const engine = createNativeEngine({ threads: 1, isa, vectorBytes });
    const all = [...valueCases()];
    expect(all.length).toBeGreaterThan(1000);
    expect((await comparePrograms(engine, all)).slice(0, 40)).toEqual([]);
    engine.dispose();
  });
});

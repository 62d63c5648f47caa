/** Random programs against the reference engine, on each set of instructions and width of vectors, with code that checks every access. */
import { comparePrograms, randomProgram } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { createNativeEngine } from './create.ts';
import { targets } from './testing/targets.ts';
import { isWhole } from '@polygrad/compiler/fixtures/everyday';

describe.each(targets())('%s, vectors of %i bytes', (isa, vectorBytes) => {
  it.each([false, true])('random programs give what the reference engine gives, checked: %s', async (checked) => {
    const engine = createNativeEngine({ threads: 1, isa, vectorBytes, checked });
    const programs = Array.from({ length: isWhole ? 60 : 25 }, (_, i) => randomProgram(i + 1));
    expect(await comparePrograms(engine, programs)).toEqual([]);
    engine.dispose();
  });
});

/** Loops whose bodies are written several times: what one copy computed is not what the next one asks for. */
import { ProgramBuilder } from '@polygrad/core/kernel';
import { comparePrograms, type ProgramCase } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { createNativeEngine } from './create.ts';
import { targets } from './testing/targets.ts';

/** Each counter chooses by a comparison with a number in memory; `isOpened` stores in a branch in place of a choice. */
function caseOf(count: number, unrollHint: boolean, isOpened: boolean): ProgramCase {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'int32', 'read', 2);
  const y = e.param(1, 'int32', 'readwrite', count);
  b.loop(
    count,
    (i) => {
      const isBelow = e.lt(i, b.load(x, 0));
      if (isOpened) b.ifThen(isBelow, () => b.store(y, i, e.add(i, 100)));
      else b.store(y, i, e.where(isBelow, e.add(i, 100), b.load(x, 1)));
    },
    unrollHint ? { unrollHint } : null,
  );
  const data = [Int32Array.of(Math.ceil(count / 2), -7), new Int32Array(count)];
  const program = b.build({ name: 'below', params: [x, y] });
  return { name: `${count}, ${unrollHint}, ${isOpened}`, program, data, scalars: [] };
}

const cases = [2, 3, 8, 9, 40].flatMap((count) =>
  [false, true].flatMap((unrollHint) => [false, true].map((isOpened) => caseOf(count, unrollHint, isOpened))),
);

describe.each(targets())('%s, vectors of %i bytes', (isa, vectorBytes) => {
  it('gives what the reference engine gives', async () => {
    const engine = createNativeEngine({ threads: 1, isa, vectorBytes });
    expect(await comparePrograms(engine, cases)).toEqual([]);
    engine.dispose();
  });
});

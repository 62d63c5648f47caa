/** Vectors whose elements lie near each other in memory, read by wide loads, against the reference engine; in checked code too. */
import { ProgramBuilder } from '@polygrad/core/kernel';
import { comparePrograms, type ProgramCase } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { createNativeEngine } from './create.ts';
import { targets } from './testing/targets.ts';

/** Where each lane of a vector is read. */
const patterns: Readonly<Record<string, (lane: number, lanes: number) => number>> = {
  'every second': (i) => 2 * i,
  'every third': (i) => 3 * i,
  'each twice': (i) => i >> 1,
  'each three times': (i) => Math.floor(i / 3),
  backwards: (i, lanes) => lanes - 1 - i,
  'pairs turned': (i) => i ^ 1,
  'with gaps': (i) => i + Math.floor(i / 3),
  'two rows': (i, lanes) => (i < lanes / 2 ? 2 * i : 200 + 2 * i),
  'one after another': (i) => i,
  'three rows in turn': (i) => (i % 3) * 60 + Math.floor(i / 3),
  'five rows in turn': (i) => (i % 5) * 60 + Math.floor(i / 5),
};
const length = 512;
const times = 3;

function caseOf(name: string, dtype: 'float32' | 'int32', lanes: number): ProgramCase {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, dtype, 'read', length);
  const y = e.param(1, dtype, 'write', 2 * times * lanes);
  b.loop(times, (i) => {
    // Two vectors read the same windows; the second begins one element further.
    for (const shift of [0, 1]) {
      const first = e.add(e.mul(i, 7), shift);
      const read = Array.from({ length: lanes }, (_, lane) => b.load(x, e.add(first, patterns[name]!(lane, lanes))));
      b.store(y, e.add(e.mul(i, 2 * lanes), shift * lanes), e.vec(read));
    }
  });
  const params = [x, y];
  const data = [
    dtype === 'float32'
      ? Float32Array.from({ length }, (_, i) => i + 0.5)
      : Int32Array.from({ length }, (_, i) => 3 * i - 700),
    dtype === 'float32' ? new Float32Array(2 * times * lanes) : new Int32Array(2 * times * lanes),
  ];
  return { name: `${name}, ${lanes} of ${dtype}`, program: b.build({ name: 'near', params }), data, scalars: [] };
}

/** Four columns of as many rows as a vector has lanes; `turn`: each part of four lanes reads a column further than the one before. */
function squaresOf(lanes: number, turn: number): ProgramCase {
  const b = new ProgramBuilder();
  const { e } = b;
  const row = 13;
  const [x, y] = [e.param(0, 'float32', 'read', lanes * row), e.param(1, 'float32', 'write', 2 * 4 * lanes)];
  b.loop(2, (i) => {
    for (let c = 0; c < 4; c++) {
      const at = (lane: number): number => lane * row + ((c + turn * (lane >> 2)) % 4);
      const read = Array.from({ length: lanes }, (_, lane) => b.load(x, e.add(e.mul(i, 5), at(lane))));
      b.store(y, e.add(e.mul(i, 4 * lanes), c * lanes), e.vec(read));
    }
  });
  return {
    name: `squares of ${lanes} lanes, ${turn}`,
    program: b.build({ name: 'squares', params: [x, y] }),
    data: [Float32Array.from({ length: lanes * row }, (_, i) => i + 0.5), new Float32Array(8 * lanes)],
    scalars: [],
  };
}

const cases = Object.keys(patterns).flatMap((name) =>
  [4, 8, 16, 32].flatMap((lanes) => (['float32', 'int32'] as const).map((dtype) => caseOf(name, dtype, lanes))),
);
cases.push(...[4, 8, 16, 32].flatMap((lanes) => [squaresOf(lanes, 0), squaresOf(lanes, 1)]));

describe.each(targets())('%s, vectors of %i bytes', (isa, vectorBytes) => {
  it.each([false, true])('gives what the reference engine gives, checked: %s', async (checked) => {
    const engine = createNativeEngine({ threads: 1, isa, vectorBytes, checked });
    expect(await comparePrograms(engine, cases)).toEqual([]);
    engine.dispose();
  });

  it('transposes squares side by side at once', async () => {
    const engine = createNativeEngine({ threads: 1, isa, vectorBytes });
    const [kernel] = engine.compile([squaresOf(vectorBytes / 4, 0).program]);
    const { text } = await engine.source(kernel!);
    expect(text.match(/vshufps/g)).toHaveLength(8);
    engine.dispose();
  });

  // Four lanes of three rows may need four windows, which are no better than four elements.
  it.each(['every second', ...(vectorBytes > 16 ? ['three rows in turn'] : [])])(
    'reads %s in wide loads',
    async (name) => {
      const engine = createNativeEngine({ threads: 1, isa, vectorBytes });
      const [kernel] = engine.compile([caseOf(name, 'float32', 16).program]);
      const { text } = await engine.source(kernel!);
      expect(text).not.toContain('vinsertps');
      expect(text).toMatch(/vshufps|vpermps|vpermt2ps/);
      engine.dispose();
    },
  );
});

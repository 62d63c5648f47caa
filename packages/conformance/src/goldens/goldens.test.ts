/** That the golden suite sees what is wrong: values, gradients, shapes and dtypes of a result; and what it draws. */
import { createReferenceEngine } from '@polygrad/testing';
import { setEngine } from '@polygrad/core';
import { beforeAll, describe, expect, it } from 'vitest';
import { defaultTolerances } from '../compare.ts';
import type { Target } from '../target.ts';
import { goldenCases } from '../suites/goldens.ts';
import { draw } from './draw.ts';
import { type CaseNumbers, type GoldenCase, packagedGoldens, readGoldens } from './file.ts';

const target: Target = {
  holds: () => true,
  computesDouble: true,
  flushesDenormals: false,
  tolerances: defaultTolerances,
  eagerly: (f) => f(),
};

async function named(op: string, label: string): Promise<GoldenCase> {
  const goldens = await readGoldens(packagedGoldens() as Uint8Array);
  const found = goldens.find((golden) => golden.op === op && golden.label === label);
  if (found === undefined) throw new Error(`no golden case ${op} / ${label}`);
  return found;
}

/** Runs a case in all its dtypes, with some of it changed. */
async function run(golden: GoldenCase, change: Partial<GoldenCase> = {}): Promise<void> {
  for (const { run: check } of goldenCases([{ ...golden, ...change }], true, target)) await check();
}

/** The numbers of a case with one list of one kind changed in its last element. */
function off(golden: GoldenCase, kind: 'results' | 'first' | 'second', by: number): Partial<GoldenCase> {
  const numbers = (): CaseNumbers => {
    const all = golden.numbers();
    const lists = all[kind].map((list) => list.map((x, i) => (i === list.length - 1 ? x + by : x)));
    return { ...all, [kind]: lists };
  };
  return { numbers };
}

describe('golden cases', () => {
  beforeAll(() => setEngine(createReferenceEngine()));

  it('hold for a correct library', async () => {
    await run(await named('tanh', '2x3'));
    await run(await named('add', '12, 12 (int32)'));
  });

  it('see a wrong value, gradient and second derivative', async () => {
    const golden = await named('tanh', '2x3');
    await expect(run(golden, off(golden, 'results', 1e-4))).rejects.toThrow(/^value: element \[1,2\]/);
    await expect(run(golden, off(golden, 'first', 1e-3))).rejects.toThrow(/^gradient by tensor 0: element \[1,2\]/);
    await expect(run(golden, off(golden, 'second', 1e-3))).rejects.toThrow(/^gradient of gradient by tensor 0/);
    const whole = await named('add', '12, 12 (int32)');
    await expect(run(whole, off(whole, 'results', 1))).rejects.toThrow(/element 11 is/);
  });

  it('see a wrong shape, dtype and number of results', async () => {
    const golden = await named('floor', '7');
    const [result] = golden.results as [GoldenCase['results'][number]];
    await expect(run(golden, { by: [], results: [[[1, 7], result[1]]] })).rejects.toThrow(/shape \[7\] where \[1,7\]/);
    await expect(run(golden, { by: [], results: [[[7], 'bool']] })).rejects.toThrow(/dtype float64 where bool/);
    await expect(run(golden, { by: [], results: [result, result] })).rejects.toThrow(/1 results where 2 are expected/);
  });

  it('skip what the library does not have, by name', async () => {
    const golden = await named('floor', '7');
    const [first] = goldenCases([{ ...golden, op: 'notThere' }], false, target);
    expect(await first?.run()).toEqual({ skip: 'goldens: the library has no notThere yet' });
    const [none] = goldenCases(null, false, target);
    expect(await none?.run()).toEqual({ skip: 'no golden file was given (in Node the package finds its own)' });
  });

  it('refuse a file of another kind', async () => {
    const stream = new Blob(['something else, long enough']).stream().pipeThrough(new CompressionStream('gzip'));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    await expect(readGoldens(bytes)).rejects.toThrow(/it begins with 'somethin', not 'PGGOLD01'/);
  });
});

// Printed by tooling/goldens/draw.py.
describe('draw', () => {
  it.each([
    [
      ['u', -2, 2],
      [-0.1479659080505371, 0.3232235908508301, 1.9818456172943115, 0.9322872161865234],
    ],
    [
      ['i', -9, 9],
      [6, -1, 6, -6],
    ],
    [
      ['g', -32, 32, 16],
      [-1.4375, -0.0625, 1.375, -0.375],
    ],
  ] as const)('gives the numbers of the generator: %j', (kind, expected) => {
    expect(draw(kind, 'a name', 4)).toEqual(expected);
  });
});

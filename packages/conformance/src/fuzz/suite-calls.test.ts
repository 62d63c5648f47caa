/** Cases of the suite as steps of programs: which ones are met, in which forms, and that a wrong one would be found. */
import { setEngine, type Tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeRandom } from '../oracle/random.ts';
import type { CallStep, Program } from '../programs/program.ts';
import { check } from './check.ts';
import { everyDType, generate } from './generate.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

/** The number that makes a row of a program such a step. */
const suite = 41;

function programOf(random: () => number, smooth: boolean): Program {
  const row = (first?: number): number[] =>
    Array.from({ length: 16 }, (_, i) => (i === 0 && first !== undefined ? first : Math.floor(random() * 65536)));
  return generate([row(), row(suite), row(suite)], { dtypes: smooth ? ['float64', 'bool'] : everyDType, smooth });
}

const own = ({ steps }: Program): CallStep[] =>
  steps.filter((s): s is CallStep => s.kind === 'call' && s.run !== undefined);

describe('cases of the suite in programs', () => {
  it('are those of all families, of compositions and of loops, with their options', () => {
    const random = makeRandom(1);
    const [texts, before] = [new Set<string>(), new Set<string>()];
    for (let i = 0; i < 400; i++) {
      const program = programOf(random, false);
      for (const { run } of own(program)) texts.add(run!.text);
      for (const s of program.steps) if (s.kind === 'call' && s.run === undefined) before.add(s.op);
    }
    const all = [...texts].join('\n');
    for (const name of ['scan of', 'attention', 'stride', 'reduction', 'by their norm']) expect(all).toContain(name);
    expect([...before].sort()).toEqual(['flip', 'neg', 'permute']);
    expect(texts.size).toBeGreaterThan(250);
  });

  it('have derivatives by all of their floats where the program is to have them', () => {
    const random = makeRandom(2);
    let found = 0;
    for (let i = 0; i < 150; i++)
      for (const { dtype, run } of own(programOf(random, true))) {
        expect([run!.text, dtype]).toEqual([run!.text, 'float64']);
        found++;
      }
    expect(found).toBeGreaterThan(80);
  });

  it('are compared with their formulas', async () => {
    const random = makeRandom(3);
    let program = programOf(random, true);
    while (own(program).length === 0 || program.outputs.length === 0) program = programOf(random, true);
    await check(program, { exact: true });
    const other = (s: Program['steps'][number]): Program['steps'][number] => {
      if (s.kind !== 'call' || s.run === undefined) return s;
      const { text, f } = s.run;
      return { ...s, run: { text, f: (xs: readonly Tensor[]) => f(xs).add(1) } };
    };
    const wrong = { ...program, steps: program.steps.map(other) };
    await expect(check(wrong, { exact: true })).rejects.toThrow(/is expected/);
  });
});

/** The conformance suite, run by the interpreter of PTX, every kernel assembled for one of the targets; in seven parts, each for another card. */
import { describe, expect, it } from 'vitest';
import { ptxRun } from './fixtures/ptx-run.ts';
import { suiteProblems } from './fixtures/suite.ts';

async function check(part: 1 | 2 | 3 | 4 | 5 | 6 | 7): Promise<void> {
  expect(await suiteProblems({ slice: [part, 7] }, part - 1)).toEqual([]);
}

describe.skipIf(ptxRun() === null)('the suite', () => {
  it('passes on sm_75: the first part', () => check(1));
  it('passes on sm_80: the second part', () => check(2));
  it('passes on sm_86: the third part', () => check(3));
  it('passes on sm_89: the fourth part', () => check(4));
  it('passes on sm_90: the fifth part', () => check(5));
  it('passes on sm_100: the sixth part', () => check(6));
  it('passes on sm_120: the last part', () => check(7));
});

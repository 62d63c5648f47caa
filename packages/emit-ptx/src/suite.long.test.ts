/** The conformance suite, run by the interpreter of PTX, every kernel assembled for one of the targets; in seven parts, each for another card. */
import { expect, it } from 'vitest';
import { ptxRun } from './fixtures/ptx-run.ts';
import { suiteProblems } from './fixtures/suite.ts';

const parts = [1, 2, 3, 4, 5, 6, 7] as const;

it.skipIf(ptxRun() === null).each(parts)('part %i of 7 passes, and its kernels are assembled', async (part) => {
  expect(await suiteProblems({ slice: [part, parts.length] }, part)).toEqual([]);
});

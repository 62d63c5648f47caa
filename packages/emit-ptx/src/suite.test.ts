/** A sample of the conformance suite, run by the interpreter of PTX, its kernels assembled. All of it: suite.long.test.ts. */
import { expect, it } from 'vitest';
import { ptxRun } from './fixtures/ptx-run.ts';
import { suiteProblems } from './fixtures/suite.ts';

it.skipIf(ptxRun() === null)('a sample of the suite passes, and its kernels are assembled', async () => {
  expect(await suiteProblems({ sample: 801 })).toEqual([]);
});

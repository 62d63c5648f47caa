/** Cases that leave buffers behind, and those that run while somebody else's are given back. */
import { setEngine, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, expect, it } from 'vitest';
import { CaseRunner } from './case-runner.ts';

beforeEach(() => setEngine(createReferenceEngine()));

/** Runs cases in order; their outcomes and details. */
async function outcomes(...runs: (() => Promise<undefined | { skip: string }>)[]): Promise<string[]> {
  const runner = new CaseRunner([]);
  const found: string[] = [];
  for (const [i, run] of runs.entries()) {
    const { outcome, detail } = await runner.run({ name: `case ${i}`, run });
    found.push(detail === '' ? outcome : `${outcome}: ${detail}`);
  }
  return found;
}

/** A tensor with a buffer of its own. */
const made = (): Tensor => tensor([1, 2, 3]);
const nothing = async (): Promise<undefined> => undefined;

it('a case that leaves a buffer behind fails, one that skips too', async () => {
  const leak = async (): Promise<undefined> => void made();
  const skip = async (): Promise<{ skip: string }> => {
    made();
    return { skip: 'no reason' };
  };
  expect(await outcomes(nothing, leak, nothing, skip)).toEqual([
    'passed',
    'failed: 1 buffers were left behind (0 before, 1 after)',
    'passed',
    'failed: 1 buffers were left behind (1 before, 2 after)',
  ]);
});

it('what failed cases left may be given back during later ones', async () => {
  const held: Tensor[] = [];
  const fails = async (): Promise<undefined> => {
    held.push(made(), made());
    throw new Error('on purpose');
  };
  const collects = async (): Promise<undefined> => void held.pop()?.dispose();
  expect(await outcomes(fails, collects, nothing, collects, nothing)).toEqual([
    'failed: on purpose',
    'passed',
    'passed',
    'passed',
    'passed',
  ]);
});

it('a leak is found beside them, and what nobody left cannot be given back', async () => {
  const held: Tensor[] = [];
  const fails = async (): Promise<undefined> => {
    held.push(made());
    throw new Error('on purpose');
  };
  const leak = async (): Promise<undefined> => void held.unshift(made());
  expect(await outcomes(fails, leak)).toEqual([
    'failed: on purpose',
    'failed: 1 buffers were left behind (1 before, 2 after)',
  ]);
  for (const t of held) t.dispose();
  const own = made();
  expect(await outcomes(async () => void own.dispose())).toEqual([
    'failed: -1 buffers were left behind (1 before, 0 after)',
  ]);
});

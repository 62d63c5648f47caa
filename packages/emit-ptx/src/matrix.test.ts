/** Tiles of matrices and copies: what they compute against the reference, on the interpreter of PTX, and that every target assembles them. */
import { comparePrograms } from '@polygrad/testing';
import { expect, it } from 'vitest';
import { matrixRows } from './fixtures/matrix-rows.ts';
import { assemble, ptxas, targets } from './fixtures/ptxas.ts';
import { ptxRun } from './fixtures/ptx-run.ts';
import { createSimulatedEngine } from './fixtures/simulated-engine.ts';
import { emitPtx } from './index.ts';

it.skipIf(ptxRun() === null).each(targets.slice(0, 2))(
  'tiles give what the reference gives on sm_$computeCapability',
  async (target) => {
    expect(await comparePrograms(createSimulatedEngine(target), [...matrixRows(target.computeCapability)])).toEqual([]);
  },
);

it.skipIf(ptxas() === null).each(targets)('tiles are assembled for sm_$computeCapability', (target) => {
  const kernels = matrixRows(target.computeCapability).map(({ program }) => emitPtx(program, target));
  for (const { registers, spilled } of assemble(kernels, target)) {
    expect(registers).toBeLessThanOrEqual(64);
    expect(spilled).toBe(0);
  }
});

it('what a card has no instruction for is refused', () => {
  const old = { computeCapability: 75, isa: '6.3' };
  const refusals = matrixRows(80).map(({ program, name }) => {
    try {
      emitPtx(program, old);
      return null;
    } catch (error) {
      return `${name}: ${(error as Error).message}`;
    }
  });
  expect(refusals.filter((r) => r === null)).toHaveLength(2);
});

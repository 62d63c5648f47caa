/** Every operation of programs is in a case that is run and assembled for every target; those that the other tables leave out are run here. */
import type { KOp } from '@polygrad/core/kernel';
import { BASE_OPS } from '@polygrad/core/internals';
import { castCases, comparePrograms, groupCases, operationCases, randomProgram, threadCases } from '@polygrad/testing';
import { expect, it } from 'vitest';
import { assemble, ptxas, sampledTargets, targets } from './fixtures/ptxas.ts';
import { matrixRows } from './fixtures/matrix-rows.ts';
import { ptxRun } from './fixtures/ptx-run.ts';
import { rows } from './fixtures/rows.ts';
import { createSimulatedEngine } from './fixtures/simulated-engine.ts';
import { emitPtx, ptxNativeOps } from './index.ts';
import { isWhole } from '@polygrad/compiler/fixtures/everyday';

/** Operations of programs that compute nothing. */
const others: readonly KOp[] = [
  'PARAM', 'SCALAR', 'SHARED', 'REG', 'CONST', 'SPECIAL', 'LOAD', 'STORE', 'ATOMIC', 'LOOP', 'ENDLOOP', 'IF', 'ENDIF', 'BARRIER',
  'SUBGROUP', 'CAST', 'BITCAST', 'VEC', 'LANE', 'IOTA', 'MATRIX', 'FRAGMENT', 'COPY', 'COMMIT', 'WAIT',
]; // biome-ignore format: a list

// From sm_80 on the instructions are the same.
it.skipIf(ptxRun() === null).each(isWhole ? targets.slice(0, 2) : targets.slice(1, 2))(
  'on sm_$computeCapability they give what the reference gives',
  async (target) => {
    expect(await comparePrograms(createSimulatedEngine(target), [...rows()])).toEqual([]);
  },
);

it.skipIf(ptxas() === null).each(sampledTargets)('they are assembled for sm_$computeCapability', (target) => {
  const kernels = [...rows()].map(({ program }) => emitPtx(program, target));
  for (const { registers } of assemble(kernels, target)) expect(registers).toBeGreaterThan(0);
});

it('no operation is left out', () => {
  const { caps } = createSimulatedEngine({ computeCapability: 80, isa: '7.0' });
  const dtypes = ['float32', 'int32', 'bool'] as const;
  const cases = [
    ...rows(),
    ...matrixRows(80),
    ...operationCases(dtypes, [1]),
    ...castCases(dtypes, dtypes, [1]),
    ...threadCases(dtypes),
    ...groupCases(caps),
    ...[1, 2, 3].map((seed) => randomProgram(seed)),
  ];
  const met = new Set<KOp>(cases.flatMap(({ program }) => program.body.map(({ op }) => op)));
  expect([...BASE_OPS, ...ptxNativeOps, ...others].filter((op) => !met.has(op as KOp))).toEqual([]);
});

/** The cost of an operation stands in its primitive's definition, and in the table for loop nests: they must agree. */
import { expect, it } from 'vitest';
import { operationCost } from '@polygrad/compiler/codegen/loops/work';
import type { PrimitiveName } from '../graph/node.ts';
import { definitionOf } from '../graph/definition.ts';
import { definitions } from './all.ts';
import { registerCommon } from './common.ts';
import { elementwise } from './elementwise.ts';

it('definitions give each operation that the table lists the cost it has there', () => {
  registerCommon();
  const common = (Object.keys(elementwise) as PrimitiveName[]).map((name) => definitionOf(name));
  const single = [...common, ...definitions].flatMap(({ op, kernelOp, work }) =>
    kernelOp == null ? [] : [[op, work, operationCost(kernelOp)] as const],
  );
  // What the table does not list counts as an addition there.
  const listed = single.filter(([, , cost]) => cost > 1);
  expect(listed.length).toBeGreaterThan(25);
  for (const [op, work, cost] of listed) expect([op, cost]).toEqual([op, work]);
});

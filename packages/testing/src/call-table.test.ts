/** The table of right calls, the lists of what is not in it, and the changed calls made of it. */
import { beforeAll, describe, expect, it } from 'vitest';
import * as pg from '@polygrad/core';
import * as numbers from '@polygrad/numbers';
import { type CallTable, callTable, uncalled, untold } from './call-table.ts';
import { callText, changedCalls, hostCall } from './changed-calls.ts';
import { createReferenceEngine } from './reference-engine.ts';
import { functionsOf } from './right-calls.ts';

let table: CallTable = new Map();

beforeAll(async () => {
  await pg.setEngine(createReferenceEngine());
  table = await callTable({ ...pg, ...numbers });
});

describe('every public function', () => {
  it('has a right call, or a reason for which it has none', () => {
    const names = functionsOf({ ...pg });
    expect(names.filter((name) => !table.has(name) && !Object.hasOwn(uncalled, name))).toEqual([]);
    expect(names.length).toBeGreaterThan(300);
  });

  it('stands in the lists of exceptions only if it is one', () => {
    for (const [name, why] of Object.entries(uncalled)) {
      expect([name, Object.hasOwn(pg, name), table.has(name)]).toEqual([name, true, false]);
      expect(why.length).toBeGreaterThan(20);
    }
    for (const [name, why] of Object.entries(untold)) {
      expect([name, table.has(name)]).toEqual([name, true]);
      expect(why.length).toBeGreaterThan(10);
    }
  });

  it('that returns a function has a call of that too', () => {
    for (const name of ['grad', 'grads', 'valueAndGrad', 'hessian', 'jacobian', 'vmap', 'customGradient'])
      expect([name, table.get(name)?.right.next?.length]).toEqual([name, expect.any(Number)]);
  });

  it('has changed calls, of options that the example does not name as well', () => {
    expect(table.get('relu')?.changed('likely').length).toBeGreaterThan(10);
    const options = (table.get('sum')?.changed('likely') ?? []).map(({ args }) => args[1]);
    expect(options).toContainEqual(expect.objectContaining({ keepDims: true }));
  });
});

describe('changed calls', () => {
  it('differ from the right one in one argument, or one part of it', async () => {
    const right = await hostCall({ args: [pg.tensor([1, 2]), [3, { k: true }]], next: ['sum'] });
    const likely = changedCalls(right, 'likely');
    expect(likely.length).toBeGreaterThan(50);
    for (const { args, next } of likely) {
      const same = [args[0] === right.args[0], args[1] === right.args[1], args.length === 2, next === right.next];
      expect(same.filter((is) => !is).length).toBe(1);
    }
    expect(likely.map(({ args }) => args[1])).toContainEqual([3, { k: false }]);
    expect(likely.map(({ next }) => next)).toContainEqual(['mean']);
    const odd = changedCalls(right, 'odd');
    expect(odd.map(({ args }) => args[1])).toContainEqual([3, { k: null }]);
    expect(odd.map(({ args }) => args)).toContainEqual([...right.args, Number.NaN]);
  });

  it('take what their caller knows in the place of what only the caller knows', () => {
    const mine = Symbol('mine');
    const others = (value: unknown): unknown[] | null => (value === mine ? ['other'] : null);
    expect(changedCalls({ args: [mine], next: null }, 'likely', { others })).toEqual([{ args: ['other'], next: null }]);
  });

  it('are text', async () => {
    const call = await hostCall({ args: [pg.tensor([1n, 2n]), { axis: [-0], mode: 'x' }], next: [2] });
    expect(callText('f', call)).toBe(
      "pg.f(pg.tensor([1n, 2n], { dtype: 'int64', shape: [2] }), { axis: [-0], mode: 'x' })(2);",
    );
  });
});

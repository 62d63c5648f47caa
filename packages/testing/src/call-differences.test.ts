/** What counts as a difference between outcomes of a call, and what is wrong with a refusal. */
import { describe, expect, it } from 'vitest';
import * as pg from '@polygrad/core';
import { callDifference } from './call-differences.ts';
import { type Called, type Outcome, outcomeOf, type ReadTensor } from './call-outcomes.ts';
import { hostCall } from './changed-calls.ts';
import { createReferenceEngine } from './reference-engine.ts';
import { refusalComplaint } from './wrong-arguments.ts';

await pg.setEngine(createReferenceEngine());

const tolerances = { float32: { rtol: 1e-6, atol: 1e-6 } };

/** The difference of a call with its own outcome, changed by `change`. */
async function difference(f: Called, args: unknown[], change: (outcome: Outcome) => Outcome): Promise<string | null> {
  const call = await hostCall({ args, next: null });
  pg.dispose(args);
  const outcome = await outcomeOf(f, call);
  return callDifference(f, call, change(outcome), { tolerances });
}

/** With `by` added to the first element of the first tensor. */
const off =
  (by: number) =>
  (outcome: Outcome): Outcome => {
    const [first, ...rest] = outcome.tensors as [ReadTensor, ...ReadTensor[]];
    const data = (first.data as Float32Array).slice();
    data[0] = data[0]! + by;
    return { ...outcome, tensors: [{ ...first, data }, ...rest] };
  };

describe('outcomes of a call', () => {
  it('are the same on the same engine, and leave nothing behind', async () => {
    const before = pg.memory().numTensors;
    for (const f of [pg.exp, pg.nonZero, pg.sort, pg.rand, (x: pg.Tensor) => pg.dropout(x, { p: 0.5 })])
      expect(await difference(f, [f === pg.rand ? [3] : pg.tensor([1, 0, 2])], (o) => o)).toBe(null);
    expect(pg.memory().numTensors).toBe(before);
  });

  it('differ in elements by more than the tolerance, and in integers by anything', async () => {
    expect(await difference(pg.exp, [pg.tensor([1, 2])], off(1e-6))).toBe(null);
    expect(await difference(pg.exp, [pg.tensor([1, 2])], off(1e-4))).toMatch(/element 0 of float32 \[2\] is 2.718/);
    expect(await difference(pg.argMax, [pg.tensor([1, 2])], off(1))).toBe(
      'element 0 of int32 [] is 2 where 1 is expected',
    );
  });

  it('may differ by as much as roundings of the inputs make, where the call magnifies them', async () => {
    // The slope is 1e6: a rounding of 6e-8 of 1 becomes 0.06.
    const steep = (x: pg.Tensor): pg.Tensor => pg.mul(pg.sub(x, 1), 1e6);
    expect(await difference(steep, [pg.tensor([1])], off(0.05))).toBe(null);
    expect(await difference(steep, [pg.tensor([1])], off(5))).toMatch(/element 0/);
    // Next to a jump.
    expect(await difference(pg.floor, [pg.tensor([1])], off(-1))).toBe(null);
    expect(await difference(pg.floor, [pg.tensor([1.5])], off(-1))).toMatch(/element 0/);
  });

  it('differ in shapes, dtypes, numbers of results, plain values, and in whether they are refused', async () => {
    const x = (): pg.Tensor => pg.tensor([1, 2]);
    const first = (change: object) => (outcome: Outcome) => ({
      ...outcome,
      tensors: outcome.tensors.map((t) => ({ ...t, ...change })),
    });
    expect(await difference(pg.exp, [x()], first({ shape: [2, 1] }))).toBe(
      'float32 [2, 1] where float32 [2] is expected',
    );
    expect(await difference(pg.exp, [x()], first({ dtype: 'int32' }))).toBe('int32 [2] where float32 [2] is expected');
    expect(await difference(pg.exp, [x()], (o) => ({ ...o, tensors: [] }))).toBe('0 tensors where 1 are expected');
    expect(await difference(pg.allClose, [x(), x()], (o) => ({ ...o, plain: [false] }))).toMatch(/the one at 0 false/);
    const refused = new pg.ShapeError('exp', 'no');
    expect(await difference(pg.exp, [x()], (o) => ({ ...o, refused }))).toBe('[exp] no where it is accepted');
  });

  it('are those of functions that are returned, called in turn', async () => {
    const call = await hostCall({
      args: [(x: pg.Tensor) => pg.sum(pg.square(x))],
      next: [pg.tensor([1, 2])],
    });
    const outcome = await outcomeOf(pg.grad, call);
    expect(outcome.tensors.map(({ data }) => [...(data as Float32Array)])).toEqual([[2, 4]]);
  });
});

describe('a refusal', () => {
  it('is an error of the library in the name of the function, and not trouble of the engine', () => {
    expect(refusalComplaint('add', new pg.ShapeError('add', 'shapes differ'))).toBe(null);
    expect(refusalComplaint('add', new pg.ShapeError('sum', 'shapes differ'))).toBe('ShapeError: [sum] shapes differ');
    expect(refusalComplaint('add', new TypeError('x is undefined'))).toBe('TypeError: x is undefined');
    expect(refusalComplaint('add', new pg.ShapeError('add', 'x'.repeat(3000)))).toMatch(/^ShapeError: /);
    expect(refusalComplaint('add', new pg.UnsupportedError('cpu.alloc', 'too large'))).toBe(null);
  });
});

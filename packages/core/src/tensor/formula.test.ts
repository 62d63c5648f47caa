/** Formulas: what they record for a set is what a call of their function records, and they call it where it may differ. */
import { beforeAll, describe, expect, it } from 'vitest';
import { createReferenceEngine } from '@polygrad/testing';
import {
  autocast,
  Formula,
  flush,
  printGraph,
  rand,
  setEager,
  setEngine,
  type Tensor,
  tensor,
  verifyGraph,
} from '../index.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

/** The formula of a first moment and a step, and how often it is called. */
class Counted {
  calls = 0;
  readonly formula = new Formula((set, by) => {
    this.calls++;
    return moved(set, by);
  });
}

function moved([p, g, m]: readonly Tensor[], [rate, beta]: readonly Tensor[]): Tensor[] {
  const next = m!.mul(beta!).add(g!.mul(beta!.mul(-1).add(1)));
  return [p!.sub(next.mul(rate!).div(g!.mul(g!).add(2).sqrt())), next];
}

const numbers = (): Tensor[] => [tensor(0.25), tensor(0.75)];
const set = (...shape: number[]): Tensor[] => [rand(shape), rand(shape), rand(shape)];

/** A graph as text, without what holds its nodes: what lies between has names only where a formula was called. */
const told = (results: readonly Tensor[]): string => printGraph(results).replace(/ {2}#.*/g, '');

describe('a formula', () => {
  it('is called once, and records for other sets what calls record', async () => {
    const made = new Counted();
    const by = numbers();
    for (const shape of [[2, 3], [4], [], [3, 1, 2]]) {
      const tensors = set(...shape);
      flush();
      const found = made.formula.of(tensors, by);
      const wanted = moved(tensors, by);
      verifyGraph(found);
      expect(told(found)).toBe(told(wanted));
      expect(found.map(({ shape: own }) => own)).toEqual([shape, shape]);
      for (const [i, result] of found.entries()) expect(await result.data()).toEqual(await wanted[i]!.data());
    }
    expect(made.calls).toBe(1);
  });

  it('computes what arithmetic on the host gives', async () => {
    const { formula } = new Counted();
    const values = [0.5, -1.5, 3];
    for (let at = 0; at < values.length; at++) {
      const [p, g, m] = [values[at]!, values[(at + 1) % 3]!, values[(at + 2) % 3]!];
      const [moved, next] = formula.of([tensor([p]), tensor([g]), tensor([m])], numbers());
      const wanted = m * 0.75 + g * 0.25;
      expect(await next!.item()).toBeCloseTo(wanted, 6);
      expect(await moved!.item()).toBeCloseTo(p - (wanted * 0.25) / Math.sqrt(g * g + 2), 6);
    }
  });

  it('leaves no tensors but its results, and none in memory', () => {
    const { formula } = new Counted();
    const by = numbers();
    for (const shape of [[2], [5]])
      for (const result of formula.of(set(...shape), by)) expect(result.disposed).toBe(false);
  });

  it('is called for each set where it is not elementwise, or reads something else', async () => {
    let calls = 0;
    const other = tensor([1, 2]);
    const kinds: ((x: Tensor) => Tensor)[] = [
      (x) => x.sub(x.mean()),
      (x) => x.add(other),
      (x) => x.reshape([1, 2]),
      (x) => x.mul(tensor(2)),
    ];
    for (const kind of kinds) {
      calls = 0;
      const formula = new Formula(([x]) => {
        calls++;
        return [kind(x!)];
      });
      for (const values of [
        [1, 5],
        [2, 4],
      ]) {
        const x = tensor(values);
        expect(await formula.of([x])[0]!.array()).toEqual(await kind(x).array());
      }
      expect(calls).toBe(2);
    }
  });

  it('tells apart what was one tensor at first', async () => {
    const formula = new Formula(([a, b]) => [a!.sub(b!)]);
    const x = tensor([3, 4]);
    expect(await formula.of([x, x])[0]!.array()).toEqual([0, 0]);
    expect(await formula.of([x, tensor([1, 1])])[0]!.array()).toEqual([2, 3]);
  });

  it('records other dtypes, broadcast sets and mixed precision by calls', async () => {
    let calls = 0;
    const formula = new Formula(([a, b]) => {
      calls++;
      return [a!.mul(b!)];
    });
    const [a, b] = [tensor([2, 3]), tensor([4, 5])];
    formula.of([a, b]);
    expect(formula.of([a.cast('float64'), b.cast('float64')])[0]!.dtype).toBe('float64');
    expect(calls).toBe(2);
    expect(await formula.of([a, tensor([[1], [2]])])[0]!.array()).toEqual([
      [2, 3],
      [4, 6],
    ]);
    expect(calls).toBe(3);
    autocast('bfloat16', () => formula.of([a, b]));
    expect(calls).toBe(4);
    expect(await formula.of([b, a])[0]!.array()).toEqual([8, 15]);
    expect(calls).toBe(4);
  });

  it('is found again after a flush on the way', async () => {
    const { formula } = new Counted();
    setEager(true);
    try {
      formula.of(set(2), numbers());
    } finally {
      setEager(false);
    }
    const made = new Counted();
    for (let i = 0; i < 3; i++) made.formula.of(set(2), numbers());
    expect(made.calls).toBe(1);
    expect(formula.of(set(2), numbers())[0]!.shape).toEqual([2]);
  });

  it('passes history on', async () => {
    const formula = new Formula(([x]) => [x!.mul(x!)]);
    formula.of([tensor([1])]);
    const x = tensor([3, 4]);
    x.requiresGrad = true;
    formula.of([x])[0]!.sum().backward();
    expect(await x.grad!.array()).toEqual([6, 8]);
  });
});

/** States that are taken over: those of files, whole or not at all, and what is no state of the optimizer. */
import { memory, seed, setEngine, stats, sum, type Tensor, tensor, valueAndGrad } from '@polygrad/core/functions';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, expect, it } from 'vitest';
import {
  Adam,
  AdamW,
  AMSGrad,
  LBFGS,
  type OptimizerState,
  parameter,
  ParameterGroups,
  ReduceOnPlateau,
  SGD,
} from '../index.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
  seed(1);
});

const at = (...values: number[]): Tensor => parameter(tensor(values));
const numbers = async (t: Tensor): Promise<number[]> => Array.from((await t.data()) as Float32Array);
/** As a file has it: a Map. */
const ofFile = ({ slots, ...rest }: OptimizerState) => ({ ...rest, slots: new Map(Object.entries(slots)) });

/** The Rosenbrock function of a pair, which no quadratic method solves at once, with its gradient. */
function valley(p: Tensor): { value: Tensor; grads: Tensor[] } {
  const [value, gradient] = valueAndGrad((q: Tensor) => {
    const [x, y] = [sum(q.mul(tensor([1, 0]))), sum(q.mul(tensor([0, 1])))];
    const [a, b] = [y.sub(x.mul(x)), x.mul(-1).add(1)];
    return a.mul(a).mul(100).add(b.mul(b));
  })(p);
  return { value, grads: [gradient] };
}

it('a longer history of L-BFGS makes no new plans', async () => {
  const p = at(-1.2, 1);
  const optimizer = new LBFGS([p], { lr: 0.01, maxIter: 20, toleranceChange: 0 });
  const step = (): Promise<number> => optimizer.step(() => valley(p));
  await step();
  const { plansMade } = stats();
  await step();
  expect([optimizer.steps, stats().plansMade - plansMade]).toEqual([40, 0]);
  optimizer.dispose();
});

it('L-BFGS takes the gradients that backward() left, as in PyTorch', async () => {
  const loss = (p: Tensor): Tensor => {
    const [x, y] = [sum(p.mul(tensor([1, 0]))), sum(p.mul(tensor([0, 1])))];
    const [a, b] = [y.sub(x.mul(x)), x.mul(-1).add(1)];
    return a.mul(a).mul(100).add(b.mul(b));
  };
  const options = { maxIter: 6, lineSearchFn: 'strongWolfe' } as const;
  const [one, other] = [at(-1.2, 1), at(-1.2, 1)];
  const [first, second] = [new LBFGS([one], options), new LBFGS([other], options)];
  const evaluate = (): Tensor => {
    second.zeroGrad();
    const value = loss(other);
    value.backward();
    return value;
  };
  const before = await first.step(() => valley(one));
  const { numTensors } = memory();
  await first.step(() => valley(one));
  const held = memory().numTensors - numTensors;
  expect(await second.step(evaluate)).toBe(before);
  const ours = memory().numTensors;
  await second.step(evaluate);
  expect(await numbers(other)).toEqual(await numbers(one));
  expect(memory().numTensors - ours).toBe(held); // no more than with gradients that are given
  expect(other.grad).toBe(null);
  await expect(second.step(() => loss(other))).rejects.toThrow('no parameter has a gradient; call backward() on it');
  await expect(second.step((() => undefined) as never)).rejects.toThrow(
    'bad result: undefined; must be { value, grads } of lossAndGrad, or a loss after backward()',
  );
});

it('L-BFGS goes on from a file as if it had not stopped', async () => {
  const options = { maxIter: 4, historySize: 3, lineSearchFn: 'strongWolfe' } as const;
  const whole = at(-1.2, 1);
  const optimizer = new LBFGS([whole], options);
  const step = (o: LBFGS, p: Tensor): Promise<unknown> => o.step(() => valley(p));
  await step(optimizer, whole);
  const [state, values] = [await optimizer.state(), await numbers(whole)];
  await step(optimizer, whole);
  const later = at(...values);
  const other = new LBFGS([later], options);
  other.loadState(ofFile(state));
  await step(other, later);
  expect(await numbers(later)).toEqual(await numbers(whole));
});

it('L-BFGS refuses states of others, and keeps its own', async () => {
  const p = at(-1.2, 1);
  const optimizer = new LBFGS([p], { maxIter: 3 });
  await optimizer.step(() => valley(p));
  const state = await optimizer.state();
  const { numbers: counts, ...vectors } = state.slots;
  const { '0.move': _, ...without } = vectors;
  const wrong = [
    [{ ...state, slots: vectors }, /bad slot 'numbers': undefined/],
    [{ ...state, slots: { ...without, numbers: counts! } }, /'0\.move' is missing/],
    [{ ...state, slots: { ...state.slots, '9.move': vectors['0.move']! } }, /'9\.move' is float32 \[2\]/],
    [{ ...state, steps: -1 }, /steps is -1/],
    [null, /bad state: null/],
    [{ steps: 1 }, /bad state: undefined; must be an object of tensors by name/],
  ] as const;
  for (const [given, message] of wrong) expect(() => optimizer.loadState(given as never)).toThrow(message);
  const three = new LBFGS([at(1, 2, 3)]);
  expect(() => three.loadState(state)).toThrow(/vectors of 3 numbers/);
  expect(await optimizer.state()).toEqual(state);
});

it('groups take a state whole or not at all, and name parameters as they were saved', async () => {
  const made = () => {
    const [a, b, c] = [at(1), at(2), at(3)];
    return new ParameterGroups(Adam, [{ parameters: [a] }, { parameters: [b, c], lr: 0.1 }]);
  };
  const [groups, other] = [made(), made()];
  groups.step([tensor([1]), tensor([2]), tensor([3])]);
  groups.step([tensor([1]), null, tensor([3])]);
  const state = await groups.state();
  expect(state.missed).toEqual([0, 1, 0]);
  other.loadState(ofFile(state));
  expect(await other.state()).toEqual(state);

  const fresh = made();
  const before = await fresh.state();
  const { '2.mean': _, ...lacking } = state.slots;
  const slot = Object.keys(state.slots).find((name) => name.startsWith('2.'))!;
  const wide = { ...state.slots, [slot]: { dtype: 'float32', shape: [2], data: new Float32Array(2) } as const };
  const wrong = [
    [{ ...state, missed: [0, 1] }, /missed has 2 entries and the optimizer 3 parameters/],
    [{ ...state, missed: [0, 1, 0, 0] }, /missed has 4 entries and the optimizer 3 parameters/],
    [{ ...state, missed: 'none' }, /bad missed: 'none'/],
    [{ ...state, slots: { ...state.slots, '3.mean': state.slots[slot] } }, /has no '3\.mean'/],
    [{ ...state, slots: wide }, /has shape/],
    [{ ...state, slots: null }, /bad state: null/],
    [undefined, /bad state: undefined/],
    ...('2.mean' in state.slots ? ([[{ ...state, slots: lacking }, /lacks/]] as const) : []),
  ] as const;
  for (const [given, message] of wrong) expect(() => fresh.loadState(given as never)).toThrow(message);
  expect(await fresh.state()).toEqual(before);
});

it('ReduceOnPlateau goes on from its state, with its rate', () => {
  const run = (plateau: ReduceOnPlateau, values: readonly number[]): boolean[] => values.map((v) => plateau.step(v));
  const optimizers = [0, 1].map(() => new SGD([at(1)], { lr: 1 })) as [SGD, SGD];
  const [whole, later] = optimizers.map((o) => new ReduceOnPlateau(o, { patience: 1, factor: 0.5, cooldown: 1 })) as [
    ReduceOnPlateau,
    ReduceOnPlateau,
  ];
  const [first, second] = [
    [3, 2, 2, 2, 2],
    [2, 2, 2, 2, 1, 1, 1, 1],
  ];
  run(whole, first);
  later.loadState(JSON.parse(JSON.stringify(whole.state())));
  expect(optimizers[1].learningRate).toBe(0.5);
  expect(run(later, second)).toEqual(run(whole, second));
  expect(optimizers[1].learningRate).toBe(optimizers[0].learningRate);
  const state = later.state();
  expect(() => later.loadState({ ...state, rates: [] })).toThrow(/rates has 0 entries and the optimizer 1 groups/);
  expect(() => later.loadState({ ...state, bad: -1 })).toThrow(/bad is -1/);
  expect(() => later.loadState({ ...state, best: Number.NaN })).toThrow(/best is NaN/);
  expect(() => later.loadState(null as never)).toThrow(/bad state: null/);
  expect(later.state()).toEqual(state);
  expect(new ReduceOnPlateau(optimizers[0]).state().best).toBe(null);
});

it("amsgrad is an option of Adam and AdamW, and is AMSGrad, whose values are PyTorch's", async () => {
  const run = async (make: (p: Tensor[]) => Adam | AMSGrad): Promise<number[]> => {
    const p = at(1, -2);
    const optimizer = make([p]);
    for (const g of [3, 1, 0.1, 0.01, -1]) optimizer.step([tensor([g, g / 2])]);
    return numbers(p);
  };
  const options = { lr: 0.05, weightDecay: 0.1 };
  const coupled = await run((p) => new AMSGrad(p, options));
  expect(await run((p) => new Adam(p, { ...options, amsgrad: true }))).toEqual(coupled);
  expect(await run((p) => new AdamW(p, { ...options, amsgrad: true }))).toEqual(
    await run((p) => new AMSGrad(p, { ...options, decoupled: true })),
  );
  expect(await run((p) => new Adam(p, options))).not.toEqual(coupled);
});

/** What optimizers do besides their formulas: states, schedules, warmups, clipping, memory, and steps that cannot be taken. */
import {
  add,
  compile,
  memory,
  mul,
  ones,
  scope,
  setEngine,
  square,
  stats,
  sum,
  type Tensor,
  tensor,
  warmup,
} from '@polygrad/core';
import { createFaultyEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { NnError } from '../errors.ts';
import { parameter } from '../module/parameter.ts';
import { Adam, AdamW } from './adam.ts';
import { Adamax, AMSGrad, NAdam, RAdam } from './adam-variants.ts';
import { Adagrad } from './adaptive.ts';
import { clipGradNorm, clipGradNorms, clipGradValue } from './clip.ts';
import { close, GRADIENTS, numbers, START } from './fixtures/steps.ts';
import { ParameterGroups } from './groups.ts';
import { Adafactor, LAMB } from './layerwise.ts';
import { Optimizer } from './optimizer.ts';
import type { Scalars } from './step-numbers.ts';
import { SGD } from './sgd.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

describe('Optimizer', () => {
  it('takes gradients that backward left, and clears them', async () => {
    using p = parameter(tensor([3, 4]));
    using optimizer = new SGD([p], { lr: 0.5 });
    p.mul(p).sum().backward();
    optimizer.step();
    expect(await numbers(p)).toEqual([0, 0]);
    expect(p.grad).toBeNull();
    expect(() => optimizer.step()).toThrow(/no parameter has a gradient/);
  });

  it('consumes the gradients it is given', () => {
    using p = parameter(tensor([1]));
    using optimizer = new SGD([p], { lr: 1 });
    const gradient = tensor([1]);
    optimizer.step([gradient]);
    expect(gradient.disposed).toBe(true);
  });

  it('leaves parameters without a gradient alone', async () => {
    using p = parameter(tensor([1]));
    using q = parameter(tensor([2]));
    using optimizer = new Adam([p, q], { lr: 0.1 });
    optimizer.step([null, tensor([1])]);
    expect(await numbers(p)).toEqual([1]);
    expect((await numbers(q))[0]).toBeCloseTo(1.9, 5);
  });

  describe('begins to count for a parameter with its first gradient, as PyTorch', () => {
    const dtype = 'float64';
    const at = (value: number): Tensor => parameter(tensor([value], { dtype }));
    const gradient = (step: number): Tensor => tensor([Math.sin(step) + 0.2], { dtype });
    const kinds: Readonly<Record<string, (ps: Tensor[]) => Optimizer>> = {
      SGD: (ps) => new SGD(ps, { lr: 0.1, momentum: 0.9, dampening: 0.4 }),
      Adam: (ps) => new Adam(ps, { lr: 0.1 }),
      AdamW: (ps) => new AdamW(ps, { lr: 0.1, weightDecay: 0.1 }),
      AMSGrad: (ps) => new AMSGrad(ps, { lr: 0.1 }),
      Adamax: (ps) => new Adamax(ps, { lr: 0.1 }),
      NAdam: (ps) => new NAdam(ps, { lr: 0.1 }),
      RAdam: (ps) => new RAdam(ps, { lr: 0.1 }),
      Adagrad: (ps) => new Adagrad(ps, { lr: 0.1, lrDecay: 0.5 }),
      LAMB: (ps) => new LAMB(ps, { lr: 0.1 }),
      Adafactor: (ps) => new Adafactor(ps, { lr: 0.1 }),
      groups: ([p, q]) =>
        new ParameterGroups(
          Adam,
          q === undefined ? [{ parameters: [p!] }] : [{ parameters: [p!] }, { parameters: [q] }],
        ),
    };
    for (const [name, make] of Object.entries(kinds))
      it(name, async () => {
        const [p, late, alone, whole] = [at(1), at(2), at(2), at(1)];
        let both = make([p, late]);
        for (let step = 0; step < 9; step++) {
          // The late one has none at first, nor in the middle.
          both.step([gradient(step), step < 3 || step === 6 ? null : gradient(step)]);
          if (step !== 4) continue;
          const saved = await both.state();
          both = make([p, late]);
          both.loadState(saved);
        }
        const [reference, always] = [make([alone]), make([whole])];
        for (const step of [3, 4, 5, 7, 8]) reference.step([gradient(step)]);
        for (let step = 0; step < 9; step++) always.step([gradient(step)]);
        expect(await numbers(late)).toEqual(await numbers(alone));
        expect(await numbers(p)).toEqual(await numbers(whole));
      });

    it('in compiled steps', async () => {
      const run = async (compiled: boolean): Promise<unknown> => {
        const [p, q] = [at(1), at(2)];
        const optimizer = new Adam([p, q], { lr: 0.1 });
        const one = (g: Tensor): void => optimizer.step([g.mul(1), null]);
        const two = (g: Tensor): void => optimizer.step([g.mul(1), g.mul(2)]);
        const [first, both] = compiled ? [compile(one), compile(two)] : [one, two];
        for (const [i, step] of [both, both, first, first, first, both, both, both, first, both, both].entries())
          scope(() => step(gradient(i)));
        return [await numbers(p), await numbers(q), (await optimizer.state()).missed];
      };
      const found = await run(true);
      expect(found).toEqual(await run(false));
      expect((found as unknown[])[2]).toEqual([0, 4]);
    });

    it('and refuses a count that is none', () => {
      const optimizer = new Adam([at(1)]);
      const slots = { '0.mean': new Float64Array(1) } as never;
      expect(() => optimizer.loadState({ steps: 2, missed: [3], slots })).toThrow(/missed is 3.*from 0 to 2/);
      expect(() => optimizer.loadState({ steps: 2, missed: [], slots })).toThrow(
        /missed has 0 entries and the optimizer 1 parameters/,
      );
      expect(() => optimizer.loadState({ steps: 2, missed: [0, 1], slots })).toThrow(
        /missed has 2 entries and the optimizer 1 parameters/,
      );
    });
  });

  it('asks its schedule before every step', async () => {
    using p = parameter(tensor([0], { dtype: 'float64' }));
    using optimizer = new SGD([p], { lr: (step) => [1, 10, 100][step]! });
    for (let step = 0; step < 3; step++) optimizer.step([tensor([1], { dtype: 'float64' })]);
    expect(await numbers(p)).toEqual([-111]);
    expect(optimizer.steps).toBe(3);
    optimizer.learningRate = 1000;
    optimizer.step([tensor([1], { dtype: 'float64' })]);
    expect(await numbers(p)).toEqual([-1111]);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -0.1, undefined, '0.1', null])(
    'refuses a learning rate of %s, whoever gives it, and keeps parameters and state',
    async (wrong) => {
      using p = parameter(tensor([1, 2]));
      const rates = [0.1, wrong, 0.1] as number[];
      using optimizer = new Adam([p], { lr: (step) => rates[step]! });
      optimizer.step([tensor([1, -1])]);
      const [values, state] = [await numbers(p), await optimizer.state()];
      const gradient = tensor([1, 1]);
      const said = typeof wrong === 'string' ? `'${wrong}'` : String(wrong);
      expect(() => optimizer.step([gradient])).toThrow(
        `[step] bad learningRate(1) for step 2: ${said}; must be a finite number of at least 0`,
      );
      optimizer.learningRate = wrong as number;
      expect(() => optimizer.step([gradient])).toThrow(/bad learningRate for step 2: /);
      expect(await numbers(p)).toEqual(values);
      expect(await optimizer.state()).toEqual(state);
      // The gradient is not used up: the step can be taken.
      optimizer.learningRate = 0.1;
      optimizer.step([gradient]);
      expect(optimizer.steps).toBe(2);
      expect((await numbers(p)).every(Number.isFinite)).toBe(true);
    },
  );

  it('keeps its own betas, and refuses NaN among the numbers of a formula', async () => {
    using p = parameter(tensor([1]));
    const betas: [number, number] = [0.9, 0.99];
    using optimizer = new Adam([p], { lr: 0.1, betas });
    betas[0] = Number.NaN;
    optimizer.step([tensor([1])]);
    expect((await numbers(p))[0]).toBeCloseTo(0.9, 5);
    class Damped extends Optimizer<'damping'> {
      constructor() {
        super('Damped', [p], 1, []);
      }
      protected scalars(step: number): { damping: number } {
        return { damping: step === 2 ? Number.NaN : Number.POSITIVE_INFINITY };
      }
      protected update(parameter: Tensor, g: Tensor, _: readonly Tensor[], s: Scalars<'damping'>) {
        return { parameter: parameter.sub(g.div(s.damping)), state: [] };
      }
    }
    using damped = new Damped();
    damped.step([tensor([1])]);
    expect(() => damped.step([tensor([1])])).toThrow('[step] bad damping for step 2: NaN; must be a number');
    expect((await numbers(p))[0]).toBeCloseTo(0.9, 5);
  });

  it('goes on from a saved state as if it had not stopped', async () => {
    const run = async (interrupted: boolean): Promise<number[]> => {
      using p = parameter(tensor(START, { dtype: 'float64' }));
      let optimizer = new Adam([p], { lr: 0.1 });
      for (const [step, gradient] of GRADIENTS.entries()) {
        if (interrupted && step === 2) {
          const state = await optimizer.state();
          optimizer.dispose();
          optimizer = new Adam([p], { lr: 0.1 });
          optimizer.loadState({ steps: state.steps, slots: new Map(Object.entries(state.slots)) });
        }
        optimizer.step([tensor(gradient, { dtype: 'float64' })]);
      }
      const found = await numbers(p);
      optimizer.dispose();
      return found;
    };
    expect(await run(true)).toEqual(await run(false));
  });

  it('refuses the state of other parameters', async () => {
    using p = parameter(tensor([1, 2]));
    using q = parameter(tensor([1, 2, 3]));
    using ofP = new Adam([p]);
    using ofQ = new Adam([q]);
    using momentum = new SGD([p], { momentum: 0.9 });
    const state = await ofP.state();
    expect(() => ofQ.loadState(state)).toThrow(/'0.mean' has shape \(3\) in the optimizer and \(2\) in the state/);
    expect(() => momentum.loadState(state)).toThrow(NnError);
  });

  it('is as before after a warmup, whose plan the first step uses', async () => {
    const run = async (warm: boolean): Promise<number[]> => {
      using w = parameter(tensor([1, 2, 3]));
      using optimizer = new Adam([w], { lr: 0.1 });
      const step = (): void =>
        scope(() => {
          w.mul(w).sum().backward();
          optimizer.step();
        });
      if (warm) {
        await warmup(step);
        expect(optimizer.steps).toBe(0);
        const { planMisses } = stats();
        step();
        expect(stats().planMisses).toBe(planMisses);
      } else step();
      step();
      return numbers(w);
    };
    expect(await run(true)).toEqual(await run(false));
  });

  it('holds memory flat over steps', () => {
    using p = parameter(tensor(START));
    using optimizer = new Adam([p]);
    optimizer.step([tensor([1, 2, 3])]);
    const before = memory();
    for (let step = 0; step < 20; step++) optimizer.step([tensor([1, 2, 3])]);
    const after = memory();
    expect([after.numTensors, after.numBuffers, after.bytes]).toEqual([
      before.numTensors,
      before.numBuffers,
      before.bytes,
    ]);
  });

  it('refuses options that cannot be', () => {
    using p = parameter(tensor([1]));
    expect(() => new SGD({ weight: p } as never, { lr: 1 })).toThrow(
      /bad parameters: .*; must be a list of tensors: pass model\.parameters\(\)/,
    );
    expect(() => new SGD([], { lr: 1 })).toThrow(/no parameters/);
    expect(() => new SGD([p, p], { lr: 1 })).toThrow(/listed twice/);
    expect(() => new SGD([p], { lr: -1 })).toThrow(/lr is -1/);
    expect(() => new SGD([p], { lr: Number.NaN })).toThrow(NnError);
    expect(() => new SGD([p], { momentum: 1 })).toThrow(/momentum is 1; it must be at least 0 and below 1/);
    expect(() => new SGD([p], { nesterov: true })).toThrow(/nesterov needs a momentum/);
    expect(() => new Adam([p], { betas: [0.9, 1] })).toThrow(/betas is 1/);
    expect(() => new Adam([p], { eps: -1 })).toThrow(/eps is -1/);
    using optimizer = new SGD([p], { lr: 1 });
    expect(() => optimizer.step([])).toThrow(/0 gradients for 1 parameters/);
    expect(() => optimizer.step([null])).toThrow(/no parameter has a gradient/);
  });
});

describe('clipping', () => {
  it('scales all gradients by one factor, as PyTorch does', async () => {
    const gradients = GRADIENTS.slice(0, 2).map((gradient) => tensor(gradient, { dtype: 'float64' }));
    using norm = clipGradNorm(gradients, 0.5);
    expect(await norm.item()).toBeCloseTo(1.6800297616411444, 14);
    close(await numbers(gradients[0]!), [0.08928407944951672, -0.208329518715539, 0.3273749579815613], 1e-14);
    close(await numbers(gradients[1]!), [0.07440339954126393, 0.11904543926602229, -0.26785223834855015], 1e-14);
    for (const gradient of gradients) gradient.dispose();
  });

  it('leaves small and zero gradients as they are', async () => {
    const gradients = [tensor([0.3, 0.4]), null, tensor([0])];
    clipGradNorm(gradients, 1).dispose();
    expect(await numbers(gradients[0]!)).toEqual([...new Float32Array([0.3, 0.4])]);
    const zero = [tensor([0, 0])];
    clipGradNorm(zero, 1).dispose();
    expect(await numbers(zero[0]!)).toEqual([0, 0]);
    for (const gradient of [...gradients, ...zero]) gradient?.dispose();
  });

  it('takes parameters for the gradients that backward() left, and leaves their values alone', async () => {
    const values = [tensor([3, 4]), tensor([1]), tensor([2], { requiresGrad: true }), tensor([5])];
    const parameters = [...values.slice(0, 2).map(parameter), values[2]!, parameter(values[3]!)];
    const [a, b, c] = parameters as [Tensor, Tensor, Tensor];
    const left = (): void => scope(() => add(add(sum(square(a)), b), sum(mul(c, 4))).backward());
    left();
    // The gradients are [6, 8], [1] and [4]; the last parameter has none.
    const length = Math.sqrt(36 + 64 + 1 + 16);
    expect(await clipGradNorm(parameters, 1).item()).toBeCloseTo(length, 5);
    close(await numbers(a.grad!), [6 / length, 8 / length], 1e-6);
    close(await numbers(c.grad!), [4 / length], 1e-6);
    for (const t of [a, b, c]) t.grad = null;
    left();
    clipGradValue(parameters, 5);
    expect([await numbers(a.grad!), await numbers(b.grad!), await numbers(c.grad!)]).toEqual([[5, 5], [1], [4]]);
    for (const t of [a, b, c]) t.grad = null;
    left();
    const norms = clipGradNorms([[a, b], [c]], [1, 2], { order: Infinity });
    expect([...(await norms.data())]).toEqual([8, 4]);
    close(await numbers(a.grad!), [6 / 8, 1], 1e-6);
    close(await numbers(c.grad!), [2], 1e-6);
    expect([await numbers(a), await numbers(b), await numbers(c)]).toEqual([[3, 4], [1], [2]]);
    expect(() => clipGradNorm([parameters[3]!], 1)).toThrow(/no gradients to clip; pass those of lossAndGrad/);
    for (const t of parameters) t.dispose();
  });

  it('cuts elements off', async () => {
    using gradient = tensor([-3, 0.5, 7]);
    clipGradValue([gradient, null], 1);
    expect(await numbers(gradient)).toEqual([-1, 0.5, 1]);
  });
});

describe('a step that cannot be taken', () => {
  const sizes = [[2], [3]] as const;
  const setUp = (): { p: Tensor[]; optimizer: Adam } => {
    const p = sizes.map((shape) => parameter(ones(shape)));
    return { p, optimizer: new Adam(p, { lr: 0.1 }) };
  };
  const all = async (p: Tensor[], optimizer: Adam): Promise<unknown> => [
    await Promise.all(p.map((t) => t.array())),
    await optimizer.state(),
  ];

  it.each([
    ['another shape', () => [ones([2]), ones([4])], /gradient 1 has shape \[4\] and its parameter \[3\]/],
    ['one element', () => [ones([2]), ones([1])], /gradient 1 has shape \[1\]/],
    ['no axis', () => [ones([2]), ones([])], /gradient 1 has shape \[\]/],
    ['integers', () => [ones([2]), ones([3], { dtype: 'int32' })], /gradient 1 is int32/],
    [
      'nothing',
      () => [ones([2]), undefined as unknown as Tensor],
      /bad gradient 1: undefined; must be a tensor, or null/,
    ],
    ['a wider dtype', () => [ones([2]), ones([3], { dtype: 'float64' })], /float64; convert the gradients/],
    ['a disposed tensor', () => [ones([2]), disposed()], /disposed/],
  ])('changes nothing: a gradient of %s', async (_, gradients, message) => {
    const { p, optimizer } = setUp();
    optimizer.step(sizes.map((shape) => ones(shape)));
    const before = await all(p, optimizer);
    expect(() => optimizer.step(gradients())).toThrow(message);
    expect(await all(p, optimizer)).toEqual(before);
    expect(optimizer.steps).toBe(1);
  });

  it('for want of memory changes nothing either, in a scope of its own or in another', async () => {
    const engine = createFaultyEngine(createReferenceEngine());
    await setEngine(engine);
    try {
      const { p, optimizer } = setUp();
      optimizer.step(sizes.map((shape) => ones(shape)));
      for (const around of [(f: () => void) => f(), (f: () => void) => void scope(f)]) {
        const before = await all(p, optimizer);
        const gradients = p.map((t) => t.mul(3));
        engine.arm({ member: 'alloc', at: 1, kind: 'memory', times: 1000 });
        expect(() => around(() => optimizer.step(gradients))).toThrow(/values they had before/);
        engine.arm(null);
        expect(await all(p, optimizer)).toEqual(before);
      }
      optimizer.step(sizes.map((shape) => ones(shape)));
      expect(optimizer.steps).toBe(2);
    } finally {
      await setEngine(createReferenceEngine());
    }
  });
});

function disposed(): Tensor {
  const t = ones([3]);
  t.dispose();
  return t;
}

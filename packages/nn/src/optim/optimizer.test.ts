/**
 * Trajectories against PyTorch 1.13 in float64: the parameters after the first and after the fifth step on the gradients
 * below (`torch.optim`, `torch.set_default_dtype(torch.float64)`). Lion, which PyTorch lacks, against its paper.
 */
import { memory, ones, scope, setEngine, stats, type Tensor, tensor, warmup } from '@polygrad/core';
import { createFaultyEngine, createReferenceEngine } from '@polygrad/core/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { NnError } from '../errors.ts';
import { parameter } from '../module/parameter.ts';
import { Adam, AdamW } from './adam.ts';
import { Adadelta, Adagrad, RMSProp } from './adaptive.ts';
import { clipGradNorm, clipGradValue } from './clip.ts';
import type { Optimizer } from './optimizer.ts';
import { Lion, SGD } from './sgd.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

const START = [0.5, -1.25, 2];
const GRADIENTS = [
  [0.3, -0.7, 1.1],
  [0.25, 0.4, -0.9],
  [-0.6, 0.05, 0.8],
  [0, -1.5, 0.2],
  [0.9, 0.3, -0.1],
];

type Make = (parameters: Tensor[]) => Optimizer;

const TORCH: Record<string, { make: Make; first: number[]; fifth: number[] }> = {
  SGD: {
    make: (p) => new SGD(p, { lr: 0.1 }),
    first: [0.47, -1.18, 1.89],
    fifth: [0.415, -1.105, 1.89],
  },
  'SGD with decay': {
    make: (p) => new SGD(p, { lr: 0.1, weightDecay: 0.05 }),
    first: [0.46749999999999997, -1.17375, 1.88],
    fifth: [0.40299451966718747, -1.0755535963585936, 1.8422357999249999],
  },
  'SGD with momentum and decay': {
    make: (p) => new SGD(p, { lr: 0.1, momentum: 0.9, weightDecay: 0.01 }),
    first: [0.4695, -1.17875, 1.888],
    fifth: [0.3577278191272694, -0.8440326267276788, 1.5894217688430878],
  },
  "SGD with Nesterov's momentum": {
    make: (p) => new SGD(p, { lr: 0.1, momentum: 0.9, nesterov: true }),
    first: [0.443, -1.117, 1.791],
    fifth: [0.29239479999999995, -0.7535077, 1.5428241],
  },
  Adam: {
    make: (p) => new Adam(p, { lr: 0.01 }),
    first: [0.4900000003333333, -1.240000000142857, 1.990000000090909],
    fifth: [0.47846782095095686, -1.2273184631556322, 1.979926585375109],
  },
  'Adam with all options': {
    make: (p) => new Adam(p, { lr: 0.02, betas: [0.8, 0.95], eps: 1e-6, weightDecay: 0.1 }),
    first: [0.4800000571426939, -1.230000024242395, 1.9800000153846036],
    fifth: [0.45243220253248284, -1.193171893814561, 1.9464193147088191],
  },
  AdamW: {
    make: (p) => new AdamW(p, { lr: 0.01 }),
    first: [0.4899500003333333, -1.2398750001428571, 1.989800000090909],
    fifth: [0.4782245114394283, -1.2266990331328143, 1.9789319682117417],
  },
  'AdamW with decay': {
    make: (p) => new AdamW(p, { lr: 0.05, weightDecay: 0.3 }),
    first: [0.4425000016666666, -1.1812500007142857, 1.9200000004545454],
    fifth: [0.36082960325807517, -1.0496218359495733, 1.7578812657322926],
  },
  RMSProp: {
    make: (p) => new RMSProp(p, { lr: 0.01 }),
    first: [0.40000003333332224, -1.1500000142857123, 1.9000000090909084],
    fifth: [0.3411663785070451, -1.1352094886237198, 1.9080301700992996],
  },
  'RMSProp with momentum and decay': {
    make: (p) => new RMSProp(p, { lr: 0.01, momentum: 0.9, weightDecay: 0.1 }),
    first: [0.4000000285714204, -1.1500000121212106, 1.9000000076923071],
    fifth: [0.0005132601975348423, -0.7789575384839197, 1.561462819786385],
  },
  'RMSProp, centred': {
    make: (p) => new RMSProp(p, { lr: 0.01, centered: true, momentum: 0.5, alpha: 0.9 }),
    first: [0.46666667037036996, -1.2166666682539682, 1.9666666676767677],
    fifth: [0.4129234724930836, -1.1807347193810407, 1.9404602757419924],
  },
  Adagrad: {
    make: (p) => new Adagrad(p, { lr: 0.1 }),
    first: [0.40000000003333336, -1.1500000000142858, 1.9000000000090909],
    fifth: [0.3415323260055088, -1.1351008472110364, 1.908175586878248],
  },
  'Adagrad with decays': {
    make: (p) => new Adagrad(p, { lr: 0.1, rateDecay: 0.2, weightDecay: 0.1 }),
    first: [0.40000000002857145, -1.150000000012121, 1.9000000000076924],
    fifth: [0.3550803972426948, -1.1223817241776661, 1.8840981512313053],
  },
  Adadelta: {
    make: (p) => new Adadelta(p),
    first: [0.496837898007285, -1.2468377546074771, 1.9968377354070137],
    fifth: [0.49304784824977543, -1.2463285807052715, 1.9966361627161877],
  },
  'Adadelta with all options': {
    make: (p) => new Adadelta(p, { lr: 0.5, rho: 0.8, weightDecay: 0.1 }),
    first: [0.49888198882757184, -1.2488819701178722, 1.9988819676651428],
    fifth: [0.49726442230894824, -1.2480719734899126, 1.9979386653057178],
  },
};

async function numbers(t: Tensor): Promise<number[]> {
  return Array.from((await t.data()) as Float64Array);
}

function close(found: readonly number[], expected: readonly number[], tolerance: number): void {
  expect(found.length).toBe(expected.length);
  for (const [index, value] of expected.entries()) {
    expect(Math.abs(found[index]! - value)).toBeLessThanOrEqual(tolerance * Math.max(1, Math.abs(value)));
  }
}

/** Parameters after each of the five steps. */
async function trajectory(make: Make, dtype: 'float32' | 'float64'): Promise<number[][]> {
  using p = parameter(tensor(START, { dtype }));
  using optimizer = make([p]);
  const found: number[][] = [];
  for (const gradient of GRADIENTS) {
    optimizer.step([tensor(gradient, { dtype })]);
    found.push(await numbers(p));
  }
  return found;
}

describe('optimizers follow PyTorch', () => {
  for (const [name, { make, first, fifth }] of Object.entries(TORCH)) {
    it(`${name}, float64`, async () => {
      const found = await trajectory(make, 'float64');
      close(found[0]!, first, 1e-13);
      close(found[4]!, fifth, 1e-12);
    });

    it(`${name}, float32`, async () => {
      close((await trajectory(make, 'float32'))[4]!, fifth, 2e-6);
    });
  }
});

it('Lion follows its paper', async () => {
  const [lr, beta1, beta2, decay] = [0.01, 0.9, 0.99, 0.1];
  const found = await trajectory((p) => new Lion(p, { lr, betas: [beta1, beta2], weightDecay: decay }), 'float64');
  for (const [element, start] of START.entries()) {
    let p = start;
    let m = 0;
    for (const [step, gradient] of GRADIENTS.entries()) {
      const g = gradient[element]!;
      p -= lr * (Math.sign(beta1 * m + (1 - beta1) * g) + decay * p);
      m = beta2 * m + (1 - beta2) * g;
      expect(Math.abs(found[step]![element]! - p)).toBeLessThan(1e-14);
    }
  }
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

  it('goes on from a saved state as if it had not stopped', async () => {
    const run = async (interrupted: boolean): Promise<number[]> => {
      using p = parameter(tensor(START, { dtype: 'float64' }));
      let optimizer = new Adam([p], { lr: 0.1 });
      for (const [step, gradient] of GRADIENTS.entries()) {
        if (interrupted && step === 2) {
          const state = await optimizer.state();
          optimizer.dispose();
          optimizer = new Adam([p], { lr: 0.1 });
          optimizer.loadState(state);
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
    expect(() => ofQ.loadState(state)).toThrow(/'0.mean' is float32 \(2\) in the state and float32 \(3\) here/);
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
      /parameters are no list: object; pass model\.parameters\(\)/,
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
    ['nothing', () => [ones([2]), undefined as unknown as Tensor], /gradient 1 is no tensor but undefined/],
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

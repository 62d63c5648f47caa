/**
 * Trajectories against PyTorch 1.13 in float64: the parameters after the first and after the fifth step on the gradients
 * below (`torch.optim`, `torch.set_default_dtype(torch.float64)`). Lion, which PyTorch lacks, against its paper.
 */
import { setEngine, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { parameter } from '../module/parameter.ts';
import { Adam, AdamW } from './adam.ts';
import { Adadelta, Adagrad, RMSProp } from './adaptive.ts';
import { close, GRADIENTS, numbers, START } from './fixtures/steps.ts';
import type { Optimizer } from './optimizer.ts';
import { Lion, SGD } from './sgd.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

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
    make: (p) => new Adagrad(p, { lr: 0.1, lrDecay: 0.2, weightDecay: 0.1 }),
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

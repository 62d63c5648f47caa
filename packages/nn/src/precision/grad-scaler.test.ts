/** GradScaler: the rule of its factor step by step, and optimizers under it against the same optimizers on the steps that count. */
import { autocast, compile, scope, setEngine, stats, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import * as nn from '../index.ts';
import { GradScaler, type Optimizer } from '../index.ts';

beforeAll(async () => setEngine(createReferenceEngine()));

const inf = Number.POSITIVE_INFINITY;

/** A scaler after updates, each with or without an overflow. */
async function after(
  overflows: readonly boolean[],
  options: nn.GradScalerOptions,
): Promise<readonly nn.GradScalerState[]> {
  const p = nn.parameter(tensor([1]));
  const optimizer = new nn.SGD([p], { lr: 0 });
  const scaler = new GradScaler(options);
  const states = [];
  for (const overflow of overflows) {
    scaler.step(optimizer, [tensor([overflow ? inf : 1])]);
    scaler.update();
    states.push(await scaler.state());
  }
  scaler.dispose();
  return states;
}

describe('the factor', () => {
  it('grows and backs off as the documentation of PyTorch says', async () => {
    const found = await after([false, false, true, false, false, false], { initScale: 8, growthInterval: 2 });
    expect(found.map(({ scale }) => scale)).toEqual([8, 16, 8, 8, 16, 16]);
    expect(found.map(({ growthTracker }) => growthTracker)).toEqual([1, 0, 0, 1, 0, 1]);
    expect(found.at(-1)!.skipped).toBe(1);
  });

  it('takes other factors, and does not grow to infinity', async () => {
    const factors = { initScale: 9, growthFactor: 3, backoffFactor: 0.25, growthInterval: 1 };
    expect((await after([false, true], factors)).map(({ scale }) => scale)).toEqual([27, 6.75]);
    expect((await after([false, false], { initScale: 2 ** 127, growthInterval: 1 })).map(({ scale }) => scale)).toEqual(
      [2 ** 127, 2 ** 127],
    );
  });

  it('has the defaults of PyTorch', async () => {
    const [, second] = await after([false, true], {});
    expect(second).toEqual({ scale: 32768, growthTracker: 0, skipped: 1 });
  });

  it('looks at all optimizers since the last update, each of which skips by itself', async () => {
    const [a, b] = [nn.parameter(tensor([1])), nn.parameter(tensor([1]))];
    const [first, second] = [new nn.SGD([a], { lr: 1 }), new nn.SGD([b], { lr: 1 })];
    const scaler = new GradScaler({ initScale: 4 });
    scaler.step(first, [tensor([Number.NaN])]);
    scaler.step(second, [tensor([2])]);
    scaler.update();
    expect([await a.item(), await b.item()]).toEqual([1, 0.5]);
    expect(await scaler.state()).toEqual({ scale: 2, growthTracker: 0, skipped: 1 });
  });
});

const kinds: Readonly<Record<string, (p: Iterable<Tensor>) => Optimizer>> = {
  SGD: (p) => new nn.SGD(p, { lr: 0.1, momentum: 0.9, dampening: 0.5 }),
  Adam: (p) => new nn.Adam(p, { lr: 0.1 }),
  AdamW: (p) => new nn.AdamW(p, { lr: 0.1 }),
  AMSGrad: (p) => new nn.AMSGrad(p, { lr: 0.1 }),
  Adamax: (p) => new nn.Adamax(p, { lr: 0.1 }),
  NAdam: (p) => new nn.NAdam(p, { lr: 0.1 }),
  RAdam: (p) => new nn.RAdam(p, { lr: 0.1 }),
  RMSProp: (p) => new nn.RMSProp(p, { lr: 0.1 }),
  Adagrad: (p) => new nn.Adagrad(p, { lr: 0.1, lrDecay: 0.1 }),
  Adadelta: (p) => new nn.Adadelta(p, { lr: 1 }),
  Rprop: (p) => new nn.Rprop(p),
  Lion: (p) => new nn.Lion(p, { lr: 0.1 }),
  LAMB: (p) => new nn.LAMB(p, { lr: 0.1 }),
  Adafactor: (p) => new nn.Adafactor(p, { lr: 0.1 }),
  Muon: (p) => new nn.Muon(p, { lr: 0.1 }),
  groups: (p) => new nn.ParameterGroups(nn.Adam, [{ parameters: p }], { lr: 0.1 }),
};

const start = [
  [0.5, -1, 2],
  [1.5, 0.25, -0.75],
];
const gradient = (step: number, factor: number): Tensor =>
  tensor(start.map((row, i) => row.map((_, j) => (((i * 7 + j * 5 + step * 3) % 11) - 5) * 0.25 * factor)));

/** Steps of which some overflow, the first among them. */
const overflowing = new Set([0, 1, 5]);

async function trained(make: (p: Iterable<Tensor>) => Optimizer, withScaler: boolean): Promise<number[]> {
  const p = nn.parameter(tensor(start));
  const optimizer = make([p]);
  const scaler = new GradScaler({ initScale: 1024 });
  let scale = 1024;
  for (let step = 0; step < 12; step++) {
    const overflow = overflowing.has(step);
    if (withScaler) {
      const g = gradient(step, scale);
      scaler.step(optimizer, [overflow ? g.mul(inf) : g]);
      scaler.update();
      if (overflow) scale /= 2;
    } else if (!overflow) optimizer.step([gradient(step, 1)]);
  }
  if (withScaler) {
    expect((await scaler.state()).skipped).toBe(3);
    expect(await optimizer.state()).toMatchObject({ steps: 12, skipped: 3 });
  }
  return Array.from((await p.data()) as Float32Array);
}

describe('steps that overflow leave everything as it was:', () => {
  for (const [name, make] of Object.entries(kinds))
    it(name, async () => {
      const [want, found] = [await trained(make, false), await trained(make, true)];
      for (const [i, value] of found.entries()) expect(value).toBeCloseTo(want[i]!, name === 'RAdam' ? 3 : 5);
    });
});

describe('a scaler', () => {
  it('takes the scale out once, before gradients are clipped', async () => {
    const p = nn.parameter(tensor([0, 0]));
    const optimizer = new nn.SGD([p], { lr: 1 });
    const scaler = new GradScaler({ initScale: 16 });
    const grads = scaler.unscale(optimizer, [tensor([48, 64])]);
    expect(await nn.clipGradNorm(grads, 1).item()).toBe(5);
    scaler.step(optimizer, grads);
    scaler.update();
    expect(Array.from((await p.data()) as Float32Array, (x) => x.toFixed(4))).toEqual(['-0.6000', '-0.8000']);
  });

  it('works on the gradients of backward()', async () => {
    const p = nn.parameter(tensor([2, 3], { dtype: 'float16' }));
    const optimizer = new nn.SGD([p], { lr: 0.5 });
    const scaler = new GradScaler({ initScale: 8 });
    scaler.scale(p.mul(p).sum()).backward();
    scaler.unscale(optimizer);
    expect(p.grad!.dtype).toBe('float32');
    expect(await p.grad!.array()).toEqual([4, 6]);
    scaler.step(optimizer);
    scaler.update();
    expect(p.grad).toBe(null);
    expect(await p.array()).toEqual([0, 0]);
  });

  it('saves small gradients of float16', async () => {
    const slope = (scale: (loss: Tensor) => Tensor): Promise<number> => {
      const model = new nn.Linear(1, 1, { bias: false });
      const { grads } = nn.lossAndGrad(model, () =>
        scale(autocast('float16', () => model.forward(tensor([[1]])).mean()).mul(1e-9)),
      );
      return grads[0]!.item() as Promise<number>;
    };
    const scaler = new GradScaler();
    expect(await slope((loss) => loss)).toBe(0);
    expect((await slope((loss) => scaler.scale(loss))) / 65536).toBeCloseTo(1e-9, 11);
  });

  it('goes on from its state, with the same bits', async () => {
    const run = async (from: number, to: number, resume?: unknown): Promise<unknown> => {
      const p = nn.parameter(tensor(start));
      const optimizer = new nn.Adam([p], { lr: 0.1 });
      const scaler = new GradScaler({ growthInterval: 2 });
      if (resume !== undefined) {
        const { values, state, factor } = resume as {
          values: Float32Array;
          state: nn.OptimizerState;
          factor: nn.GradScalerState;
        };
        p.assign(tensor(values, { shape: [2, 3] }));
        optimizer.loadState(state);
        scaler.loadState(factor);
      }
      for (let step = from; step < to; step++) {
        scaler.step(optimizer, [scope(() => scaler.scale(gradient(step, step === 1 ? inf : 1)))]);
        scaler.update();
      }
      return { values: await p.data(), state: await optimizer.state(), factor: await scaler.state() };
    };
    expect(await run(4, 9, await run(0, 4))).toEqual(await run(0, 9));
  });

  it('is replayed in a compiled step, which reads nothing', async () => {
    const run = async (compiled: boolean): Promise<unknown> => {
      const model = new nn.Linear(3, 2, { weightInit: nn.constantInit(0.5), biasInit: nn.zerosInit() });
      const optimizer = new nn.Adam(model.parameters(), { lr: 0.1 });
      const scaler = new GradScaler({ initScale: 2 ** 15, growthInterval: 3 });
      const step = (x: Tensor): Tensor => {
        const { value, grads } = nn.lossAndGrad(model, () =>
          scaler.scale(autocast('float16', () => model.forward(x).mean())),
        );
        scaler.step(optimizer, grads);
        scaler.update();
        return value;
      };
      const compiledStep = compile(step);
      const run = compiled ? compiledStep : (x: Tensor) => scope(() => step(x));
      const { replays } = stats();
      for (let i = 0; i < 12; i++) run(tensor([[i === 4 ? 1e9 : i, 1, 2]])).dispose();
      if (compiled) expect(stats().replays - replays).toBeGreaterThan(4);
      const found = [await model.weight.array(), await scaler.state(), await optimizer.state()];
      compiledStep.dispose();
      return found;
    };
    const plain = await run(false);
    expect((plain as [unknown, nn.GradScalerState])[1].skipped).toBeGreaterThan(0);
    expect(await run(true)).toEqual(plain);
  });

  it('that is not enabled changes nothing', async () => {
    const p = nn.parameter(tensor([1]));
    const optimizer = new nn.SGD([p], { lr: 1 });
    const scaler = new GradScaler({ enabled: false });
    const loss = tensor(3);
    expect(scaler.scale(loss)).toBe(loss);
    scaler.step(optimizer, scaler.unscale(optimizer, [tensor([0.25])]));
    scaler.update();
    expect(await p.item()).toBe(0.75);
  });

  it('refuses steps out of order, and what is no optimizer, gradient or state', () => {
    const optimizer = new nn.SGD([nn.parameter(tensor([1]))], { lr: 1 });
    const scaler = new GradScaler();
    scaler.unscale(optimizer, [tensor([1])]);
    expect(() => scaler.unscale(optimizer, [tensor([1])])).toThrow(
      '[unscale] the scale was taken out of these gradients already',
    );
    expect(() => scaler.update()).toThrow('[update]');
    expect(() => scaler.step({} as Optimizer, [])).toThrow('[step] bad optimizer: an object; must be an Optimizer');
    expect(() => scaler.step(optimizer, [])).toThrow('[step] 0 gradients for 1 parameters');
    expect(() => scaler.step(optimizer, [null])).toThrow('[step] no parameter has a gradient');
    expect(() => new GradScaler({ initScale: 0 })).toThrow('[GradScaler] bad initScale: 0; must be above 0');
    expect(() => new GradScaler({ growthFactor: 1 })).toThrow('growthFactor');
    expect(() => new GradScaler({ backoffFactor: 1 })).toThrow('backoffFactor');
    expect(() => new GradScaler({ growthInterval: 0 })).toThrow('growthInterval');
    expect(() => scaler.loadState({ scale: 0, growthTracker: 0, skipped: 0 })).toThrow('[loadState] bad scale: 0');
  });
});

/**
 * Optimizers over 25 steps, schedules and norms as PyTorch 1.13.1 has them (tooling/goldens/optimizers.py); those that it lacks as their papers
 * say, in float64 on the host.
 */
import { readFileSync } from 'node:fs';
import {
  compile,
  concat,
  flatten,
  narrow,
  ones,
  scope,
  setEngine,
  sum,
  type Tensor,
  tensor,
  valueAndGrad,
} from '@polygrad/core/functions';
import { decodeSafetensors } from '@polygrad/data';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import * as nn from '../index.ts';

const { tensors } = decodeSafetensors(readFileSync(new URL('./fixtures/torch.safetensors', import.meta.url)));
const dtype = 'float64';

beforeAll(async () => setEngine(createReferenceEngine()));

/** Numbers by the formula of optimizers.py. */
const host = (k: number, size: number): number[] =>
  Array.from({ length: size }, (_, j) => (((37 * j + 11 * k) % 101) - 50) / 60);
const value = (k: number, shape: readonly number[]): Tensor =>
  tensor(
    Float64Array.from(
      host(
        k,
        shape.reduce((a, b) => a * b, 1),
      ),
    ),
    { shape, dtype },
  );
const parameters = (): [Tensor, Tensor] => [nn.parameter(value(1, [2, 3])), nn.parameter(value(2, [3]))];
const numbers = async (ts: readonly Tensor[]): Promise<number[]> =>
  Array.from(
    (await concat(
      ts.map((t) => flatten(t)),
      0,
    ).data()) as Float64Array,
  );

function close(found: readonly number[], wanted: ArrayLike<number>, tolerance: number = 1e-11): void {
  expect(found.length).toBe(wanted.length);
  const worst = Math.max(...found.map((v, i) => Math.abs(v - wanted[i]!) / Math.max(1, Math.abs(wanted[i]!))));
  expect(worst).toBeLessThan(tolerance);
}
const stored = (name: string): Float64Array => tensors.get(name)!.data as Float64Array;

/** Parameters after steps 1, 5 and 25. */
async function trajectory(make: (ps: [Tensor, Tensor]) => nn.Optimizer): Promise<number[]> {
  const ps = parameters();
  return trajectoryOf(ps, make(ps));
}

const cycle = { steps: 25 };

const optimizers: Readonly<Record<string, (ps: [Tensor, Tensor]) => nn.Optimizer>> = {
  SGD: (p) => new nn.SGD(p, { lr: 0.1 }),
  'SGD with momentum': (p) => new nn.SGD(p, { lr: 0.1, momentum: 0.9, weightDecay: 0.1 }),
  'SGD with the momentum of Nesterov': (p) => new nn.SGD(p, { lr: 0.1, momentum: 0.9, nesterov: true }),
  Adam: (p) => new nn.Adam(p),
  'Adam with all options': (p) => new nn.Adam(p, { lr: 0.05, betas: [0.8, 0.9], eps: 1e-5, weightDecay: 0.1 }),
  AdamW: (p) => new nn.AdamW(p),
  'AdamW with all options': (p) => new nn.AdamW(p, { lr: 0.05, betas: [0.8, 0.9], eps: 1e-5, weightDecay: 0.3 }),
  RMSProp: (p) => new nn.RMSProp(p),
  'RMSProp with all options': (p) =>
    new nn.RMSProp(p, { lr: 0.05, alpha: 0.9, eps: 1e-5, weightDecay: 0.1, momentum: 0.5, centered: true }),
  Adagrad: (p) => new nn.Adagrad(p),
  'Adagrad with all options': (p) =>
    new nn.Adagrad(p, { lr: 0.1, lrDecay: 0.2, weightDecay: 0.1, initialAccumulatorValue: 0.3, eps: 1e-5 }),
  Adadelta: (p) => new nn.Adadelta(p),
  'Adadelta with all options': (p) => new nn.Adadelta(p, { lr: 0.5, rho: 0.8, eps: 1e-5, weightDecay: 0.1 }),
  'SGD with dampening': (p) => new nn.SGD(p, { lr: 0.1, momentum: 0.9, dampening: 0.3, weightDecay: 0.1 }),
  'SGD climbing': (p) => new nn.SGD(p, { lr: 0.1, momentum: 0.5, weightDecay: 0.1, maximize: true }),
  'Adam climbing': (p) => new nn.Adam(p, { lr: 0.05, weightDecay: 0.1, maximize: true }),
  'AdamW climbing': (p) => new nn.AdamW(p, { lr: 0.05, maximize: true }),
  'RMSProp climbing': (p) => new nn.RMSProp(p, { lr: 0.05, maximize: true }),
  'Adagrad climbing': (p) => new nn.Adagrad(p, { lr: 0.05, maximize: true }),
  'Adadelta climbing': (p) => new nn.Adadelta(p, { lr: 0.5, maximize: true }),
  AMSGrad: (p) => new nn.AMSGrad(p, { lr: 0.05, betas: [0.8, 0.9], weightDecay: 0.1 }),
  'AMSGrad, decoupled': (p) => new nn.AMSGrad(p, { lr: 0.05, weightDecay: 0.1, decoupled: true }),
  Adamax: (p) => new nn.Adamax(p, { weightDecay: 0.1 }),
  'Adamax climbing': (p) => new nn.Adamax(p, { lr: 0.05, betas: [0.8, 0.9], maximize: true }),
  RAdam: (p) => new nn.RAdam(p, { weightDecay: 0.1 }),
  'RAdam with all options': (p) => new nn.RAdam(p, { lr: 0.05, betas: [0.8, 0.9], eps: 1e-5 }),
  'SGD in one cycle': (p) =>
    new nn.SGD(p, { lr: nn.oneCycle(0.1, cycle), momentum: nn.oneCycleMomentum(cycle), nesterov: true }),
  'Adam in one cycle': (p) =>
    new nn.Adam(p, { lr: nn.oneCycle(0.1, cycle), betas: [nn.oneCycleMomentum(cycle), 0.999] }),
  'SGD in cycles': (p) =>
    new nn.SGD(p, {
      lr: nn.cyclicRate(0.01, 0.1, { up: 4, down: 3, mode: 'halved' }),
      momentum: nn.cyclicMomentum(0.8, 0.9, { up: 4, down: 3, mode: 'halved' }),
    }),
  'RMSProp in cycles': (p) =>
    new nn.RMSProp(p, { lr: nn.cyclicRate(0.01, 0.1, { up: 4 }), momentum: nn.cyclicMomentum(0.5, 0.9, { up: 4 }) }),
  Rprop: (p) => new nn.Rprop(p),
  'Rprop with all options': (p) => new nn.Rprop(p, { lr: 0.05, etas: [0.6, 1.5], stepSizes: [1e-3, 0.2] }),
  'Rprop climbing': (p) => new nn.Rprop(p, { lr: 0.05, maximize: true }),
  groups: ([a, b]) =>
    new nn.ParameterGroups(
      nn.Adam,
      [
        { parameters: [a], lr: 0.1 },
        { parameters: [b], weightDecay: 0.1 },
      ],
      {
        lr: 0.05,
      },
    ),
};

describe('as in PyTorch', () => {
  for (const [name, make] of Object.entries(optimizers))
    it(name, async () => close(await trajectory(make), stored(name)));

  const searches = {
    LBFGS: { lr: 0.05, historySize: 4 },
    'LBFGS with a line search': { lineSearchFn: 'strongWolfe' },
  } as const;
  for (const [name, options] of Object.entries(searches))
    it(name, async () => {
      const ps = parameters();
      const optimizer = new nn.LBFGS(ps, { ...options, maxIter: 8 });
      const rosenbrock = (a: Tensor, b: Tensor): Tensor => {
        const x = concat([flatten(a), flatten(b)], 0);
        const [now, next] = [x, x].map((t, i) => narrow(t, 0, i, 8)) as [Tensor, Tensor];
        const [first, second] = [now.sub(1), next.sub(now.mul(now))];
        return sum(first.mul(first).add(second.mul(second).mul(10)));
      };
      const closure: nn.Closure = () => {
        const [found, grads] = valueAndGrad(rosenbrock, { argnums: [0, 1] })(...ps) as [Tensor, Tensor[]];
        return { value: found, grads };
      };
      const found: number[] = [];
      for (let call = 0; call < 3; call++) {
        found.push(await optimizer.step(closure), ...(await numbers(ps)));
        if (call > 0) continue;
        // Through a saved state.
        const state = await optimizer.state();
        optimizer.dispose();
        optimizer.loadState(state);
      }
      close(found, stored(name), 1e-7);
      optimizer.dispose();
    });

  const schedules: Readonly<Record<string, nn.Schedule>> = {
    linearRate: nn.linearRate(0.1, { from: 0.25, to: 0.9, steps: 10 }),
    heldRate: nn.heldRate(0.1, { factor: 0.5, steps: 7 }),
    'cyclicRate triangular': nn.cyclicRate(0.01, 0.1, { up: 4, down: 3 }),
    'cyclicRate triangular2': nn.cyclicRate(0.01, 0.1, { up: 4, down: 3, mode: 'halved' }),
    'cyclicRate exp_range': nn.cyclicRate(0.01, 0.1, { up: 4, down: 3, mode: 'exponential', factor: 0.95 }),
    cosineRestarts: nn.cosineRestarts(0.1, { steps: 5, factor: 2, floor: 0.01 }),
    'oneCycle of three phases': nn.oneCycle(0.1, { steps: 30, threePhase: true }),
    'oneCycle in lines': nn.oneCycle(0.1, { steps: 30, up: 0.4, anneal: 'linear' }),
    cyclicMomentum: nn.cyclicMomentum(0.8, 0.9, { up: 4, down: 3, mode: 'exponential', factor: 0.95 }),
    oneCycleMomentum: nn.oneCycleMomentum({ steps: 30 }),
    'oneCycleMomentum of three phases': nn.oneCycleMomentum({ steps: 30, threePhase: true, anneal: 'linear' }),
    sequentialRates: nn.sequentialRates([nn.linearRate(0.1, { from: 0.1 }), nn.exponentialDecay(0.1, 0.9)], [8]),
    chainedRates: nn.chainedRates(0.1, [nn.heldRate(0.1, { factor: 0.1 }), nn.exponentialDecay(0.1, 0.9)]),
  };
  for (const [name, schedule] of Object.entries(schedules))
    it(name, () => {
      const wanted = stored(name);
      close(
        Array.from(wanted, (_, step) => schedule(step)),
        wanted,
        1e-12,
      );
    });

  const plateaus: Readonly<Record<string, readonly [sign: number, options: nn.PlateauOptions]>> = {
    ReduceOnPlateau: [1, { patience: 2, factor: 0.5 }],
    'ReduceOnPlateau upwards': [
      -1,
      { mode: 'max', patience: 1, factor: 0.3, threshold: 0.05, thresholdMode: 'absolute', cooldown: 2, minLr: 0.002 },
    ],
  };
  for (const [name, [sign, options]] of Object.entries(plateaus))
    it(name, () => {
      const target: nn.HasRate = { learningRate: 0.1 };
      const plateau = new nn.ReduceOnPlateau(target, options);
      const found = Array.from({ length: 40 }, (_, t) => {
        plateau.step(sign * (1 / (1 + Math.min(t, 9)) + ((t * 7) % 5) / 50));
        return target.learningRate as number;
      });
      close(found, stored(name), 1e-12);
    });

  for (const order of [1, 3, Number.POSITIVE_INFINITY])
    it(`clipGradNorms of order ${order}`, async () => {
      const grads = [value(1, [2, 3]), value(2, [3])];
      const norms = nn.clipGradNorms([grads], 0.5, { order });
      close(await numbers([norms, ...grads]), stored(`clipGradNorms of order ${order === 1 / 0 ? 'inf' : order}`));
    });
});

describe('momentum that changes from step to step', () => {
  for (const name of ['SGD in one cycle', 'Adam in one cycle'])
    it(`${name}: in compiled steps with a scaler, too`, async () => {
      const ps = parameters();
      const optimizer = optimizers[name]!(ps);
      const scaler = new nn.GradScaler({ initScale: 1 });
      const step = compile((a: Tensor, b: Tensor) => {
        scaler.step(optimizer, scaler.unscale(optimizer, [a.add(ps[0].mul(0.3)), b.add(ps[1].mul(0.3))]));
        return sum(a);
      });
      const found: number[] = [];
      for (let t = 0; t < 25; t++) {
        scope(() => void step(value(3 + 2 * t, [2, 3]), value(4 + 2 * t, [3])));
        if (t === 0 || t === 4 || t === 24) found.push(...(await numbers(ps)));
      }
      close(found, stored(name));
      step.dispose();
    });

  it('is refused where it is none', () => {
    const [p] = parameters();
    expect(() => new nn.SGD([p], { momentum: () => 1.5 }).step([ones([2, 3], { dtype })])).toThrow(
      /momentum of step 0 is 1.5/,
    );
    expect(() => new nn.Adam([p], { betas: [() => Number.NaN, 0.9] }).step([ones([2, 3], { dtype })])).toThrow(
      /betas of step 0/,
    );
    expect(() => new nn.Adam([p], { betas: [0.9, (() => 0.9) as never] })).toThrow(/betas/);
    expect(() => nn.cyclicMomentum(0.95, 0.9)).toThrow(/high is 0.9/);
    expect(() => nn.oneCycleMomentum({ steps: 9, high: 1 })).toThrow(/high is 1/);
  });
});

// What PyTorch 1.13 does not have: the papers' algorithms, one number after the other.

type Rows = number[][];
const rms = (x: readonly number[]): number => Math.sqrt(x.reduce((a, b) => a + b * b, 0) / x.length);
const lengthOf = (x: readonly number[]): number => Math.sqrt(x.reduce((a, b) => a + b * b, 0));

/** The same steps on the host: `step` gets the parameter's number, its values and gradient, and the number of the step from 1. */
function reference(step: (i: number, p: number[], g: number[], t: number) => number[]): number[] {
  const ps = [host(1, 6), host(2, 3)];
  const found: number[] = [];
  for (let t = 0; t < 25; t++) {
    for (const [i, p] of ps.entries()) {
      const g = host(3 + 2 * t + i, p.length).map((v, j) => v + 0.3 * p[j]!);
      ps[i] = step(i, p, g, t + 1);
    }
    if (t === 0 || t === 4 || t === 24) found.push(...ps.flat());
  }
  return found;
}

describe('as in the papers', () => {
  it('NAdam, with the products of momenta that PyTorch has since 2.0', async () => {
    const [lr, b1, b2, eps, decay, momentumDecay] = [0.05, 0.8, 0.9, 1e-5, 0.1, 0.1];
    const state = [6, 3].map((n) => ({ m: new Array<number>(n).fill(0), v: new Array<number>(n).fill(0), product: 1 }));
    const wanted = reference((i, p, gradient, t) => {
      const [now, next] = [t, t + 1].map((n) => b1 * (1 - 0.5 * 0.96 ** (n * momentumDecay))) as [number, number];
      const own = state[i]!;
      own.product *= now;
      return p.map((x, j) => {
        const g = gradient[j]! + decay * x;
        own.m[j] = b1 * own.m[j]! + (1 - b1) * g;
        own.v[j] = b2 * own.v[j]! + (1 - b2) * g * g;
        const spread = Math.sqrt(own.v[j]! / (1 - b2 ** t)) + eps;
        const step = ((1 - now) / (1 - own.product)) * g + (next / (1 - own.product * next)) * own.m[j]!;
        return x - (lr * step) / spread;
      });
    });
    const options = { lr, betas: [b1, b2], eps, weightDecay: decay, momentumDecay } as const;
    close(await trajectory((p) => new nn.NAdam(p, options)), wanted);
  });

  it('LAMB', async () => {
    const [lr, b1, b2, eps, decay] = [0.05, 0.8, 0.9, 1e-6, 0.1];
    const state = [6, 3].map((n) => ({ m: new Array<number>(n).fill(0), v: new Array<number>(n).fill(0) }));
    const wanted = reference((i, p, g, t) => {
      const { m, v } = state[i]!;
      const r = p.map((x, j) => {
        m[j] = b1 * m[j]! + (1 - b1) * g[j]!;
        v[j] = b2 * v[j]! + (1 - b2) * g[j]! ** 2;
        return m[j]! / (1 - b1 ** t) / (Math.sqrt(v[j]! / (1 - b2 ** t)) + eps) + decay * x;
      });
      return p.map((x, j) => x - ((lr * lengthOf(p)) / lengthOf(r)) * r[j]!);
    });
    const found = await trajectory((p) => new nn.LAMB(p, { lr, betas: [b1, b2], eps, weightDecay: decay }));
    close(found, wanted);
  });

  it('Adafactor', async () => {
    const [rows, columns] = [new Array<number>(2).fill(0), new Array<number>(3).fill(0)];
    const squares = new Array<number>(3).fill(0);
    const wanted = reference((i, p, g, t) => {
      const decay = 1 - t ** -0.8;
      const square = g.map((v) => v * v + 1e-30);
      let v: number[];
      if (i === 0) {
        for (const r of [0, 1])
          rows[r] = decay * rows[r]! + ((1 - decay) * (square[3 * r]! + square[3 * r + 1]! + square[3 * r + 2]!)) / 3;
        for (const c of [0, 1, 2]) columns[c] = decay * columns[c]! + ((1 - decay) * (square[c]! + square[c + 3]!)) / 2;
        v = square.map((_, j) => (rows[Math.floor(j / 3)]! * columns[j % 3]!) / ((rows[0]! + rows[1]!) / 2));
      } else {
        for (const j of squares.keys()) squares[j] = decay * squares[j]! + (1 - decay) * square[j]!;
        v = squares;
      }
      const u = g.map((x, j) => x / Math.sqrt(v[j]!));
      const cut = Math.max(1, rms(u));
      const rate = Math.max(1e-3, rms(p)) * Math.min(1e-2, 1 / Math.sqrt(t));
      return p.map((x, j) => x - (rate * u[j]!) / cut);
    });
    close(await trajectory((p) => new nn.Adafactor(p)), wanted);
  });

  it('Muon, of a matrix and of a tall one', async () => {
    const times = (a: Rows, b: Rows): Rows =>
      a.map((row) => b[0]!.map((_, j) => row.reduce((s, x, k) => s + x * b[k]![j]!, 0)));
    const turned = (a: Rows): Rows => a[0]!.map((_, j) => a.map((row) => row[j]!));
    const momenta = [new Array<number>(6).fill(0), new Array<number>(3).fill(0)];
    const wanted = reference((i, p, g) => {
      const momentum = momenta[i]!;
      for (const j of momentum.keys()) momentum[j] = 0.95 * momentum[j]! + 0.05 * g[j]!;
      const ahead = momentum.map((m, j) => 0.95 * m + 0.05 * g[j]!);
      // [2, 3] as it is; [3, 1] turned to [1, 3].
      let x: Rows = i === 0 ? [ahead.slice(0, 3), ahead.slice(3)] : [ahead];
      const size = lengthOf(ahead) + 1e-7;
      x = x.map((row) => row.map((v) => v / size));
      for (let k = 0; k < 5; k++) {
        const a = times(x, turned(x));
        const aa = times(a, a);
        const b = a.map((row, r) => row.map((v, c) => -4.775 * v + 2.0315 * aa[r]![c]!));
        const bx = times(b, x);
        x = x.map((row, r) => row.map((v, c) => 3.4445 * v + bx[r]![c]!));
      }
      const scale = i === 0 ? 1 : Math.sqrt(3);
      return p.map((v, j) => v * (1 - 0.02 * 0.1) - 0.02 * scale * x.flat()[j]!);
    });
    const ps = [nn.parameter(value(1, [2, 3])), nn.parameter(value(2, [3, 1]))] as const;
    expect(() => new nn.Muon(parameters())).toThrow(/has shape \[3\] and is no matrix/);
    const found = await trajectoryOf(ps, new nn.Muon(ps, { lr: 0.02 }));
    close(found, wanted);
  });
});

/** Parameters after steps 1, 5 and 25. */
async function trajectoryOf(ps: readonly Tensor[], optimizer: nn.Optimizer): Promise<number[]> {
  const found: number[] = [];
  for (let t = 0; t < 25; t++) {
    scope(() => optimizer.step(ps.map((p, i) => value(3 + 2 * t + i, p.shape).add(p.mul(0.3)))));
    if (t === 0 || t === 4 || t === 24) found.push(...(await numbers(ps)));
  }
  optimizer.dispose();
  return found;
}

describe('groups', () => {
  it('take one step together, or none', async () => {
    const ps = parameters();
    const optimizer = new nn.ParameterGroups(nn.SGD, [{ parameters: [ps[0]] }, { parameters: [ps[1]], lr: 0.5 }], {
      lr: 0.1,
    });
    const before = await numbers(ps);
    optimizer.groups[1]!.learningRate = () => Number.NaN;
    const grads = (): Tensor[] => ps.map((p) => ones(p.shape, { dtype }));
    expect(() => optimizer.step(grads())).toThrow(/bad learningRate/);
    expect([await numbers(ps), optimizer.steps]).toEqual([before, 0]);
    optimizer.groups[1]!.learningRate = 0.5;
    optimizer.step(grads());
    close(
      await numbers(ps),
      before.map((v, i) => v - (i < 6 ? 0.1 : 0.5)),
    );
    expect([optimizer.steps, optimizer.currentRate]).toEqual([1, 0.1]);
    // A group without gradients counts its steps too.
    optimizer.step([grads()[0]!, null]);
    expect(optimizer.groups.map(({ steps }) => steps)).toEqual([2, 2]);
  });

  it('save and load as one optimizer of all', async () => {
    const make = (ps: readonly Tensor[]): nn.Optimizer =>
      new nn.ParameterGroups(nn.Adam, [{ parameters: [ps[0]!] }, { parameters: [ps[1]!] }], { lr: 0.1 });
    const ps = parameters();
    const [groups, one] = [make(ps), new nn.Adam(ps, { lr: 0.1 })];
    groups.step(ps.map((p) => ones(p.shape, { dtype })));
    const saved = await groups.state();
    expect(Object.keys(saved.slots)).toEqual(['0.mean', '0.square', '1.mean', '1.square']);
    one.loadState(saved);
    const other = make(ps);
    other.loadState(await one.state());
    expect(await other.state()).toEqual(saved);
    expect(() => other.loadState({ steps: 1, slots: {} })).toThrow(/lacks/);
  });

  it('have rates that fall from layer to layer', () => {
    const parts = [new nn.Linear(2, 2), new nn.ReLU(), new nn.Linear(2, 1)];
    const groups = nn.layerRates(parts, { lr: (step) => 1 / (1 + step), decay: 0.5 });
    const optimizer = new nn.ParameterGroups(nn.SGD, groups, { momentum: 0.9 });
    expect(optimizer.groups.map(({ currentRate }) => currentRate)).toEqual([0.25, 1]);
    new nn.ReduceOnPlateau(optimizer, { patience: 0 }).step(Number.NaN);
    expect(optimizer.groups[0]!.currentRate).toBeCloseTo(0.025, 12);
  });
});

describe('means', () => {
  it('of weights follow them, change places with them, and are saved', async () => {
    const model = new nn.Linear(2, 1, { bias: false, dtype });
    const set = (v: number): void => void model.weight.assign(tensor([[v, -v]], { dtype }));
    set(1);
    const average = new nn.WeightAverage(model, { decay: 0.75 });
    set(3);
    average.update();
    set(5);
    average.update();
    const mean = 0.75 * (0.75 * 1 + 0.25 * 3) + 0.25 * 5;
    expect(await average.during(() => model.weight.array())).toEqual([[mean, -mean]]);
    expect(await model.weight.array()).toEqual([[5, -5]]);
    const other = new nn.WeightAverage(model, { decay: (n) => n / (n + 1) });
    other.loadStateDict(await nn.hostState(average.stateDict()), 3);
    other.update();
    expect(await other.stateDict().weight!.array()).toEqual([[0.75 * mean + 1.25, -0.75 * mean - 1.25]]);
    expect([average.updates, other.updates]).toEqual([2, 4]);
    expect(() => new nn.WeightAverage(model, { decay: 1 })).toThrow(/decay.*below 1/);
  });

  it('of gradients over batches, where some have none', async () => {
    const accumulator = new nn.GradientAccumulator(3);
    const t = (v: number): Tensor => tensor([v, 2 * v], { dtype });
    for (let round = 0; round < 2; round++) {
      expect(accumulator.add([t(3), null, null])).toBe(null);
      expect(accumulator.add([null, t(6), null])).toBe(null);
      const [a, b, c] = accumulator.add([t(9), null, null])!;
      close([...(await numbers([a!, b!]))], [4, 8, 2, 4], 1e-12);
      expect(c).toBe(null);
    }
    expect(() => accumulator.add([t(1)])).toThrow(/1 gradients after 3/);
    accumulator.dispose();
  });
});

it('clipGradNorms takes each group by itself', async () => {
  const grads = [tensor([3, 4], { dtype }), tensor([0.3], { dtype }), null];
  const norms = nn.clipGradNorms([[grads[0]!], [grads[1]!, null]], [1, 2]);
  close(await numbers([norms, grads[0]!, grads[1]!]), [5, 0.3, 0.6, 0.8, 0.3], 1e-6);
  expect(() => nn.clipGradNorms([[null]], 1)).toThrow(/group 0 has no gradients/);
  expect(() => nn.clipGradNorms([grads], 1, { order: 0 })).toThrow(/order: 0; must be above 0/);
});

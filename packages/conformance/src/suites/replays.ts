/** Functions of `compile` against the same functions without, bit for bit over several calls: what they give, assign and draw. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';

/** A function of a tensor, and the tensors from outside that it changes. */
interface Program {
  readonly f: (x: Tensor) => readonly Tensor[];
  readonly state: readonly Tensor[];
}

const calls = 7;

const uniform = (shape: readonly number[], key: number): Tensor =>
  pg.scope(() => pg.rand(shape, { key }).mul(2).sub(1));

/** All values of some calls: results, then what is changed. */
async function valuesOf(make: () => Program, shape: readonly number[], compiled: boolean): Promise<number[][]> {
  pg.seed(5);
  const { f, state } = make();
  const replaying = compiled ? pg.compile(f) : null;
  const step = replaying ?? ((x: Tensor) => pg.scope(() => f(x)));
  const found: number[][] = [];
  for (let call = 0; call < calls; call++) {
    const x = uniform(shape, call + 1);
    const results = step(x);
    for (const t of [...results, ...state]) found.push([...((await t.data()) as Float32Array)]);
    pg.dispose([x, ...results]);
  }
  pg.dispose(state);
  replaying?.dispose();
  return found;
}

async function compare(make: () => Program, shape: readonly number[]): Promise<undefined> {
  const expected = await valuesOf(make, shape, false);
  const { replays } = pg.stats();
  const found = await valuesOf(make, shape, true);
  for (const [i, values] of found.entries())
    for (const [k, value] of values.entries())
      if (!Object.is(value, expected[i]![k]))
        throw new Error(`value ${k} of tensor ${i} is ${value} and without compile ${expected[i]![k]}`);
  const { recordings, replays: after } = pg.stats();
  if (after === replays) throw new Error('no call was replayed');
  if (recordings !== 0) throw new Error(`${recordings} recordings are left`);
}

/** A step of training of a small network: convolution, normalisation with statistics, dropout, momentum. */
function training(): Program {
  const [kernel, weight, mean, variance] = [
    uniform([3, 2, 3, 3], 91),
    uniform([12, 4], 92),
    pg.tensor([0, 0, 0]),
    pg.tensor([1, 1, 1]),
  ];
  const moments = [kernel, weight].map((t) => uniform(t.shape, 93));
  const labels = pg.tensor([0, 1, 2, 3, 0], { dtype: 'int32' });
  const loss = ([k, w]: readonly [Tensor, Tensor], x: Tensor): Tensor => {
    const y = pg.conv2d(x, k, { padding: 'same' });
    const normal = pg.batchNorm(y, { runningMean: mean, runningVar: variance, training: true });
    const features = pg.maxPool2d(pg.relu(normal), 2).reshape([5, 12]);
    return pg.crossEntropy(pg.dropout(features, { p: 0.25, training: true }).matmul(w), labels);
  };
  const f = (x: Tensor): Tensor[] => {
    const [value, slopes] = pg.valueAndGrad(loss)([kernel, weight], x);
    for (const [i, t] of [kernel, weight].entries()) {
      moments[i]!.assign(moments[i]!.mul(0.9).add(slopes[i]!));
      t.assign(t.sub(moments[i]!.mul(0.1)));
    }
    return [value];
  };
  return { f, state: [kernel, weight, mean, variance, ...moments, labels] };
}

/** A loop, its gradient, a sort, and results that are views. */
function recurrent(): Program {
  const decay = uniform([], 94);
  const sum = (rate: Tensor, x: Tensor): Tensor => {
    const [last] = pg.scan((c: Tensor, row: Tensor) => [c.mul(rate).add(row).tanh(), null], pg.zeros([4]), x);
    return last.sum();
  };
  const f = (x: Tensor): Tensor[] => {
    const [value, slope] = pg.valueAndGrad(sum)(decay, x);
    decay.assign(decay.sub(slope.mul(0.01)));
    const [values] = pg.topK(x, 2);
    return [value, values, x.transpose(), pg.rand([3])];
  };
  return { f, state: [decay] };
}

/** Assignments that cannot be made in place, and a flush between them. */
function swapped(): Program {
  const [a, b] = [uniform([40], 95), uniform([40], 96)];
  const f = (x: Tensor): Tensor[] => {
    const before = a.add(0);
    a.assign(b.mul(x));
    pg.flush();
    b.assign(before.cumSum(0));
    return [a.sum(), pg.tensor([1, 2, 3]).mul(x.slice([{ start: 0, stop: 3 }]))];
  };
  return { f, state: [a, b] };
}

export function replayCases(): ConformanceCase[] {
  return [
    { name: 'compile / a step of training', run: () => compare(training, [5, 2, 4, 4]) },
    { name: 'compile / loops, sorts and views', run: () => compare(recurrent, [6, 4]) },
    { name: 'compile / tensors that are swapped, and flushes', run: () => compare(swapped, [40]) },
  ];
}

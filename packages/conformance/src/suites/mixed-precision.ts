/**
 * Mixed precision on an engine: a network under `autocast` against the same sums in float64, rounded where the policy says. Also `GradScaler` with
 * steps that overflow, grown factors, compiled steps and whole trainings. Engines that do not hold a dtype must say so.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { Adam, fit, GradScaler, Linear, mseLoss, ReLU, Sequential, SGD } from '@polygrad/nn';
import type { ConformanceCase, SkipReason } from '../case.ts';
import { elementsOf } from '../host.ts';
import { nearest } from '../oracle/formats.ts';
import { compared } from './order/values.ts';

type Small = 'float16' | 'bfloat16';
type Rows = readonly (readonly number[])[];

/** Numbers that float32 does not hold in 16 bits. */
const rows = (n: number, m: number, salt: number): number[][] =>
  Array.from({ length: n }, (_, i) =>
    Array.from({ length: m }, (_, j) => Math.fround(Math.sin(0.37 * (i * m + j + 3) ** 2 + salt) * 0.9)),
  );
const turned = (a: Rows): number[][] => a[0]!.map((_, j) => a.map((row) => row[j]!));
const each = (a: Rows, f: (v: number, i: number, j: number) => number): number[][] =>
  a.map((row, i) => row.map((v, j) => f(v, i, j)));
const product = (a: Rows, b: Rows): number[][] =>
  a.map((row) => b[0]!.map((_, j) => row.reduce((sum, v, k) => sum + v * b[k]![j]!, 0)));

const numbersOf = async (t: Tensor): Promise<number[]> => Array.from(await elementsOf(t), Number);

/** Two layers and a loss: `x w1 + b`, rectified, times `w2`, squared distance from `y`. */
const [n, inputs, hidden, outputs] = [6, 9, 7, 3];
const given = {
  x: rows(n, inputs, 0),
  w1: rows(inputs, hidden, 1),
  b: rows(1, hidden, 2)[0]!,
  w2: rows(hidden, outputs, 3),
  y: rows(n, outputs, 4),
};

/** What the network gives in float64, with a rounding wherever a product is taken. Gradients of w1, b and w2 are by the chain rule. */
function expected(dtype: Small): Readonly<Record<'out' | 'w1' | 'b' | 'w2', number[]>> & { readonly loss: number } {
  const small = (a: Rows): number[][] => each(a, (v) => nearest(dtype, v));
  const [x, w1, w2] = [small(given.x), small(given.w1), small(given.w2)];
  const before = each(small(product(x, w1)), (v, _, j) => v + given.b[j]!);
  const h = small(each(before, (v) => Math.max(0, v)));
  const out = small(product(h, w2));
  const distance = each(out, (v, i, j) => v - given.y[i]![j]!);
  const loss = distance.flat().reduce((sum, v) => sum + v * v, 0) / (n * outputs);
  const g = small(each(distance, (v) => (2 * v) / (n * outputs)));
  const dBefore = each(small(product(g, turned(w2))), (v, i, j) => (before[i]![j]! > 0 ? v : 0));
  return {
    loss,
    out: out.flat(),
    w1: small(product(turned(x), small(dBefore))).flat(),
    b: turned(dBefore).map((column) => column.reduce((a, v) => a + v, 0)),
    w2: small(product(turned(h), g)).flat(),
  };
}

async function network(dtype: Small): Promise<void> {
  const [x, y] = [pg.tensor(given.x), pg.tensor(given.y)];
  const weights = [pg.tensor(given.w1), pg.tensor(given.b), pg.tensor(given.w2)] as const;
  const dtypes: string[] = [];
  const loss = ([w1, b, w2]: readonly Tensor[]): readonly [Tensor, Tensor] =>
    pg.autocast(dtype, () => {
      const out = pg.relu(x.matmul(w1!).add(b!)).matmul(w2!);
      const value = pg.mseLoss(out, y);
      dtypes.push(out.dtype, value.dtype);
      return [value, pg.detach(out)];
    });
  const wanted = expected(dtype);
  const [value, out, grads] = pg.scope(() => {
    const [[first, second], slopes] = pg.valueAndGrad(loss, { hasAux: true })(weights) as unknown as [
      [Tensor, Tensor],
      Tensor[],
    ];
    return [first, second.cast('float32'), slopes] as const;
  });
  if (dtypes.join() !== `${dtype},float32`) throw new Error(`result and loss are ${dtypes.join()}`);
  for (const v of await numbersOf(out))
    if (v !== nearest(dtype, v)) throw new Error(`a result in ${dtype} is ${v} when it is widened: it was not rounded`);
  // A sum in another order may fall on the other side of a rounding, which the next layer hands on.
  const unit = dtype === 'float16' ? 2 ** -11 : 2 ** -8;
  const near = (list: readonly number[]): { rtol: number; atol: number } => ({
    rtol: 2 * unit,
    atol: 2 * unit * Math.max(...list.map(Math.abs)),
  });
  await compared(value, { expected: [wanted.loss], shape: [], tolerance: near([wanted.loss]) });
  await compared(out, { expected: wanted.out, shape: [n, outputs], tolerance: near(wanted.out) });
  for (const [i, name] of (['w1', 'b', 'w2'] as const).entries()) {
    if (grads[i]!.dtype !== 'float32') throw new Error(`the gradient of ${name} is ${grads[i]!.dtype}`);
    await compared(grads[i]!, {
      expected: wanted[name],
      shape: weights[i]!.shape,
      tolerance: near(wanted[name]),
    });
  }
  pg.dispose([x, y, ...weights]);
}

/** Engines without the dtype say so, and what they hold. */
function refused(dtype: Small): void {
  try {
    pg.autocast(dtype, () => undefined);
  } catch (error) {
    const { name, message } = error as Error;
    if (name === 'UnsupportedError' && message.includes(`holds no ${dtype}`)) return;
    throw error;
  }
  throw new Error(`autocast('${dtype}') was taken by an engine that does not hold it`);
}

/** Steps of Adam on gradients of which some overflow: they change nothing; the factor is halved, and grows after three good steps. */
async function overflows(compiled: boolean): Promise<void> {
  const overflowing = new Set([0, 4]);
  const [scaled, plain] = [pg.tensor([0.5, -1, 2]), pg.tensor([0.5, -1, 2])];
  const [first, second] = [new Adam([scaled], { lr: 0.1 }), new Adam([plain], { lr: 0.1 })];
  const scaler = new GradScaler({ initScale: 1024, growthInterval: 3 });
  const gradient = (step: number): number[] => [1, 2, 3].map((k) => ((step * 3 + k * 5) % 7) - 3.5);
  const once = (g: Tensor): Tensor[] => {
    scaler.step(first, [scaler.scale(g)]);
    scaler.update();
    return [];
  };
  const replaying = compiled ? pg.compile(once) : null;
  const step = replaying ?? ((g: Tensor) => pg.scope(() => once(g)));
  const factors: number[] = [];
  for (let t = 0; t < 10; t++) {
    const g = pg.tensor(gradient(t).map((v) => (overflowing.has(t) ? v * 1e38 : v)));
    step(g);
    g.dispose();
    if (!overflowing.has(t)) second.step([pg.tensor(gradient(t))]);
    factors.push((await scaler.state()).scale);
  }
  const state = await scaler.state();
  const [found, wanted] = [await numbersOf(scaled), await numbersOf(plain)];
  for (const it of [replaying, first, second, scaler]) it?.dispose();
  pg.dispose([scaled, plain]);
  // 1024 halved, doubled after three, halved, doubled after three.
  const want = [512, 512, 512, 1024, 512, 512, 512, 1024, 1024, 1024];
  if (factors.join() !== want.join()) throw new Error(`factors are ${factors.join()}: expected ${want.join()}`);
  if (state.skipped !== 2) throw new Error(`${state.skipped} steps were left out: expected 2`);
  for (const [i, value] of found.entries())
    if (!(Math.abs(value - wanted[i]!) <= 1e-5 * Math.abs(wanted[i]!)))
      throw new Error(`parameter ${i} is ${value}; of the steps that count alone it is ${wanted[i]!}`);
}

/** A small training in mixed precision: the same bits every time, and as good as in float32. */
async function training(dtype: Small): Promise<void> {
  const x = rows(32, 4, 5);
  const y = x.map(([a, b]) => [a! * b! + 0.5]);
  const run = async (precision: Small | null): Promise<{ readonly bits: string; readonly loss: number }> => {
    pg.seed(4);
    const model = new Sequential(new Linear(4, 16), new ReLU(), new Linear(16, 1));
    const optimizer = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 });
    const [a, b] = [pg.tensor(x), pg.tensor(y)];
    const { epochs } = await fit(model, [{ x: a, y: b }], {
      optimizer,
      loss: mseLoss,
      epochs: 40,
      ...(precision !== null && { precision }),
    });
    const weights: number[] = [];
    for (const p of model.parameters()) weights.push(...(await numbersOf(p)));
    optimizer.dispose();
    pg.dispose([a, b, ...model.parameters()]);
    return { bits: weights.join(), loss: epochs.at(-1)!.loss };
  };
  const [first, again, wide] = [await run(dtype), await run(dtype), await run(null)];
  if (first.bits !== again.bits) throw new Error('the same training gave other weights');
  if (first.bits === wide.bits) throw new Error('nothing was computed in 16 bits');
  if (!(Math.abs(first.loss - wide.loss) < 0.02))
    throw new Error(`the loss is ${first.loss} in ${dtype} and ${wide.loss} in float32`);
}

export function mixedPrecisionCases(): ConformanceCase[] {
  const make = (name: string, run: () => Promise<void> | void): ConformanceCase => ({
    name: `mixed precision / ${name}`,
    run: async (): Promise<undefined | SkipReason> => {
      await run();
      return undefined;
    },
  });
  // Asked of the engine itself: values of dtypes that it lacks live on another one, where no training would be meant to run.
  const held = (dtype: Small): boolean => pg.getEngine().caps.dtypes.has(dtype);
  return [
    ...(['float16', 'bfloat16'] as const).flatMap((dtype) => [
      make(`a network in ${dtype}`, () => (held(dtype) ? network(dtype) : refused(dtype))),
      make(`a training in ${dtype}`, () => (held(dtype) ? training(dtype) : refused(dtype))),
    ]),
    make('steps that overflow', () => overflows(false)),
    make('steps that overflow, replayed', () => overflows(true)),
  ];
}

/** functionalCall: modules as functions of their parameters, against formulas written out with the same tensors. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  checkpoint,
  compile,
  grad,
  hessian,
  mseLoss,
  randn,
  scan,
  setEngine,
  stack,
  type Tensor,
  tanh,
  tensor,
  vmap,
} from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { BatchNorm1d, functionalCall, Linear, NnError, Sequential, Tanh } from '../index.ts';

type Weights = Record<string, Tensor>;

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

const options = { dtype: 'float64' } as const;
const model = new Sequential(new Linear(2, 3, options), new Tanh(), new Linear(3, 1, options));
const names = model.namedParameters().map(([name]) => name);
const values = (key: number): Weights =>
  Object.fromEntries(
    model.namedParameters().map(([name, { shape }], i) => [name, randn(shape, { ...options, key: 10 * key + i })]),
  );
const x = randn([5, 2], { ...options, key: 1 });
const y = randn([5, 1], { ...options, key: 2 });

const loss = (w: Weights, inputs: Tensor): Tensor => functionalCall(model, w, () => mseLoss(model.forward(inputs), y));
const [w1, b1, w2, b2] = names as [string, string, string, string];
/** The same without the module. */
const plain = (w: Weights, inputs: Tensor): Tensor => {
  const hidden = tanh(inputs.matmul(w[w1]!.transpose()).add(w[b1]!));
  return mseLoss(hidden.matmul(w[w2]!.transpose()).add(w[b2]!), y);
};

async function numbers(w: Weights | Tensor): Promise<number[]> {
  const parts = 'dtype' in w ? [w as Tensor] : names.map((name) => (w as Weights)[name]!);
  return (await Promise.all(parts.map((part) => part.data()))).flatMap((data) => Array.from(data, Number));
}

async function same(found: Weights | Tensor, wanted: Weights | Tensor): Promise<void> {
  const [a, b] = [await numbers(found), await numbers(wanted)];
  expect(a.length).toBe(b.length);
  a.forEach((value, i) => {
    expect(value).toBeCloseTo(b[i]!, 11);
  });
  expect(b.some((value) => Math.abs(value) > 1e-6)).toBe(true);
}

type Loss = typeof plain;
const step =
  (f: Loss) =>
  (w: Weights): Weights => {
    const slopes = grad(f)(w, x);
    return Object.fromEntries(Object.entries(w).map(([name, value]) => [name, value.sub(slopes[name]!.mul(0.1))]));
  };

describe('functionalCall', () => {
  it('gives values and gradients by what stands in, and leaves the module as it was', async () => {
    const before = await numbers(Object.fromEntries(model.namedParameters()));
    const own = await loss({}, x).item();
    await same(loss(values(3), x), plain(values(3), x));
    await same(grad(loss)(values(3), x), grad(plain)(values(3), x));
    expect(await numbers(Object.fromEntries(model.namedParameters()))).toEqual(before);
    expect(await loss({}, x).item()).toBe(own);
  });

  it('goes through steps of learning inside a loss, at second order', async () => {
    const meta = (f: Loss) => grad((w: Weights) => f(step(f)(step(f)(w)), x.mul(2)));
    await same(meta(loss)(values(3)), meta(plain)(values(3)));
    const bias = (f: Loss) => hessian((b: Tensor) => f({ ...values(3), [b1]: b }, x))(values(3)[b1]!);
    await same(bias(loss), bias(plain));
    const loop = (f: Loss) =>
      grad((w: Weights) => f(scan((c: Weights) => [step(f)(c), null], w, null, { length: 3 })[0], x));
    await same(loop(loss)(values(3)), loop(plain)(values(3)));
  });

  it('goes through vmap, checkpoints and compiled functions', async () => {
    const many = [values(3), values(4), values(5)];
    const all = Object.fromEntries(names.map((name) => [name, stack(many.map((w) => w[name]!))]));
    const each = vmap(grad(loss), { inAxes: [0, null] })(all, x);
    const wanted = many.map((w) => grad(plain)(w, x));
    await same(each, Object.fromEntries(names.map((name) => [name, stack(wanted.map((w) => w[name]!))])));
    // The checkpoint runs again when other tensors no longer stand in.
    const again = (w: Weights): Tensor =>
      functionalCall(model, w, () =>
        mseLoss(
          checkpoint((t: Tensor) => model.forward(t), x),
          y,
        ),
      );
    await same(grad(again)(values(3)), grad(plain)(values(3), x));
    await same(
      grad((ws: Weights) => vmap(again)(ws).sum())(all),
      Object.fromEntries(names.map((name) => [name, stack(wanted.map((w) => w[name]!))])),
    );
    const compiled = compile(grad(loss));
    for (const key of [3, 4, 5, 3, 4, 5]) await same(compiled(values(key), x), grad(plain)(values(key), x));
  });

  it('nests, the innermost value counts, and takes buffers too', async () => {
    const layer = new Linear(1, 1, { bias: false });
    const at = (weight: Tensor, body: () => Tensor): Tensor => functionalCall(layer, { weight }, body);
    const forward = (): Tensor => layer.forward(tensor([[1]]));
    const both = at(tensor([[2]]), () => forward().add(at(tensor([[3]]), forward)));
    expect(await both.item()).toBe(5);
    const norm = new BatchNorm1d(1);
    norm.eval();
    const mean = (m: Tensor): Tensor =>
      functionalCall(norm, { running_mean: m }, () => norm.forward(tensor([[5]])).sum());
    expect(await mean(tensor([3])).item()).toBeCloseTo(2, 4);
    expect(await grad(mean)(tensor([3])).item()).toBeCloseTo(-1, 4);
  });

  it('says what does not fit', () => {
    const call = (w: unknown, body: unknown = () => x) => functionalCall(model, w as Weights, body as () => Tensor);
    expect(() => call({ weight: x })).toThrow(/no parameter or buffer 'weight'; the module has .*0\.weight/);
    expect(() => call({ [b1]: x })).toThrow(/float64 \[5, 2\], and the module has float64 \[3\]; reshape or cast/);
    expect(() => call({ [b1]: tensor([1, 2, 3]) })).toThrow(/float32 \[3\], and the module has float64 \[3\]/);
    expect(() => call({ [b1]: 3 })).toThrow(NnError);
    const shared = new Linear(2, 2);
    const tied = Object.fromEntries(new Sequential(shared, shared).namedParameters());
    expect(() => functionalCall(new Sequential(shared, shared), tied, () => x)).toThrow(
      /'1\.weight' is .* by another name/,
    );
    expect(() => call(null)).toThrow(/bad values: null; must be an object of tensors by name/);
    expect(() => call({}, 1)).toThrow(/functionalCall/);
    expect(() => call({}, async () => x)).toThrow(/promise/);
  });
});

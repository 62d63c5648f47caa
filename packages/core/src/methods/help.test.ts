import { inspect } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { setEngine } from '../engine/registry.ts';
import { arange, ones, tensor } from '../functions.ts';
import * as pg from '../functions.ts';
import { stats } from '../runtime/runtime.ts';
import './methods.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeEach(() => setEngine(createReferenceEngine()));
afterEach(() => setEngine(createReferenceEngine()));

it('the console shows few values that are on the host, and computes nothing', () => {
  const t = tensor([
    [1, 2],
    [3, 4.5],
  ]);
  expect(inspect(t)).toBe('Tensor float32 [2, 2]\n[[1.  2. ]\n [3.  4.5]]');
  expect(inspect({ a: { t: t.transpose() } })).toBe(
    '{\n  a: {\n    t: Tensor float32 [2, 2]\n    [[1.  3. ]\n     [2.  4.5]]\n  }\n}',
  );
  expect(inspect(tensor(3))).toBe('Tensor float32 [] 3.0');
  expect(inspect(ones([2], { dtype: 'int64' }))).toBe('Tensor int64 [2] [1 1]');
  expect(inspect(tensor([1, 0.5], { dtype: 'float16' }).slice([{ start: 1 }]))).toBe('Tensor float16 [1] [0.5]');
  expect(inspect(tensor(new Float32Array(0), { shape: [0, 3] }))).toBe('Tensor float32 [0, 3] []');
  const { flushes } = stats();
  const sum = t.add(1);
  expect(inspect(sum)).toBe('Tensor float32 [2, 2], await t.print() shows its values');
  expect(inspect({ sum })).toBe('{ sum: Tensor float32 [2, 2] }');
  expect(stats().flushes).toBe(flushes);
  expect(inspect(arange(5000))).toBe('Tensor float32 [5000]');
  expect(inspect([tensor(new Float32Array(20))])).toBe('[ Tensor float32 [20] ]');
  t.dispose();
  expect(inspect(t)).toBe('Tensor float32 [2, 2] (disposed)');
});

it('test runners, which ask for JSON without a key, show values; JSON shows which tensor it is', () => {
  const t = tensor([1, 2]) as unknown as { toJSON(...key: string[]): string };
  expect(t.toJSON()).toBe('Tensor float32 [2] [1. 2.]');
  expect(Object.prototype.toString.call(t)).toBe('[object Tensor]');
  expect(JSON.stringify({ t })).toBe('{"t":"Tensor float32 [2]"}');
});

it('the console reads no device', async () => {
  await setEngine(createReferenceEngine({ synchronous: false }));
  expect(inspect(tensor([1, 2]))).toBe('Tensor float32 [2], await t.print() shows its values');
});

it('an element that is set says how tensors change', () => {
  const t = tensor([1, 2]) as unknown as number[];
  expect(() => {
    t[0] = 3;
  }).toThrow('[tensor] no element [0] to set of a Tensor float32 [2]: nothing changes a tensor but assign()');
});

it('what is no array and no number says what to do', () => {
  const t = tensor([1, 2]) as unknown as number[];
  const other = t as unknown as Record<string, () => unknown>;
  const remedies = {
    view: "[tensor] no 'view' of a Tensor float32 [2]: reshape(t, shape)",
    T: 'transpose(t)',
    masked_fill: 'it is maskedFill',
    argmax: 'it is argMax',
    log_softmax: 'it is logSoftmax',
    add_: 'assign()',
    cuda: "setEngine('cuda')",
    numpy: 'await t.data()',
    long: "cast(t, 'int32')",
    half: "cast(t, 'float16')",
    var: 'correction: 1',
    exp_: 'exp(t, ...) gives a new tensor',
    masked_fill_: 'maskedFill(t, ...) gives a new tensor',
    einsum: "einsum('ij,jk->ik', a, b)",
    expand_as: 'expand(t, shape)',
    take_along_dim: 'takeAlongAxis(t, indices, axis)',
    length: 't.size elements, or t.shape[0] rows',
    bincount: 'scatterAdd(zeros([classes]), t, ones(t.shape))',
    clamp_max: 'clip(t, null, most)',
    kthvalue: 'select(sort(t, { axis: 0 }), 0, k - 1)',
    map: 'unbind(t) gives its rows',
    expandDims: 'unsqueeze(t, axis)',
    inverse: "inv(t) of '@polygrad/core/linear-algebra', a function",
    solve: "solve(a, b) of '@polygrad/core/linear-algebra', a function",
    qr: "qr(t) of '@polygrad/core/linear-algebra', a function",
    svd: "svd(t) of '@polygrad/core/linear-algebra', a function",
    matrix_exp: 'not there yet; compute it elsewhere from await t.array()',
    mod: ': remainder(a, b)',
    ge: ': greaterEqual(a, b)',
    subtract: ': sub(a, b)',
    fft: 'not there yet',
  };
  for (const [name, remedy] of Object.entries(remedies)) expect(() => other[name]!()).toThrow(remedy);
  other.view = () => 3; // somebody's own
  expect([other.view(), Object.keys(t).includes('T')]).toEqual([3, false]);
  expect(() => t[0]).toThrow('[tensor] no element [0] of a Tensor float32 [2]: select(t, 0, 0) is a row');
  expect(() => t[-1 as 0]).toThrow('select(t, 0, -1)');
  expect(() => (t as unknown as number) + 1).toThrow('compute with t.add(1)');
  expect(() => 'a text and '.concat(String(t))).not.toThrow();
  expect(() => {
    for (const row of t) void row;
  }).toThrow('[tensor] no iteration of a Tensor float32 [2]: unbind(t) gives its rows');
  expect(() => [...t]).toThrow('unbind(t)');
  expect('0' in [t]).toBe(true);
  expect(JSON.stringify([t])).toBe('["Tensor float32 [2]"]');
});

it('remedies of several calls give what the other name gives', async () => {
  const t = tensor([3, 0, 1, 3], { dtype: 'int32' });
  expect(await pg.scatterAdd(pg.zeros([4]), t, ones(t.shape)).array()).toEqual([1, 1, 0, 2]);
  expect(await pg.any(pg.equal(pg.unsqueeze(t, -1), tensor([1, 3], { dtype: 'int32' })), -1).array()).toEqual([
    true,
    false,
    true,
    true,
  ]);
  expect(await pg.select(pg.sort(t, { axis: 0 }), 0, 2 - 1).item()).toBe(1);
  const p = tensor([0.2, 0.5], { dtype: 'float64' });
  const [logit, middle] = (await pg.sub(pg.log(p), pg.log1p(pg.neg(p))).data()) as Float64Array;
  expect(logit).toBeCloseTo(Math.log(0.2 / 0.8), 14);
  expect(middle).toBe(0);
  const y = tensor([1, 2, 4]);
  expect(
    await pg
      .add(pg.narrow(y, 0, 1, 2), pg.narrow(y, 0, 0, 2))
      .sum()
      .div(2)
      .item(),
  ).toBe(4.5);
});

it('methods refuse arguments that they would leave out', () => {
  const t = ones([2, 3]);
  const loose = t as unknown as Record<string, (...given: unknown[]) => unknown>;
  expect(() => loose.sum!(1, true)).toThrow(
    '[sum] 2 arguments where the method takes one argument: true would be left out; give a list as one argument, and settings by name, as t.sum({ axis: [0, 1], keepDims: true })',
  );
  expect(() => loose.permute!(1, 0)).toThrow('[permute] 2 arguments where the method takes one argument: 0 would');
  expect(() => loose.reshape!(3, 2)).toThrow('[reshape] 2 arguments');
  expect(() => loose.relu!(true)).toThrow('[relu] one argument where the method takes no arguments');
  expect(() => loose.rot90!(1, [0, 1], 2)).toThrow('[rot90] 3 arguments where the method takes 2 arguments: 2 would');
  expect(() => loose.add!(t, 2)).toThrow('[add] 2 arguments');
});

it('methods take all arguments of their operations, those with defaults and lists too', () => {
  const t = ones([1, 1, 2, 2]);
  expect(t.rot90(1, [2, 3]).shape).toEqual([1, 1, 2, 2]);
  expect(t.avgPool2d(2, { stride: 1 }).shape).toEqual([1, 1, 1, 1]);
  expect(t.at(0, 0, 1).shape).toEqual([2]);
  expect(t.sum(undefined).shape).toEqual([]);
  expect(t.transpose(2, 3).shape).toEqual([1, 1, 2, 2]);
});

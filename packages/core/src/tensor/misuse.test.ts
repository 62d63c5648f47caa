/** Wrong arguments of functions that take functions, options, engines and lists: said at the call, and nothing left behind. */
import { inspect } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import * as pg from '../index.ts';
import { getEngine, registerBackend, replaceEngine, setEngine } from '../engine/registry.ts';
import type { IEngine } from '../engine/engine.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';

const setUp = async (made: IEngine = createReferenceEngine()): Promise<pg.Tensor> => {
  const engine = await setEngine(made);
  onTestFinished(() => {
    replaceEngine(createReferenceEngine());
    engine.dispose();
  });
  return pg.tensor([1, 2]);
};

/** Calls something as a program in JavaScript could. */
const loose = (f: unknown, ...args: unknown[]): unknown => (f as (...args: unknown[]) => unknown)(...args);

it('what is no function is refused where it is given', async () => {
  const x = await setUp();
  const { scope, noGrad, grad, grads, valueAndGrad, vmap, jacobian, hessian } = pg;
  const takers = { scope, noGrad, grad, grads, valueAndGrad, vmap, jacobian, hessian };
  for (const [name, f] of Object.entries(takers))
    expect(() => loose(f, 5), name).toThrow(`[${name}] bad function: 5; must be a function`);
  expect(() => loose(pg.checkpoint, 'f', x)).toThrow("[checkpoint] bad function: 'f'; must be a function");
  expect(() => loose(pg.customGradient, () => x)).toThrow(
    '[customGradient] bad backward function: undefined; give one',
  );
  expect(() => loose(pg.vjp, null, [x], x)).toThrow('[vjp] bad function: null');
  expect(() => loose(pg.jvp, {}, [x], [x])).toThrow('[jvp] bad function: an object');
  await expect(loose(pg.warmup, 5)).rejects.toThrow('[warmup] bad function: 5');
  await expect(loose(pg.profile, 5)).rejects.toThrow('[profile] bad function: 5');
});

it('asynchronous functions are refused by name, and their failing later is nobody else’s concern', async () => {
  const x = await setUp();
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  const failing = (t = x) => {
    const made = t.add(1);
    // What was made in the scope is gone by then.
    return Promise.resolve().then(() => made.mul(2));
  };
  try {
    const calls: Record<string, () => unknown> = {
      scope: () => pg.scope(() => failing()),
      noGrad: () => pg.noGrad(() => Promise.reject(new Error('late'))),
      checkpoint: () => loose(pg.checkpoint, failing, x),
      grad: () => (loose(pg.grad, failing) as typeof failing)(x),
      grads: () => (loose(pg.grads, failing) as typeof failing)(x),
      valueAndGrad: () => (loose(pg.valueAndGrad, failing, { hasAux: true }) as typeof failing)(x),
      vmap: () => (loose(pg.vmap, failing) as typeof failing)(x),
      jacobian: () => (loose(pg.jacobian, failing) as typeof failing)(x),
      hessian: () => (loose(pg.hessian, failing) as typeof failing)(x),
      vjp: () => loose(pg.vjp, failing, [x], x),
      jvp: () => loose(pg.jvp, failing, [x], [x]),
      customGradient: () => (loose(pg.customGradient, failing, failing) as typeof failing)(x),
    };
    for (const [name, call] of Object.entries(calls)) {
      expect(call, name).toThrow(pg.ArgumentError);
      expect(call, name).toThrow(`[${name}] the function returned a promise`);
    }
    await expect(pg.warmup(() => failing())).rejects.toThrow('[warmup] the function returned a promise');
    // Unhandled rejections are reported after all microtasks.
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('unhandledRejection', note);
  }
  expect(unhandled).toEqual([]);
  expect(() => (loose(pg.grad, () => []) as typeof failing)(x)).toThrow('[grad] the function returned a list');
});

it('options, limits, engines and backends are checked', async () => {
  const x = await setUp();
  const recovery: [unknown, string][] = [
    [{ fallback: 'gpu' }, "bad fallback: 'gpu'; must be 'cpu' or 'error'"],
    [{ retry: -1 }, 'bad retry: -1; must be a whole number from 0'],
    [{ outOfMemory: 'cp' }, "bad outOfMemory: 'cp'; must be 'error' or 'cpu'"],
    [{ shadow: 1 }, 'bad shadow: 1; must be true or false'],
    [{ interval: Number.NaN }, 'bad interval: NaN; must be a number from 0'],
    [
      { fallbck: 'cpu' },
      "no option 'fallbck', did you mean 'fallback'? Known are retry, fallback, outOfMemory, shadow, interval, patience",
    ],
    [5, 'bad options: 5; must be an object'],
  ];
  for (const [given, text] of recovery) expect(() => loose(pg.setRecovery, given)).toThrow(`[setRecovery] ${text}`);
  const before = pg.setRecovery({ retry: undefined } as object);
  expect(before.retry).toBe(1);
  expect(pg.setRecovery(before)).toEqual(before);

  expect(() => pg.setPendingLimits({ nodes: -1 })).toThrow('[setPendingLimits] bad nodes: -1; must be a number from 1');
  expect(() => pg.setPendingLimits({ bytes: Number.NaN })).toThrow('[setPendingLimits] bad bytes: NaN');
  expect(() => pg.setPendingLimits({ node: 5 } as object)).toThrow("[setPendingLimits] no option 'node'");

  expect(() => loose(pg.memory, {})).toThrow('[memory] not an engine: an object');
  expect(pg.memory(getEngine()).numTensors).toBeGreaterThan(0);
  for (const given of [5, null, x]) expect(() => loose(pg.protect, given)).toThrow('[protect] bad tensors: ');
  expect(() => loose(pg.unprotect, 5)).toThrow('[unprotect] bad tensors: 5; must be a list of tensors');
  for (const given of [null, { name: 5 }, { name: '' }, { name: 'half', probe: () => 0 }])
    expect(() => loose(registerBackend, given)).toThrow('[registerBackend] not a backend: ');
});

it('a tensor taken for its value says what it is, and is no number', async () => {
  const x = await setUp();
  const text = 'Tensor float32 [2]';
  expect(`${x}`).toBe(text);
  expect(`loss ${x}`).toBe(`loss ${text}`);
  expect(JSON.stringify({ x })).toBe(`{"x":"${text}"}`);
  expect(inspect([x])).toBe(`[ ${text} [1. 2.] ]`);
  for (const asNumber of [() => Number(x), () => loose(Math.sqrt, x), () => (x as never) > 0])
    expect(asNumber).toThrow(`[tensor] a ${text} is no number: read its value first, with await t.item()`);
  expect(() => loose(pg.tensor, [x.sum().item()])).toThrow('[tensor] element is no number: a promise (await it)');
  expect(() => loose(pg.tensor, [x.item])).toThrow('[tensor] element is no number: a function');
  expect(() => loose(pg.add, x, x.sum().item())).toThrow('[add] not a tensor: a promise (await it)');
  for (const bounds of [[{ min: 0 }], [0, { max: 1 }]])
    expect(() => loose(x.clip.bind(x), ...bounds)).toThrow(
      '[clip] bounds are an object: give them in order, t.clip(0, 6)',
    );
  expect(() => Object.assign(x, { requires_grad: false })).toThrow("no 'requires_grad' of a Tensor");
  expect(() => loose(pg.tensor, [x, x])).toThrow(/^\[tensor\] element is no number: a Tensor; .*stack\(\) makes one/);
});

it('arguments given to what makes a function are named as such', async () => {
  const x = await setUp();
  const f = (t: pg.Tensor) => t.sum();
  for (const make of [pg.grad, pg.grads, pg.valueAndGrad, pg.jacobian, pg.hessian, pg.vmap, pg.compile])
    for (const given of [x, [x]])
      expect(() => loose(make, f, given)).toThrow(
        `and ${make.name}(f) is the function to call, as in ${make.name}(f)(x)`,
      );
});

it('nested arrays that would end the process are refused, before anything is computed', async () => {
  // So many zeros are computed at once; here by an engine that computes nothing.
  await setUp(createNullEngine());
  const large = pg.zeros([2, 2 ** 26]);
  const refused = '] too many elements: shape [2, 67108864] has 134217728, nested arrays at most 67108864; use data()';
  await expect(large.array()).rejects.toThrow(`[array${refused}`);
  expect(() => large.arraySync()).toThrow(`[arraySync${refused}`);
  expect(await pg.zeros([2, 0, 3]).array()).toEqual([[], []]);
});

it('sizes given one by one are refused as the shape they are not', async () => {
  await setUp();
  for (const make of [pg.zeros, pg.ones, pg.rand, pg.randn])
    expect(() => loose(make, 2, 3)).toThrow(`[${make.name}] bad shape: 2; must be an array, such as [2, 3]`);
});

it('rows of 0 and 1 of an integer dtype in the place of class numbers', async () => {
  await setUp();
  const rows = pg.tensor([[0, 1]], { dtype: 'int32' });
  expect(() => pg.crossEntropy(pg.ones([1, 2]), rows)).toThrow(
    'needs [1] for predictions [1, 2] with classes along axis 1; argMax(target, 1) makes them of rows of 0 and 1',
  );
});

it('class numbers of a float dtype are named as such', async () => {
  const x = await setUp();
  expect(() => pg.crossEntropy(x.reshape([1, 2]), pg.tensor([1]))).toThrow(
    "[crossEntropy] target has shape [1] and dtype float32: probabilities need the shape of the logits [1, 2], class numbers an integer dtype, as cast('int32') gives",
  );
});

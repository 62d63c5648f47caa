/** Functions with a rule of their own, and checkpoints, as users call them, on the reference engine. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  checkpoint,
  customGradient,
  exp,
  grad,
  jvp,
  log,
  mul,
  ones,
  setEngine,
  sum,
  type Tensor,
  tanh,
  tensor,
  vmap,
} from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { near, read, scalar, vector } from './fixtures/vectors.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

describe('customGradient and checkpoint', () => {
  it('uses the rule given, at second order too', async () => {
    // log(1 + e^x) with its stable derivative.
    const softplus = customGradient(
      (x) => log(exp(x).add(1)),
      (g, { inputs: [x] }) => mul(g, exp(x as Tensor).div(exp(x as Tensor).add(1))),
    );
    const s = 1 / (1 + Math.exp(-0.5));
    await near(grad((x: Tensor) => softplus(x))(scalar(0.5)), [s]);
    await near(grad((x: Tensor) => grad((t: Tensor) => softplus(t))(x))(scalar(0.5)), [s * (1 - s)]);
  });

  it('at every order, backward and forward, where the rule uses the result', async () => {
    const own = customGradient(
      (x) => exp(x),
      (g, { output }) => mul(g, output),
    );
    let f = (x: Tensor): Tensor => own(mul(x, 2));
    for (let order = 1; order <= 4; order++) {
      const inner = f;
      f = order % 2 === 0 ? (x) => jvp(inner, [x], [scalar(1)])[1] : (x) => grad(inner)(x);
      await near(f(scalar(0.3)), [2 ** order * Math.exp(0.6)]);
    }
  });

  it('works with backward and several inputs', async () => {
    const f = customGradient(
      (a, b) => mul(a, b),
      (g) => [mul(g, 100), null],
    );
    const a = tensor([1, 2], { requiresGrad: true });
    const b = tensor([3, 4], { requiresGrad: true });
    sum(f(a, b)).backward();
    expect(await read(a.grad as Tensor)).toEqual([100, 100]);
    expect(b.grad).toBeNull();
  });

  it('checks what the rule returns', () => {
    const f = customGradient(
      (a) => a,
      () => [null, null],
    );
    expect(() => grad((x: Tensor) => sum(f(x)))(vector(1))).toThrow(/\[customGradient\].*2/);
    const g = customGradient(
      (a) => a,
      () => ones([3]),
    );
    expect(() => grad((x: Tensor) => sum(g(x)))(vector(1))).toThrow(/\[customGradient\].*\[3\].*\[1\]/);
  });

  it('says what to do where the rule uses an example of vmap from outside', async () => {
    const rows = vector(1, 2, 3, 4).reshape([2, 2]);
    const closing = (w: Tensor) =>
      sum(
        vmap((row: Tensor) =>
          customGradient(
            (y) => mul(y, row),
            (g) => mul(g, row),
          )(w),
        )(rows),
      );
    expect(() => grad(closing)(vector(1, 1))).toThrow(/^\[customGradient\].*gone.*make it an argument.*f\(x, a\)/s);
    const scaled = customGradient(
      (y, row) => mul(y, row),
      (g, { inputs: [, row] }) => [mul(g, row as Tensor), null],
    );
    const given = (w: Tensor) => sum(vmap((row: Tensor) => scaled(w, row))(rows));
    expect(await read(grad(given)(vector(1, 1)))).toEqual([4, 6]);
  });

  it('checkpoint gives the same gradients', async () => {
    const f = (x: Tensor): Tensor => sum(tanh(mul(x, x)));
    const direct = await read(grad(f)(vector(0.5, 1)));
    await near(grad((x: Tensor) => checkpoint(f, x))(vector(0.5, 1)), direct);
  });
});

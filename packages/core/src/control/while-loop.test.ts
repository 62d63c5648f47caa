/** whileLoop: gradients inside its steps, tensors that go while it runs, and what it leaves. */
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  dispose,
  flush,
  grad,
  GradientTape,
  memory,
  mul,
  setEngine,
  tensor,
  type Tensor,
  valueAndGrad,
  whileLoop,
} from '../index.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
});

/** x^2 - 2, whose root Newton's method finds: 1, 3/2, 17/12, 577/408. */
const parabola = (x: Tensor): Tensor => x.square().sub(2);

describe('whileLoop', () => {
  it('takes gradients in its steps', async () => {
    const { numTensors, numBuffers } = memory();
    const start = tensor(1);
    const near = (x: Tensor): Tensor => parabola(x).abs().greater(1e-4);
    const newton = (x: Tensor): Tensor => {
      const [value, slope] = valueAndGrad(parabola)(x);
      return x.sub(value.div(slope));
    };
    const root = await whileLoop(near, newton, start);
    expect(await root.item()).toBeCloseTo(577 / 408, 6);
    // A tape in a step is one more way.
    const taped = await whileLoop(
      near,
      (x: Tensor) => {
        using tape = new GradientTape();
        tape.watch(x);
        const value = parabola(x);
        return x.sub(value.div(tape.gradient(value, x)!));
      },
      start,
    );
    expect(await taped.item()).toBeCloseTo(577 / 408, 6);
    dispose([start, root, taped]);
    flush();
    expect(memory()).toMatchObject({ numTensors, numBuffers });
  });

  it('says that there is no gradient, also of what was disposed while it ran', async () => {
    const weight = tensor(3, { requiresGrad: true });
    const start = mul(weight, 1);
    const running = whileLoop(
      (x: Tensor) => x.less(50),
      (x: Tensor) => x.mul(start),
      start,
    );
    start.dispose();
    await expect(running).rejects.toThrow(/disposed/);
    const ended = await whileLoop(
      (x: Tensor) => x.less(50),
      (x: Tensor) => x.mul(weight),
      weight,
    );
    expect(await ended.item()).toBe(81);
    expect(() => ended.backward()).toThrow(/no gradient flows through it/);
    await expect(
      whileLoop(
        (x: Tensor) => x.less(50),
        (x: Tensor) => x.mul(grad((t: Tensor) => t.mul(weight))(x)),
        weight,
        { maxSteps: 1 },
      ).then((x) => x.backward()),
    ).rejects.toThrow(/no gradient flows through it/);
    dispose([weight, start, ended]);
  });
});

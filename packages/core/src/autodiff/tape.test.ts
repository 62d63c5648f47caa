/** Tapes as users hold them, on the reference engine. */
import { beforeAll, describe, expect, it } from 'vitest';
import { add, GradientTape, mul, noGrad, scope, setEngine, sum, type Tensor, tensor } from '../index.ts';
import { createReferenceEngine } from '../testing/index.ts';
import { near, scalar, vector } from './fixtures/vectors.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

describe('GradientTape', () => {
  it('follows watched tensors and requiresGrad leaves', async () => {
    const x = vector(1, 2);
    const w = tensor([3, 4], { dtype: 'float64', requiresGrad: true });
    const tape = new GradientTape();
    tape.watch(x);
    const y = sum(mul(mul(x, x), w));
    const g = tape.gradient(y, { x, w });
    await near(g.x, [6, 16]);
    await near(g.w, [1, 4]);
    expect(() => tape.gradient(y, x)).toThrow(/\[gradient\].*ended/);
  });

  it('gives gradients by intermediate values, and several times when persistent', async () => {
    using tape = new GradientTape({ persistent: true });
    const x = vector(2);
    tape.watch(x);
    const y = mul(x, x);
    const z = sum(mul(y, y));
    await near(tape.gradient(z, y), [8]);
    await near(tape.gradient(z, x), [32]);
    await near(tape.gradient(y, [x])[0] as Tensor, [4]);
  });

  it('nests, and with createGraph differentiates its own gradients', async () => {
    const x = scalar(3);
    const outer = new GradientTape();
    outer.watch(x);
    const inner = new GradientTape();
    inner.watch(x);
    const slope = inner.gradient(mul(mul(x, x), x), x);
    await near(outer.gradient(slope, x), [18]);

    using tape = new GradientTape({ persistent: true });
    tape.watch(x);
    const first = tape.gradient(mul(mul(x, x), x), x, { createGraph: true });
    await near(tape.gradient(first, x), [18]);
  });

  it('does not see what happens under stopRecording and noGrad, and survives a flush', async () => {
    const x = vector(1, 2);
    const tape = new GradientTape();
    tape.watch(x);
    const constant = tape.stopRecording(() => mul(x, 10));
    const other = noGrad(() => mul(x, 10));
    const y = sum(mul(add(constant, other), x));
    await y.data();
    await near(tape.gradient(y, x), [20, 40]);
  });

  it('ends with its scope', () => {
    const tape = scope(() => {
      const inner = new GradientTape();
      return { inner };
    });
    expect(tape.inner.disposed).toBe(true);
  });
});

/** Tapes as users hold them, on the reference engine. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeAll, describe, expect, it } from 'vitest';
import { hasRecordings } from '../graph/scope.ts';
import {
  add,
  flush,
  grad,
  GradientTape,
  memory,
  mul,
  noGrad,
  scope,
  setEngine,
  sum,
  type Tensor,
  tensor,
} from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
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

  it('says of what it does not know that it was to be watched', async () => {
    const [x, other] = [vector(1, 2), vector(1, 2)];
    const tape = new GradientTape({ persistent: true });
    const y = sum(mul(x, x));
    expect(() => tape.gradient(y, x)).toThrow(
      '[gradient] the tape does not know a float64 [2]: watch() it before it is',
    );
    tape.watch(other);
    // What is watched and not used has a gradient of zeros.
    await near(tape.gradient(y, other), [0, 0]);
    tape.dispose();
  });

  it('does not know what backward() released, unless it is watched', async () => {
    const w = tensor([1, 2], { dtype: 'float64', requiresGrad: true });
    const h = mul(w, 3);
    sum(h).backward();
    const lost = new GradientTape();
    const y = sum(mul(h, h));
    expect(() => lost.gradient(y, h)).toThrow('[gradient] the tape does not know a float64 [2]: watch() it before');
    const tape = new GradientTape();
    tape.watch(h);
    await near(tape.gradient(sum(mul(h, h)), h), [6, 12]);
    // Recorded before the release: the tape keeps its own history.
    const before = new GradientTape({ persistent: true });
    const z = mul(w, 3);
    const loss = sum(mul(z, z));
    loss.backward();
    await near(before.gradient(loss, z), [6, 12]);
    await near(before.gradient(loss, w), [18, 36]);
    before.dispose();
  });

  it('ends with its scope', () => {
    const tape = scope(() => {
      const inner = new GradientTape();
      return { inner };
    });
    expect(tape.inner.disposed).toBe(true);
  });
});

describe('tapes left open', () => {
  const collect = (): void => {
    setFlagsFromString('--expose-gc');
    (runInNewContext('gc') as () => void)();
  };
  const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));
  let x: Tensor;
  beforeAll(() => {
    x = vector(1, 2);
  });

  /** An exception comes before gradient(). */
  function forget(): void {
    try {
      const tape = new GradientTape();
      tape.watch(x);
      mul(x, x);
      throw new Error('the data was bad');
    } catch {
      // The next batch is tried.
    }
  }

  it('end when they are collected, with what they kept', async () => {
    const before = memory().numTensors;
    for (let i = 0; i < 200; i++) {
      forget();
      if (i % 20 === 19) {
        // What a weak reference was asked for stays until the running JavaScript ends.
        await turn();
        collect();
        await turn();
      }
    }
    await near(grad((t: Tensor) => sum(mul(t, t)))(x), [2, 4]);
    // Handles are watched from the flush on that computes them.
    flush();
    await turn();
    collect();
    await turn();
    expect(memory().numTensors).toBeLessThanOrEqual(before + 1);
    expect(hasRecordings()).toBe(false);
  });

  it('are not collected while they can be asked', async () => {
    const tape = new GradientTape();
    tape.watch(x);
    const y = sum(mul(x, x));
    await turn();
    collect();
    await turn();
    await near(tape.gradient(y, x), [2, 4]);
  });

  it('make room without waiting for the collector to tell', async () => {
    for (let i = 0; i < 31; i++) forget();
    await turn();
    collect();
    // No turn of the event loop in between: finalisers have not run.
    await near(grad((t: Tensor) => sum(mul(t, t)))(x), [2, 4]);
  });

  it('are in the message of the limit, with the places where they were made', () => {
    const open: GradientTape[] = [];
    const here = (): GradientTape => new GradientTape();
    for (let i = 0; i < 30; i++) open.push(here());
    let message = '';
    try {
      grad((t: Tensor) => sum(grad((u: Tensor) => sum(mul(u, u)))(t)))(x);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toMatch(
      /too many tapes are open: 31; end those no longer needed by gradient\(\), dispose\(\) or 'using'/,
    );
    expect(message).toMatch(
      /\n {2}30 times GradientTape, made at here \(.*tape\.test\.ts:\d+:\d+\)\n {2}grad, running$/,
    );
    for (const tape of open) tape.dispose();
    expect(hasRecordings()).toBe(false);
  });
});

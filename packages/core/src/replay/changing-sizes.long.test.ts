/** compile: ten thousand steps of training at random sizes give the bits of the function, and hold no more and more. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { expect, it } from 'vitest';
import { compile, grad, idle, memory, scope, setEngine, setLogger, stats, type Tensor, tensor } from '../index.ts';

/** A weight, and a step that trains it. */
function training(): { readonly w: Tensor; readonly step: (x: Tensor, tag: number) => Tensor } {
  const w = tensor([0.5, -0.25, 0.125]);
  const slope = grad((v: Tensor, x: Tensor) => x.matmul(v).tanh().square().mean());
  const step = (x: Tensor): Tensor => {
    w.assign(w.sub(slope(w, x).mul(0.1)).add(x.mean(0).mul(0.01)));
    return w.sum();
  };
  return { w, step };
}

it.each([
  ['that come again', 1],
  ['and numbers, more than are kept', 20_000],
])('trains at sizes %s', async (_, tags) => {
  await setEngine(await createCpuEngine({ threads: 1 }));
  setLogger(null);
  const [a, b] = [training(), training()];
  const compiled = compile(a.step);
  let state = 7;
  const random = (): number => (state = (state * 1103515245 + 12345) & 0x7fffffff) / 0x80000000;
  let [early, buffers] = [0, 0];
  for (let i = 0; i < 10_000; i++) {
    const n = 2 + Math.floor(random() * 60);
    const tag = Math.floor(random() * tags);
    using x = tensor(
      Float32Array.from({ length: 3 * n }, () => random() * 2 - 1),
      { shape: [n, 3] },
    );
    compiled(x, tag).dispose();
    scope(() => b.step(x, tag)).dispose();
    if (i % 500 !== 499) continue;
    await idle();
    expect(await a.w.array()).toEqual(await b.w.array());
    if (i === 2999) [early, buffers] = [process.memoryUsage().heapUsed, memory().numBuffers];
  }
  expect(stats().recordings).toBeLessThan(5000);
  expect(memory().numBuffers).toBeLessThan(buffers + 16);
  expect(process.memoryUsage().heapUsed).toBeLessThan(early + 2 ** 26);
  compiled.dispose();
  expect(stats().recordings).toBe(0);
});

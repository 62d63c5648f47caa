/** Tensors of core on the WebGPU engine: what depends on how this engine stores, aligns and compiles. */
import {
  flush,
  keep,
  memory,
  scope,
  setEngine,
  stats,
  type Tensor,
  tensor,
  valueAndGrad,
  warmup,
} from '@polygrad/core';
import { afterAll, describe, expect, it } from 'vitest';
import { testEngine } from './fixtures/device.ts';

const engine = await testEngine();
if (engine !== null) await setEngine(engine);
afterAll(() => engine?.dispose());

describe.skipIf(engine === null)('tensors on WebGPU', () => {
  it('computes on slices that begin at any element', async () => {
    const values = Float32Array.from({ length: 300 }, (_, i) => i);
    const whole = tensor(values);
    for (const start of [0, 1, 3, 4, 63, 64, 65, 130]) {
      const part = whole.slice([{ start, stop: start + 7 }]);
      expect([...(await part.mul(2).data())]).toEqual([...values.subarray(start, start + 7)].map((v) => v * 2));
      expect([...(await part.data())]).toEqual([...values.subarray(start, start + 7)]);
    }
  });

  it('stores booleans as words and halves in pairs', async () => {
    const mask = tensor([1, 2, 3, 4, 5]).greater(2.5);
    expect([...(await mask.data())].map(Number)).toEqual([0, 0, 1, 1, 1]);
    expect([...(await tensor([true, false, true]).logicalNot().data())].map(Number)).toEqual([0, 1, 0]);
    if (!engine!.caps.dtypes.has('float16')) return;
    const halves = tensor([1.5, -2, 65504, 0.1, 7], { dtype: 'float16' });
    expect((await halves.mul(2).data()).length).toBe(5);
    expect(
      await halves
        .slice([{ start: 1, stop: 4 }])
        .cast('float32')
        .array(),
    ).toEqual([-2, 65504, Math.fround(0.0999755859375)]);
  });

  it('takes a training step in one submission, compiled beforehand', async () => {
    const rows = 32;
    const x = keep(tensor(Float32Array.from({ length: rows * 8 }, (_, i) => Math.sin(i))).reshape([rows, 8]));
    const y = keep(x.slice([null, { start: 0, stop: 1 }]).mul(3));
    const w1 = keep(tensor(Float32Array.from({ length: 128 }, (_, i) => Math.cos(i) / 4)).reshape([8, 16]));
    const w2 = keep(tensor(Float32Array.from({ length: 16 }, (_, i) => Math.cos(3 * i) / 4)).reshape([16, 1]));
    const lossOf = (a: Tensor, b: Tensor): Tensor => x.matmul(a).tanh().matmul(b).sub(y).square().mean();
    const step = (): Tensor =>
      scope(() => {
        const [value, grads] = valueAndGrad(lossOf, { argnums: [0, 1] })(w1, w2);
        for (const [i, w] of [w1, w2].entries()) w.assign(w.sub(grads[i]!.mul(0.1)));
        return value;
      });
    await Promise.all([x, y, w1, w2].map((t) => t.data()));
    const { submissions } = engine!.traffic;
    await warmup(step);
    expect(engine!.traffic.submissions).toBe(submissions);
    expect(engine!.waiting.pipelines).toBe(0);
    const { planMisses } = stats();
    const first = step();
    expect(engine!.traffic.submissions).toBe(submissions + 1);
    expect(stats().planMisses).toBe(planMisses);
    const start = await first.item();
    let last = start;
    const buffers = memory().numBuffers;
    for (let i = 0; i < 60; i++) {
      const loss = step();
      if (i % 20 === 19) last = await loss.item();
      loss.dispose();
    }
    expect(last).toBeLessThan(Number(start) / 2);
    // Tensors of the tests above may have been collected meanwhile.
    expect(memory().numBuffers).toBeLessThanOrEqual(buffers);
    expect(await first.item()).toBe(start);
    // Software adapters compile for long where nothing is cached.
  });

  it('bounds the memory of a loop that never awaits', async () => {
    const host = new Float32Array(1 << 16).fill(0.5); // 256 KiB a step, 80 MiB in all
    let x = tensor(new Float32Array(1 << 16));
    const most = { buffers: 0, bytes: 0, waiting: 0 };
    const { buffers, reservedBytes } = engine!.memory();
    for (let i = 0; i < 320; i++) {
      const next = scope(() => keep(x.mul(0.5).add(tensor(host))));
      flush();
      x.dispose();
      x = next;
      const now = engine!.memory();
      most.buffers = Math.max(most.buffers, now.buffers - buffers);
      most.bytes = Math.max(most.bytes, now.reservedBytes - reservedBytes);
      most.waiting = Math.max(most.waiting, engine!.waiting.batches);
    }
    expect(most.buffers).toBeLessThan(16);
    expect(most.bytes).toBeLessThan(4 << 20);
    expect(most.waiting).toBeLessThanOrEqual(257);
    expect((await x.data())[1]).toBe(1);
    x.dispose();
  });

  it('says how to read', () => {
    expect(() => tensor([1, 2]).add(1).dataSync()).toThrow(/await t\.data\(\)/);
  });
});

/**
 * A real device that goes away while tensors wait for it: every promise of the library ends with the loss, another device takes over, and
 * after a second loss the CPU engine.
 */
import '@polygrad/backend-cpu';
import {
  DeviceLostError,
  flush,
  getEngine,
  idle,
  keep,
  onLost,
  profile,
  protect,
  rand,
  scope,
  setEngine,
  setRecovery,
  type Tensor,
  tensor,
  throttle,
  tune,
  warmup,
} from '@polygrad/core';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDevice } from './device/device.ts';
import { engineOn, patience, testAdapter, testEngine } from './fixtures/device.ts';
import './index.ts';

const first = await testEngine();
first?.dispose();

/** Devices that were made, the newest last. */
const devices: GPUDevice[] = [];
let undo = (): void => {};

beforeEach(async () => {
  if (first === null) return;
  const found = await testAdapter();
  const prototype = Object.getPrototypeOf(found.adapter) as GPUAdapter;
  const { requestDevice } = prototype;
  prototype.requestDevice = async function (this: GPUAdapter, descriptor) {
    const device = await requestDevice.call(this, descriptor);
    devices.push(device);
    return device;
  };
  undo = () => void (prototype.requestDevice = requestDevice);
  await setEngine(engineOn(await openDevice(found), found));
});
afterEach(() => {
  setRecovery({ patience });
  undo();
  for (const device of devices.splice(0)) device.destroy();
});
afterAll(() => setEngine('cpu'));

const lose = (): void => (devices.at(-1) as GPUDevice).destroy();
/** A number that makes new kernels: an unused size. */
let size = 1000;
const fresh = (): number => (size += 1);

describe.skipIf(first === null)('what is pending when the device goes', () => {
  /** Something on the device, and kernels that are still being made. */
  const work = (on: Tensor): Tensor => scope(() => on.mul(2).add(1).sort().cumSum(0));

  /** What is left pending would be work of the next test. */
  const read = (t: Tensor): Promise<unknown> => t.data().finally(() => t.dispose());

  const kinds: Readonly<Record<string, (x: Tensor) => Promise<unknown>>> = {
    'a read of what is computed': (x) => x.data(),
    'a read whose kernels are being made': (x) => read(work(x)),
    'a number': (x) => x.sum().item(),
    'nested arrays': (x) => x.mul(3).array(),
    'a text': (x) => x.mul(3).print(),
    'a read that waits for another engine': (x) => read(x.cast('float64').mul(2)),
    'a read that came back from another engine': (x) => read(x.cast('float64').mul(2).cast('float32').add(x)),
    'a read behind memory that is not certain': (x) => read(scope(() => x.sum().add(rand([1 << 19])))),
    'idle()': (x) => {
      const y = work(x);
      flush();
      return idle().finally(() => y.dispose());
    },
    'throttle()': (x) => {
      for (let i = 0; i < 20; i++) scope(() => void x.assign(x.mul(1.5)));
      return throttle();
    },
    'warmup()': (x) => warmup(() => work(x)),
    'profile()': (x) => profile(() => work(x)),
    'tune()': (x) => {
      const a = x.slice([{ start: 0, stop: 960 }]).reshape([24, 40]);
      void a
        .matmul(a.transpose())
        .data()
        .catch(() => {});
      return tune(undefined, { budget: 0 });
    },
  };

  it.each(Object.entries(kinds))('%s rejects with a DeviceLostError', async (_, start) => {
    const n = fresh();
    const x = keep(tensor(Float32Array.from({ length: n }, (_, i) => Math.sin(i))));
    await x.data();
    const engine = getEngine();
    let told = 0;
    const stop = onLost(() => told++);
    const pending = start(x);
    // Those that begin with what was put off have asked the device by then; it answers in a later turn of the event loop.
    for (let i = 0; i < 20; i++) await null;
    lose();
    const outcome = await pending.then(
      () => null,
      (error: unknown) => error,
    );
    expect(outcome).toBeInstanceOf(DeviceLostError);
    expect((await engine.lost).reason).toBe('lost');
    expect(told).toBe(1);
    stop();
    // What lived only there says so; new work goes to another device.
    await idle().catch(() => {});
    await expect(x.data()).rejects.toThrow(/lived only there/);
    expect(await tensor([1, 2]).add(1).array()).toEqual([2, 3]);
    expect(getEngine()).not.toBe(engine);
    expect(getEngine().name).toBe('webgpu');
    x.dispose();
  });
});

describe.skipIf(first === null)('losses one after another', () => {
  it('are answered by another device once, then by the CPU engine, with what was protected', async () => {
    setRecovery({ interval: 0, patience });
    const w = tensor([1, 2, 3]);
    protect([w]);
    const step = (): void => scope(() => void w.assign(w.add(1)));
    const names: string[] = [];
    const seen = devices.length;
    for (let round = 0; round < 3; round++) {
      step();
      // A copy is made behind the step without a waiting caller: the read comes after it.
      await w.data();
      await idle();
      const before = getEngine();
      if (before.name === 'webgpu') {
        lose();
        await before.lost;
      }
      await idle();
      names.push(getEngine().name);
      const [a, b, c] = (await w.array()) as number[];
      // The values after some step, all of one.
      expect([b, c]).toEqual([(a as number) + 1, (a as number) + 2]);
      expect(a).toBeGreaterThan(round);
    }
    expect(names).toEqual(['webgpu', 'cpu', 'cpu']);
    // One more device was asked for, and no third.
    expect(devices.length - seen).toBe(1);
    w.dispose();
  });

  it('leave nothing behind where the policy says so', async () => {
    setRecovery({ patience, retry: 0, fallback: 'error' });
    const x = tensor([1, 2]);
    await x.data();
    const engine = getEngine();
    lose();
    await engine.lost;
    expect(() => tensor([1])).toThrow(DeviceLostError);
    await expect(idle()).rejects.toThrow(DeviceLostError);
    expect(getEngine()).toBe(engine);
    expect(devices.length).toBe(1);
    await setEngine('cpu');
    expect(await tensor([1]).add(1).array()).toEqual([2]);
    x.dispose();
  });

  it("bring back all parameters and optimizer states with recovery: 'shadow'", async () => {
    setRecovery({ shadow: true, interval: 0, patience });
    const { Linear, SGD } = await import('@polygrad/nn');
    const model = new Linear(2, 1);
    const parameters = model.parameters();
    const optimizer = new SGD(parameters, { lr: 0.1, momentum: 0.9 });
    expect(optimizer).toBeDefined();
    const before = await Promise.all(parameters.map((p) => p.data()));
    flush();
    scope(() => void tensor([1]).add(1));
    await idle();
    const engine = getEngine();
    lose();
    await engine.lost;
    await idle();
    expect(await Promise.all(parameters.map((p) => p.data()))).toEqual(before);
    for (const p of parameters) p.dispose();
  });
});

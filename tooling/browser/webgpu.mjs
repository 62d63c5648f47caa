/**
 * What is checked of WebGPU inside a browser: groups of threads that reduce together, by subgroups where there are some; a network trained on it and on the CPU engine; what a step asks of the device. Also a lost
 * device, and a disposed engine. The report is judged by tooling/browser.test.mjs.
 */
import { createWebGpuEngine } from '@polygrad/backend-webgpu';
import { matmul, ones, scope, setEngine } from '@polygrad/core/functions';
import { comparePrograms, groupCases } from '@polygrad/testing';
import { train } from './pages/cnn.mjs';

/** Devices in the order in which they were given, and calls of `submit` so far. */
function watch() {
  const seen = { devices: [], submits: 0 };
  const { requestDevice } = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = async function watched(...args) {
    const device = await requestDevice.apply(this, args);
    seen.devices.push(device);
    return device;
  };
  const { submit } = GPUQueue.prototype;
  GPUQueue.prototype.submit = function watched(...args) {
    seen.submits++;
    return submit.apply(this, args);
  };
  return seen;
}

const nameOf = async (work) => {
  try {
    await work();
    return 'no error';
  } catch (error) {
    return error.name;
  }
};

/** Everything; plain data comes back, or `missing`: why there is no WebGPU here. */
export async function runWebGpu() {
  if (globalThis.navigator.gpu === undefined) return { missing: 'this browser has no navigator.gpu' };
  const seen = watch();
  let engine;
  try {
    engine = await createWebGpuEngine();
  } catch (error) {
    return { missing: error.message };
  }
  const { subgroups } = engine.caps;
  const differences = await comparePrograms(engine, [...groupCases(engine.caps)], { zeroSign: true });
  await setEngine(engine);
  const losses = await train(4);
  const { device } = engine;

  // Reads that wait for a device which goes away.
  const compute = () => scope(() => matmul(ones([64, 64]), ones([64, 64])));
  const once = compute();
  await once.data();
  const before = seen.submits;
  const product = compute();
  const submits = seen.submits - before;
  const first = (await product.data())[0];
  const pending = [nameOf(() => product.data()), nameOf(() => engine.idle())];
  // What needs a timer of a second or more hangs here; by the clock it may take any time on a busy machine.
  const { setTimeout: wait } = globalThis;
  globalThis.setTimeout = (run, delay = 0, ...rest) => (delay < 1000 ? wait(run, delay, ...rest) : 0);
  const start = performance.now();
  seen.devices.at(-1).destroy();
  const lost = { pending: await Promise.all(pending), milliseconds: 0, reason: (await engine.lost).reason };
  lost.milliseconds = performance.now() - start;
  globalThis.setTimeout = wait;
  engine.dispose();

  const second = await createWebGpuEngine();
  await setEngine(second);
  const again = scope(() => matmul(ones([8, 8]), ones([8, 8])));
  const after = (await again.data())[0];
  second.dispose();
  const disposed = { bytes: second.memory().bytes, error: await nameOf(() => second.alloc(4)) };

  await setEngine('cpu');
  const expected = await train(4);
  return { device, subgroups, differences, losses, expected, submits, first, lost, after, disposed };
}

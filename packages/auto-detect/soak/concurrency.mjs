/**
 * Many at once, with the bits of one after the other; and many engines, without growth.
 *
 *   node concurrency.mjs ENGINE tasks [count]      asynchronous tasks on one engine; default 100
 *   node concurrency.mjs ENGINE workers [count]    worker threads with engines of their own; default 100
 *   node concurrency.mjs ENGINE engines [count]    engines made and disposed; default 1000
 *
 * ENGINE: cpu, native, opencl, cuda or webgpu. Runs the built packages. Ends with exit code 0 if all is well.
 */
import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const packages = new URL('../../', import.meta.url);
const load = (name) => import(new URL(`${name}/dist/index.js`, packages).href);

/** Two threads of an engine's own, where it has some, are enough to be wrong. */
const makers = {
  cpu: async () => (await load('backend-cpu')).createCpuEngine({ threads: 2 }),
  native: async () => (await load('backend-native')).createNativeEngine({ threads: 2 }),
  opencl: async () => (await load('backend-opencl')).createOpenClEngine(),
  cuda: async () => (await load('backend-cuda')).createCudaEngine(),
  webgpu: async () => (await load('backend-webgpu')).createWebGpuEngine(),
};

const core = await load('core');
const { grad, matmul, mean, mul, rand, scope, setDynamicSizes, setEngine, square, sub, throttle, zeros } = core;

// Plans for classes of sizes come with the second size: a thread that has seen one would add in another order.
setDynamicSizes('never');

/** Trains a line of eight numbers, another one for each number; gives its bits. Others may run at every `await`. */
async function train(number) {
  const sizes = [24 + (number % 5), 8];
  const x = rand(sizes, { key: number });
  const wanted = scope(() => mul(matmul(x, rand([8], { key: number + 1000 })), 2));
  const slopeOf = grad((w) => mean(square(sub(matmul(x, w), wanted))));
  let w = zeros([8]);
  for (let step = 0; step < 6; step++) {
    const next = scope(() => sub(w, mul(slopeOf(w), 0.25)));
    w.dispose();
    w = next;
    if (step % 2 === number % 2) await throttle();
    else await w.data();
  }
  const bits = new Uint32Array((await w.data()).slice().buffer);
  for (const t of [x, wanted, w]) t.dispose();
  return [...bits].join();
}

function same(got, wanted, what) {
  const at = got.findIndex((bits, i) => bits !== wanted[i]);
  if (at >= 0) throw new Error(`${what} ${at} has ${got[at]}, alone it has ${wanted[at]}`);
}

async function oneAfterTheOther(name, count) {
  const engine = await makers[name]();
  await setEngine(engine);
  const results = [];
  for (let i = 0; i < count; i++) results.push(await train(i));
  return { engine, results };
}

async function tasks(name, count) {
  const { engine, results } = await oneAfterTheOther(name, count);
  const before = core.memory(engine).numBuffers;
  for (let round = 0; round < 3; round++) same(await Promise.all(results.map((_, i) => train(i))), results, 'task');
  const after = core.memory(engine).numBuffers;
  if (after !== before) throw new Error(`${after} buffers are held, ${before} were before`);
  engine.dispose();
}

const inWorker = (name, number) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { name, number } });
    let result;
    worker.on('message', (message) => (result = message));
    worker.on('error', reject);
    worker.on('exit', () =>
      result === undefined ? reject(new Error(`thread ${number} said nothing`)) : resolve(result),
    );
  });

async function workers(name, count) {
  const { engine, results } = await oneAfterTheOther(name, count);
  engine.dispose();
  same(await Promise.all(results.map((_, i) => inWorker(name, i))), results, 'thread');
}

async function engines(name, count) {
  let settled = 0;
  let first;
  for (let i = 0; i < count; i++) {
    const engine = await makers[name]();
    await setEngine(engine);
    const bits = await train(3);
    first ??= bits;
    same([bits], [first], `engine ${i}, result`);
    engine.dispose();
    if (i === count >> 1) settled = process.memoryUsage().rss;
  }
  globalThis.gc?.();
  const grown = (process.memoryUsage().rss - settled) / 2 ** 20;
  process.stderr.write(`${count} engines, ${grown.toFixed(1)} MiB more than after half of them\n`);
  if (grown > 64) throw new Error(`memory grew by ${grown.toFixed(1)} MiB over the second half`);
}

if (isMainThread) {
  const [name, kind, count = kind === 'engines' ? '1000' : '100'] = process.argv.slice(2);
  const run = { tasks, workers, engines }[kind];
  if (run === undefined || makers[name] === undefined)
    throw new Error('usage: concurrency.mjs ENGINE tasks|workers|engines [count]');
  await run(name, Number(count));
  console.log(`fine: ${count} ${kind} on ${name}, ${availableParallelism()} processors`);
  process.exit(0);
} else {
  const { name, number } = workerData;
  const engine = await makers[name]();
  await setEngine(engine);
  parentPort.postMessage(await train(number));
  engine.dispose();
}

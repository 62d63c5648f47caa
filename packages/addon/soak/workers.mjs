/**
 * Many worker threads train at once on one device, and some are ended in the middle: the others must have right results.
 *
 *   node workers.mjs BACKEND [count]       default 100
 */
import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { backendOf } from './backend.mjs';

const steps = 30;

/** Gradient descent on a line, as the library does it. */
async function train({ name, slope }) {
  const { create } = await backendOf(name);
  const { grad, idle, mean, mul, scope, setEngine, square, sub, tensor, zeros } = await import('@polygrad/core');
  const engine = create();
  await setEngine(engine);
  const x = tensor(Float32Array.from({ length: 64 }, (_, i) => (i - 32) / 32));
  const wanted = mul(x, slope);
  const slopeOf = grad((w) => mean(square(sub(mul(x, w), wanted))));
  let w = zeros([1]);
  parentPort.postMessage('training');
  for (let step = 0; step < steps; step++) {
    w = scope(() => sub(w, mul(slopeOf(w), 0.5)));
    if (step % 10 === 0) await idle();
  }
  const result = await w.item();
  engine.dispose();
  parentPort.postMessage(result);
}

/** The same in plain numbers. */
function expected(slope) {
  const x = Array.from({ length: 64 }, (_, i) => (i - 32) / 32);
  const mean = x.reduce((sum, v) => sum + v * v, 0) / x.length;
  let w = 0;
  for (let step = 0; step < steps; step++) w -= 0.5 * 2 * mean * (w - slope);
  return w;
}

function start(name, slope) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { name, slope } });
  let onTraining = () => {};
  const training = new Promise((resolve) => {
    onTraining = resolve;
  });
  const result = new Promise((resolve, reject) => {
    let last;
    worker.on('message', (message) => {
      if (message === 'training') onTraining();
      else last = message;
    });
    worker.on('error', reject);
    worker.on('exit', () => resolve(last));
  });
  return { worker, training, result, slope };
}

if (isMainThread) {
  const name = process.argv[2];
  const count = Number(process.argv[3] ?? 100);
  const { first } = await backendOf(name);
  if (first) await start(name, 1).result;
  const workers = Array.from({ length: count }, (_, i) => start(name, 1 + i / 8));
  const ended = workers.filter((_, i) => i % 16 === 15);
  for (const { worker, training } of ended) training.then(() => worker.terminate());
  let right = 0;
  for (const { result, slope, worker } of workers) {
    const got = await result;
    if (got === undefined && ended.some((w) => w.worker === worker)) continue;
    if (!(Math.abs(got - expected(slope)) <= 1e-4 * slope))
      throw new Error(`slope ${slope}: ${got}, not ${expected(slope)}`);
    right++;
  }
  console.log(
    `${right} of ${count} workers right, ${ended.length} were to be ended, on ${availableParallelism()} processors`,
  );
  if (right < count - ended.length) throw new Error('some gave no result');
} else await train(workerData);

/**
 * Worker threads that are ended at any moment: while they load, compile, submit, wait. The process must survive, and a last
 * one must compute.
 *
 *   node endings.mjs BACKEND [count]       default 100
 */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { backendOf } from './backend.mjs';

async function work(name) {
  const { create } = await backendOf(name);
  const { add, idle, mul, scope, setEngine, sum, tensor } = await import('@polygrad/core');
  await setEngine(create());
  let x = tensor(new Float32Array(1 << 16));
  for (let step = 0; step < 1000; step++) {
    x = scope(() => add(mul(x, 0.5), 1));
    if (step === 10) parentPort.postMessage('working');
    if (step % 3 === 0) await idle();
    if (step % 7 === 0) await x.data();
  }
  parentPort.postMessage(await sum(x).item());
}

if (isMainThread) {
  const name = process.argv[2];
  const count = Number(process.argv[3] ?? 100);
  const together = 4;
  let seed = 1;
  const random = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
  const ended = async () => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { name } });
    const working = new Promise((resolve) => {
      worker.on('message', resolve);
      worker.on('exit', resolve);
    });
    worker.on('error', (error) => {
      throw error;
    });
    // A third of them while they start.
    if (random() < 0.33) await new Promise((resolve) => setTimeout(resolve, 400 * random()));
    else {
      await working;
      await new Promise((resolve) => setTimeout(resolve, 20 * random()));
    }
    await worker.terminate();
  };
  for (let i = 0; i < count; i += together) await Promise.all(Array.from({ length: together }, ended));
  const total = await new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { name } });
    worker.on('message', (message) => message !== 'working' && resolve(message));
    worker.on('error', reject);
  });
  if (Math.abs(total - 2 * 65536) > 1) throw new Error(`the last one says ${total}`);
  console.log(`${count} workers ended at any moment, the last one is right`);
} else await work(workerData.name);

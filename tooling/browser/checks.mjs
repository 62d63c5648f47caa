/**
 * What is checked inside a browser, on its main thread and in a worker alike; runs in Node as well, for comparison.
 * Nothing here knows what is to be expected: the report is judged by tooling/browser.test.mjs.
 */
import { CpuEngine } from '@polygrad/backend-cpu';
import { runConformance } from '@polygrad/conformance';
import { matmul, scope, seed, setEngine, rand } from '@polygrad/core';
import { train } from './training.mjs';

/** Parts of the conformance suite: elementwise, contractions, reductions, random numbers. */
const families = ['floorDivide / [2,3]', 'linear ', 'conv1d', 'logSoftmax / [2,3] along 1', 'random /'];

/** Waits until `done()`, two seconds at most; the event loop turns meanwhile. */
async function waitFor(done) {
  for (let i = 0; i < 200 && !done(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
  return done();
}

/** A number that depends on every bit of some floats. */
function digest(values) {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return words.reduce((sum, word) => (Math.imul(sum, 31) + word) >>> 0, 7);
}

/**
 * Runs `work` and counts the chunks of it that other threads took: whoever takes one adds 1 to a shared word, and only
 * this thread's additions pass here.
 */
async function chunksOfOthers(work) {
  const { add, store } = Atomics;
  let own = 0;
  let others = 0;
  Atomics.store = (words, index, value) => {
    if (value === 0) own = 0;
    return store.call(Atomics, words, index, value);
  };
  Atomics.add = (words, index, value) => {
    const before = add.call(Atomics, words, index, value);
    if (words[index] < 8192) others = Math.max(others, before - own++);
    return before;
  };
  try {
    await work();
  } finally {
    Object.assign(Atomics, { add, store });
  }
  return others;
}

async function product() {
  seed(5);
  const data = scope(() => matmul(rand([512, 512]), rand([512, 512])));
  const values = await data.data();
  data.dispose();
  return digest(values);
}

/** Everything; plain data comes back. */
export async function runChecks({ threads } = {}) {
  const start = performance.now();
  const engine = new CpuEngine(threads === undefined ? {} : { threads });
  await setEngine(engine);
  // Before the other threads are ready: with them the same bits must come out.
  const early = await product();
  const readyWorkers = (await waitFor(() => engine.readyWorkers === engine.caps.parallelism - 1))
    ? engine.readyWorkers
    : -1;
  let late = 0;
  const shared = await chunksOfOthers(async () => {
    for (let i = 0; i < 8; i++) late = await product();
  });
  const losses = await train();
  const conformance = { passed: 0, skipped: 0, failures: [] };
  for (const filter of families) {
    const { passed, skipped, results } = await runConformance({ engine, filter });
    conformance.passed += passed;
    conformance.skipped += skipped;
    if (passed === 0) conformance.failures.push(`${filter}: no case has this name`);
    for (const { name, outcome, detail } of results)
      if (outcome === 'failed') conformance.failures.push(`${name}: ${detail}`);
  }
  const report = {
    isolated: globalThis.crossOriginIsolated === true,
    inWorker: typeof WorkerGlobalScope !== 'undefined',
    cores: globalThis.navigator?.hardwareConcurrency ?? 0,
    threads: engine.caps.parallelism,
    readyWorkers,
    shared,
    products: [early, late],
    losses,
    conformance,
    milliseconds: 0,
  };
  engine.dispose();
  report.milliseconds = Math.round(performance.now() - start);
  return report;
}

/**
 * What is checked inside a browser, on its main thread and in a worker alike; runs in Node as well, for comparison.
 * Nothing here knows what is to be expected: the report is judged by tooling/browser.test.mjs.
 */
import { CpuEngine } from '@polygrad/backend-cpu';
import { runConformance } from '@polygrad/conformance';
import { matmul, scope, seed, setEngine, rand } from '@polygrad/core';
import { control } from '../../packages/backend-cpu/src/threads/control.ts';
import { train } from './pages/mlp.mjs';

/** Parts of the conformance suite: elementwise, along an axis, contractions, random numbers, golden values. */
const families = ['[2,3] / float32 / plain', '[2,3] along 1 / float', 'conv1d', 'random /', 'goldens / softmax'];

/** Golden values: the page's server has the file; in Node the suite finds it itself. */
async function goldenValues() {
  if (typeof process !== 'undefined') return {};
  const response = await fetch('/torch.bin.gz');
  return { goldens: new Uint8Array(await response.arrayBuffer()) };
}

/** Waits until `done()`, for some milliseconds at most; the event loop turns meanwhile. */
async function waitFor(done, most) {
  const end = performance.now() + most;
  while (!done() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
  return done();
}

/** A number that depends on every bit of some floats. */
function digest(values) {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return words.reduce((sum, word) => (Math.imul(sum, 31) + word) >>> 0, 7);
}

/** The chunks that other threads did while `work` ran, by the word in which they count them. `work` is told the number so far. */
async function chunksOfOthers(work) {
  const { load } = Atomics;
  let first;
  let others = 0;
  Atomics.load = (words, index) => {
    const value = load.call(Atomics, words, index);
    if (index === control.done) {
      first ??= value;
      others = (value - first) | 0;
    }
    return value;
  };
  try {
    await work(() => others);
  } finally {
    Object.assign(Atomics, { load });
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

/**
 * Everything; plain data comes back. `patience` is how many milliseconds other threads have to start; of so many cases of the suite as
 * `sample` says one is run.
 */
export async function runChecks({ threads, patience = 240_000, sample = 1 } = {}) {
  const start = performance.now();
  const engine = new CpuEngine(threads === undefined ? {} : { threads });
  await setEngine(engine);
  // Before the other threads are ready: with them the same bits must come out.
  const early = await product();
  await waitFor(() => engine.readyWorkers === engine.caps.parallelism - 1, patience);
  const { readyWorkers } = engine;
  let late = early;
  const shared = await chunksOfOthers(async (others) => {
    // On a busy machine another thread may come late: it is waited for. Where there is none, a few times show that.
    const most = readyWorkers > 0 ? Number.POSITIVE_INFINITY : 3;
    for (let i = 0; i < most && others() === 0 && late === early; i++) late = await product();
  });
  const losses = await train();
  const values = await goldenValues();
  const conformance = { passed: 0, skipped: 0, failures: [] };
  for (const filter of families) {
    const { passed, skipped, results } = await runConformance({ engine, filter, sample, ...values });
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

/**
 * Polygrad's part: measures cases on one engine and prints a line of JSON for each, as it goes.
 *
 *   node polygrad_work.mjs ENGINE < REQUEST
 *
 * The request is a line of JSON: `cases`, `options` of the engine, `store`: the folder where measured tiles are kept, `brief`: figures may mean nothing.
 */
import { createInterface } from 'node:readline';
import * as core from '@polygrad/core';
import { giveBack, kinds, pendingLimits } from './kinds.mjs';

const [, , name] = process.argv;
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

async function makeEngine(options, store) {
  if (name === 'cpu') return (await import('@polygrad/backend-cpu')).createCpuEngine();
  const tuning = { tuning: 'load', tuningStore: store };
  if (name === 'cuda') return (await import('@polygrad/backend-cuda')).createCudaEngine({ ...tuning, ...options });
  // Its figures would stand under a wrong name.
  if (options.float32MatmulPrecision !== undefined) throw new Error(`the engine ${name} does not multiply in TF32`);
  if (name === 'opencl') return (await import('@polygrad/backend-opencl')).createOpenClEngine(tuning);
  if (name === 'webgpu') {
    await import('@polygrad/backend-cpu');
    return (await import('@polygrad/backend-webgpu')).createWebGpuEngine();
  }
  throw new Error(`no engine ${name}`);
}

const now = () => performance.now() / 1000;

/** Seconds of a run: median and best of several samples, each long enough for the clock. */
async function measure(engine, store, brief, { run, waits, share = 1 }) {
  const sample = async (count) => {
    const start = now();
    for (let i = 0; i < count; i++) {
      const done = run();
      if (waits) await done;
    }
    await engine.idle();
    return (now() - start) / count;
  };
  // Compiling, and measuring of tiles, is no part of it.
  const cold = await sample(1);
  await tuned(engine, store, brief);
  await sample(2);
  let seconds = await sample(1);
  const count = Math.max(1, Math.min(1000, Math.ceil((brief ? 0.001 : 0.1) / seconds)));
  const samples = [];
  const end = now() + 2.5;
  for (let i = 0; i < (brief ? 2 : 7) && (i < 2 || now() < end); i++) {
    seconds = await sample(count);
    samples.push(seconds / share);
  }
  samples.sort((a, b) => a - b);
  return { median: samples[samples.length >> 1], best: samples[0], cold };
}

/** Measures tiles of what ran for the first time, and says what was found: the store on a card is worth as much as the figures. */
async function tuned(engine, store, brief) {
  await core.tune(engine, {
    store,
    budget: brief ? 0 : 400,
    onResult: ({ key, measured }) => say({ tuned: key, measured }),
  });
}

/** Kernels of a run by name, the longest first. */
async function profiled({ run }) {
  for (let i = 0; i < 4; i++) run();
  const { kernels, milliseconds, submits } = await core.profile(run);
  const byName = new Map();
  for (const { name: kernel, milliseconds: ms, flops, bytes } of kernels) {
    const sum = byName.get(kernel) ?? { kernel, runs: 0, ms: 0, flops: 0, bytes: 0 };
    byName.set(kernel, sum);
    sum.runs++;
    sum.ms += ms ?? 0;
    sum.flops += flops;
    sum.bytes += bytes;
  }
  return { milliseconds, submits, kernels: [...byName.values()].sort((a, b) => b.ms - a.ms) };
}

/** Each use by the clock, reading the loss. */
async function timed(uses) {
  const times = [];
  for (const use of uses) {
    const start = now();
    const loss = use();
    await loss.data();
    loss.dispose();
    times.push(now() - start);
  }
  times.sort((a, b) => a - b);
  return { median: times[times.length >> 1], best: times[0] };
}

async function work({ cases, options = {}, store: folder, brief }) {
  const store = core.diskStore(folder);
  const engine = await makeEngine(options, store);
  await core.setEngine(engine);
  if (name !== 'cpu') core.setPendingLimits(pendingLimits);
  say({ device: engine.device, missing: engine.library?.missing?.() });
  for (const one of cases) {
    let made;
    try {
      say({ begins: one.name });
      // A program of one size has kernels for that size. After the case before they would be for a class of sizes.
      core.setDynamicSizes(one.lengths === undefined ? 'never' : 'automatic');
      made = kinds[one.kind](one);
      if (one.kind === 'profile') {
        for (let i = 0; i < 2; i++) made.run();
        await engine.idle();
        await tuned(engine, store, brief);
        say({ name: one.name, profile: await profiled(made) });
      } else {
        // A class of sizes is known, measured, and planned anew.
        if (made.known !== undefined) {
          await timed(made.known);
          await tuned(engine, store, brief);
          await timed(made.known);
        }
        const found = made.uses === undefined ? await measure(engine, store, brief, made) : await timed(made.uses);
        // A figure of wrong numbers is none.
        if (made.check !== undefined && !(await made.check())) throw new Error('the numbers are wrong');
        say({ name: one.name, ...found });
      }
    } catch (error) {
      say({ name: one.name, failed: String(error?.message ?? error).split('\n')[0] });
      if (error?.fatal) break;
    }
    try {
      made?.dispose?.();
      giveBack();
    } catch {
      // Of an engine that is lost.
    }
  }
  if (engine.stats !== undefined) say({ stats: engine.stats, graphsMissing: engine.graphsMissing });
  engine.dispose();
}

for await (const line of createInterface({ input: process.stdin })) await work(JSON.parse(line));

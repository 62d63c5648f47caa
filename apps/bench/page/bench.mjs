/**
 * The page's side: all participants in one page and one run, taking turns within each round of each case, every operation waited for
 * by itself. What is measured and how it is checked is told to the command (main.mjs), which knows what is right.
 */
import { tools } from '../src/inputs.ts';
import { measureRound, warmUp } from '../src/sampling.ts';
import { countDuring, installCounters } from './counters.mjs';

const makers = {
  polygrad: () => import('../src/runners/polygrad.ts'),
  tfjs: () => import('./tfjs.mjs'),
  'jax-js': () => import('./jax.mjs'),
  onnxruntime: () => import('./onnx.mjs'),
};

/** Work whose first run takes longer is measured once. */
const onceMs = 8_000;

const messageOf = (error) => String(error?.message ?? error).split('\n')[0];

function within(milliseconds, what, work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${milliseconds / 1000} s`)), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** One participant and one case: checked results, what a run asks of the GPU, and how often it is worth repeating. */
async function prepareTurn(name, runner, work, pace) {
  const made = await runner.prepare(work);
  const prepared = { ...made, count: 1 };
  const probe = Array.from(await prepared.probe());
  const start = performance.now();
  await prepared.run(1);
  const ms = performance.now() - start;
  const once = ms > onceMs;
  if (!once) await warmUp(prepared, Math.min(pace.warmMs, 4 * ms));
  // After warm-up: a step as all later ones are.
  const counts = await countDuring(() => prepared.run(1));
  const rounds = once ? 1 : Math.max(1, Math.min(pace.rounds, Math.floor(pace.caseMs / ms)));
  return { name, prepared, probe, counts, rounds, samples: once ? [[ms * 1e6]] : [] };
}

/**
 * Runs cases.
 *
 * @param options `engine` cpu or webgpu, `threads`, `participants` by name, `cases`, `pace`, `versions` of the packages
 * @param tell called with who is there, and with each case as it is done
 */
export async function runBench({ engine, threads, participants, cases, pace, versions }, tell) {
  installCounters();
  globalThis.benchVersions = versions;
  const runners = new Map();
  for (const name of participants) {
    try {
      const starting = makers[name]().then((module) => module.createRunner({ engine, threads, folder: '', tools }));
      const runner = await within(60_000, 'starting', starting);
      runners.set(name, runner);
      await tell({ participant: name, version: runner.version, note: runner.note });
    } catch (error) {
      await tell({ participant: name, missing: messageOf(error) });
    }
  }
  for (const { id, work } of cases) {
    await tell({ begins: id });
    const turns = [];
    const absent = [];
    for (const [name, runner] of runners) {
      try {
        turns.push(await within(90_000, 'the first runs', prepareTurn(name, runner, work, pace)));
      } catch (error) {
        absent.push({ participant: name, reason: messageOf(error) });
      }
      await tell({ alive: name });
    }
    for (let round = 0; round < pace.rounds; round++) {
      for (const turn of turns) {
        if (turn.samples.length >= turn.rounds || turn.reason !== undefined) continue;
        try {
          turn.samples.push(await measureRound(turn.prepared, 1, pace.turnMs, pace.maxSamples));
        } catch (error) {
          turn.reason = messageOf(error);
        }
      }
      await tell({ alive: id });
    }
    for (const { name, prepared, reason } of turns) {
      prepared.dispose();
      if (reason !== undefined) absent.push({ participant: name, reason });
    }
    const entries = turns
      .filter(({ reason }) => reason === undefined)
      .map(({ name, probe, counts, samples, prepared }) => ({
        participant: name,
        probe,
        counts,
        rounds: samples,
        note: prepared.note,
      }));
    await tell({ case: id, entries, absent });
  }
}

/** What the page loads: the participants, and the turns they take (turns.mjs). */
import { tools } from '../src/work/tools.ts';
import { countDuring, installCounters } from './counters.mjs';
import { runTurns } from './turns.mjs';

const makers = {
  polygrad: () => import('../src/runners/polygrad.ts'),
  tfjs: () => import('./tfjs.mjs'),
  'jax-js': () => import('./jax.mjs'),
  onnxruntime: () => import('./onnx.mjs'),
  litert: () => import('./litert.mjs'),
};

/** Runs rows; a device that is lost meanwhile is told at once, whoever it belongs to. */
export async function runBench(wishes, tell) {
  installCounters((reason) => void tell({ lost: reason }));
  globalThis.benchVersions = wishes.versions;
  await runTurns(makers, { ...wishes, tools }, tell, countDuring);
}

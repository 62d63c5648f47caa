/**
 * What the page `cnn-webgpu-planned` does in a browser, with the file of plans that its server has, or another. The adapter may lack what the file asks for. The
 * report is judged by tooling/planned-webgpu.test.mjs.
 */
import { add, mul, setEngine, setLogger, stats, tensor } from '@polygrad/core/functions';
import { train, usePlanFile } from './pages/cnn-webgpu-planned.mjs';

/** Why there is no WebGPU here, or null. */
export async function missingWebGpu() {
  if (globalThis.navigator.gpu === undefined) return 'this browser has no navigator.gpu';
  return (await navigator.gpu.requestAdapter()) === null ? 'there is no adapter' : null;
}

/** Trains with a file of plans, or without where there is no path, and then computes what was not recorded, if it is asked to. With `only`: one step, its loss. */
export async function runPlanned({ path = '/webgpu.bin', profile, more = false, only = false } = {}) {
  const told = [];
  setLogger((text) => told.push(text));
  const start = performance.now();
  const file = path === null ? { plans: 0 } : await usePlanFile(fetch(path));
  const { device } = await setEngine('webgpu', profile === undefined ? {} : { profile });
  const [loss] = await train(1);
  const first = performance.now() - start;
  if (only) return [loss];
  const losses = await train();
  const { plansMade, plansLoaded } = stats();
  const report = { plans: file.plans, device, loss, losses, plansMade, plansLoaded, first, told };
  if (!more) return report;
  report.values = Array.from(await mul(add(tensor([1, 2, 3]), 1), 2.5).data());
  report.madeLater = stats().plansMade - plansMade;
  return report;
}

/** A page that has auto-detection choose between engines without compilers, and one file with plans for both. The report is judged by tooling/planned-webgpu.test.mjs. */
import '@polygrad/backend-cpu/planned';
import '@polygrad/backend-webgpu/planned';
import { autoDetectAndConfigureGpu } from '@polygrad/auto-detect';
import { setLogger, stats } from '@polygrad/core/functions';
import { usePlanFile } from '@polygrad/core/plans';
import { train } from './pages/cnn-step.mjs';

export async function runDetected(options) {
  const told = [];
  setLogger((text) => told.push(text));
  await usePlanFile(fetch('/both.bin'));
  const { engine, device } = await autoDetectAndConfigureGpu({ ...options, engineOptions: { cpu: { threads: 1 } } });
  const losses = await train();
  const { plansMade, plansLoaded } = stats();
  return { name: engine.name, device, losses, plansMade, plansLoaded, told };
}

/** The WebGPU engine with its compiler. planned-engine.ts has one that loads the compiler when a plan is missing. */
import type { Found } from './device/adapter.ts';
import { arithmeticOf } from './device/arithmetic.ts';
import { openDevice } from './device/device.ts';
import { WebGpuEngine } from './gpu-engine.ts';
import { kernelCode } from './kernel-code.ts';
import type { WebGpuEngineOptions } from './options.ts';

/** An engine on a device of the adapter. */
export async function open(found: Found, options: WebGpuEngineOptions): Promise<WebGpuEngine> {
  const gpu = await openDevice(found);
  return new WebGpuEngine(gpu, found, kernelCode, options, await arithmeticOf(gpu));
}

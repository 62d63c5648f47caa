/** The WebGPU engine with its compiler. planned-engine.ts has one that loads the compiler when a plan is missing. */
import type { Offered } from './device/adapter.ts';
import { arithmeticOf } from './device/arithmetic.ts';
import { openDevice } from './device/device.ts';
import { describe } from './device/naming.ts';
import { WebGpuEngine } from './gpu-engine.ts';
import { kernelCode } from './kernel-code.ts';
import { checkOptions, type WebGpuEngineOptions } from './options.ts';

export { describe } from './device/naming.ts';
export { checkOptions } from './options.ts';

/** An engine on a device of the adapter. */
export async function open(offered: Offered, options: WebGpuEngineOptions): Promise<WebGpuEngine> {
  checkOptions(options);
  const found = describe(offered);
  const gpu = await openDevice(found);
  return new WebGpuEngine(gpu, found, kernelCode, options, await arithmeticOf(gpu));
}

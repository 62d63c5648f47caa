/** Making an engine: finds an adapter, and only then loads what the engine is made of. */
import { EngineMissingError } from '@polygrad/core/engine';
import { findAdapter } from './device/adapter.ts';
import { checkOptions, type WebGpuEngineOptions } from './options.ts';
import type { WebGpuEngine } from './public.ts';

/**
 * Makes an engine on a WebGPU adapter.
 *
 * @param options which adapter, limits, and who is told of compilation
 * @throws EngineMissingError where there is no WebGPU or no adapter
 *
 * @example
 * import { setEngine, tensor } from '@polygrad/core';
 * import { createWebGpuEngine } from '@polygrad/backend-webgpu';
 * const engine = await createWebGpuEngine().catch(() => null);
 * if (engine !== null) {
 *   await setEngine(engine);
 *   console.log(await tensor([1, 2]).add(1).array()); //=> [ 2, 3 ]
 *   engine.dispose();
 * }
 */
export async function createWebGpuEngine(options: WebGpuEngineOptions = {}): Promise<WebGpuEngine> {
  checkOptions(options);
  const found = await findAdapter(options);
  if (typeof found === 'string') throw new EngineMissingError('webgpu', `${found}; use another engine, such as 'cpu'`);
  // Only now: visitors without WebGPU never load the engine.
  const engine = await import('./engine.ts');
  return engine.WebGpuEngine.open(found, options);
}

/** Making an engine with its compiler, and how the registry of core sees that. */
import type { BackendProvider, Probe } from '@polygrad/core/engine';
import type { WebGpuEngineOptions } from './options.ts';
import type { WebGpuEngine } from './public.ts';

/** What finds an adapter. */
const loadStart = (): Promise<typeof import('./start.ts')> => import('./start.ts');

const load = (): Promise<typeof import('./engine.ts')> => import('./engine.ts');

/**
 * Makes an engine on a WebGPU adapter.
 *
 * @param options which adapter, limits, and a callback for compilation
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
  const { startEngine } = await loadStart();
  return startEngine(options, load);
}

/** The 'webgpu' backend. Options: those of `createWebGpuEngine`. */
export const webgpuProvider: BackendProvider = {
  name: 'webgpu',
  async probe(): Promise<Probe> {
    const { probeWebGpu } = await loadStart();
    return probeWebGpu(load);
  },
  load: loadStart,
  create: (options) => createWebGpuEngine(options as WebGpuEngineOptions | undefined),
};

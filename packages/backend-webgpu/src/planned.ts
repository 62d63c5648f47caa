/**
 * Entry point @polygrad/backend-webgpu/planned: importing it registers the backend 'webgpu' with an engine that has no compiler until a plan is missing.
 *
 * For pages that bring their plans (`usePlanFile` of `@polygrad/core/plans`), and builds that record them: visitors load what runs plans, not what makes them.
 * Where no file in use fits the adapter, the engine is as the one of `@polygrad/backend-webgpu`.
 */
import { type BackendProvider, checkFields, oneOf, registerBackend } from '@polygrad/core/engine';
import type { PlannedWebGpuOptions } from './options.ts';
import type { WebGpuEngine } from './public.ts';
import { probeWebGpu, startEngine } from './start.ts';

export type { PlannedWebGpuOptions, WebGpuProfile } from './options.ts';

const planned = (): Promise<typeof import('./planned-engine.ts')> => import('./planned-engine.ts');

/**
 * Loads the compiler now. Resolves when it is there.
 *
 * @throws UnsupportedError if it cannot be loaded
 * @example
 * import { loadWebGpuCompiler } from '@polygrad/backend-webgpu/planned';
 * await loadWebGpuCompiler();
 */
export async function loadWebGpuCompiler(): Promise<void> {
  const { loadWebGpuCompiler: load } = await planned();
  return load();
}

/**
 * Makes an engine on a WebGPU adapter that loads its compiler when a plan is missing. Of the profiles that files in use have plans for (`usePlanFile`), it takes
 * the best one that the adapter has. Where there is none, the engine has its compiler, and all that the adapter offers.
 *
 * @throws EngineMissingError where there is no WebGPU, no adapter, or none with the `profile` of the options; ArgumentError for wrong options
 * @example
 * import { createPlannedWebGpuEngine } from '@polygrad/backend-webgpu/planned';
 * import { setEngine, tensor } from '@polygrad/core';
 * import { recordPlans } from '@polygrad/core/plans';
 * const engine = await createPlannedWebGpuEngine({ profile: 'common' }).catch(() => null);
 * if (engine !== null) {
 *   await setEngine(engine);
 *   const recording = recordPlans();
 *   await tensor([1, 2]).add(1).data();
 *   const bytes = await recording.file(); // a build writes it beside the page
 *   recording.stop();
 *   engine.dispose();
 * }
 */
export async function createPlannedWebGpuEngine(options: PlannedWebGpuOptions = {}): Promise<WebGpuEngine> {
  const { profile, ...others } = options;
  checkFields(
    'createPlannedWebGpuEngine',
    { profile },
    { profile: oneOf('common', 'f16', 'subgroups', 'f16-subgroups') },
  );
  // What is no object is refused there.
  return startEngine(Object(options) === options ? others : options, async () => {
    const { openPlanned, describe, checkOptions } = await planned();
    return { describe, checkOptions, open: (offered, given) => openPlanned(offered, given, profile) };
  });
}

/** The 'webgpu' backend, whose engine loads its compiler when a plan is missing. Options: those of `createPlannedWebGpuEngine`. */
export const plannedWebGpuProvider: BackendProvider = {
  name: 'webgpu',
  probe: () => probeWebGpu(planned),
  create: (options) => createPlannedWebGpuEngine(options as PlannedWebGpuOptions | undefined),
};

registerBackend(plannedWebGpuProvider);

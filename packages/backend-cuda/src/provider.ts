/** How the registry of core sees this package: a name, a probe, a way to make an engine. */
import type { BackendProvider, IEngine, Probe } from '@polygrad/core/engine';
import { versionText } from './addon.ts';
import { chooseDevice } from './devices.ts';
import { createCudaEngine } from './engine.ts';
import { type CudaEngineOptions, wishedDevice } from './setup.ts';

/** The 'cuda' backend. Options: those of `createCudaEngine`. */
export const cudaProvider: BackendProvider = {
  name: 'cuda',
  async probe(): Promise<Probe> {
    try {
      const { addon, device, simulated } = chooseDevice(wishedDevice({}));
      const { score, reason, name, memoryBytes } = device;
      const driver = `for CUDA ${versionText(addon.version())}`;
      return { score, reason, device: name, driver, memoryBytes, ...(simulated && { software: true }) };
    } catch (error) {
      return { score: 0, reason: error instanceof Error ? error.message : String(error), device: 'none' };
    }
  },
  create(options?: Readonly<Record<string, unknown>>): IEngine {
    return createCudaEngine(options as CudaEngineOptions | undefined);
  },
};

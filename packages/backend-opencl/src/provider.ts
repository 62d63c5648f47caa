/** How the registry of core sees this package: a name, a probe, a way to make an engine. */
import type { BackendProvider, IEngine, Probe } from '@polygrad/core/engine';
import { chooseDevice } from './devices.ts';
import { createOpenClEngine } from './engine.ts';
import { type OpenClEngineOptions, wishedDevice } from './setup.ts';

/** The 'opencl' backend. Options: those of `createOpenClEngine`. */
export const openClProvider: BackendProvider = {
  name: 'opencl',
  async probe(): Promise<Probe> {
    try {
      const { device, record } = chooseDevice(wishedDevice({}));
      const { platformVersion, version, driver, computeUnits } = record;
      const found = {
        score: device.score,
        reason: `${device.reason} (${device.platform})`,
        device: device.name,
        driver: `${driver}, ${version}`,
        memoryBytes: device.memoryBytes,
      };
      if (device.type !== 'cpu') return found;
      const processor = [device.platform, platformVersion, device.name, version, driver, `${computeUnits} threads`];
      return { ...found, processor: processor.join(', ') };
    } catch (error) {
      return { score: 0, reason: error instanceof Error ? error.message : String(error), device: 'none' };
    }
  },
  create(options?: Readonly<Record<string, unknown>>): IEngine {
    return createOpenClEngine(options as OpenClEngineOptions | undefined);
  },
};

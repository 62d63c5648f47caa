/**
 * How the registry of core sees this package: a name, a probe, a way to make an engine.
 */
import type { BackendProvider, IEngine, Probe } from '@polygrad/core/engine';
import { createCpuEngine } from './engine.ts';
import type { CpuEngineOptions } from './options.ts';

/** The 'cpu' backend. Options: those of `createCpuEngine`. */
export const cpuProvider: BackendProvider = {
  name: 'cpu',
  async probe(): Promise<Probe> {
    const { probeCpu } = await import('./probe.ts');
    return probeCpu();
  },
  create(options?: Readonly<Record<string, unknown>>): IEngine {
    return createCpuEngine(options as CpuEngineOptions | undefined);
  },
};

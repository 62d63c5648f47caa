/**
 * How the registry of core sees this package: a name, a probe, a way to make an engine.
 */
import type { BackendProvider, IEngine, Probe } from '@polygrad/core/engine';
import { createCpuEngine } from './engine.ts';
import { detectFeatures } from './features.ts';
import type { CpuEngineOptions } from './setup.ts';
import { canShareMemory, coreCount, processorName } from './threads/host.ts';

/** The 'cpu' backend. Options: those of `createCpuEngine`. */
export const cpuProvider: BackendProvider = {
  name: 'cpu',
  async probe(): Promise<Probe> {
    if (typeof WebAssembly === 'undefined')
      return { score: 0, reason: 'WebAssembly is not available here', device: 'none' };
    const { fusedMadd } = detectFeatures();
    const threads = canShareMemory() ? Math.min(coreCount(), 8) : 1;
    const reason = `WebAssembly SIMD${fusedMadd ? ' with fused multiply-add' : ''}, ${threads === 1 ? 'one thread' : `${threads} threads`}`;
    return { score: 10, reason, device: processorName() };
  },
  create(options?: Readonly<Record<string, unknown>>): IEngine {
    return createCpuEngine(options as CpuEngineOptions | undefined);
  },
};

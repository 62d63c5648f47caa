/**
 * Entry point @polygrad/backend-cpu/late: importing it registers the backend 'cpu' without its engine, which is loaded when one is made.
 *
 * For pages that have the CPU engine for visitors without WebGPU, and as the last resort: the others never load it. An engine that is
 * loaded cannot be there at once. So nothing is computed before `await setEngine('cpu')`, or before another engine is set. A dtype that only
 * this engine holds waits for it.
 */
import { type BackendProvider, type IEngine, type Probe, registerBackend } from '@polygrad/core/engine';
import type { CpuEngineOptions } from './options.ts';

/** The 'cpu' backend, whose engine is loaded when it is made. Options: those of `createCpuEngine`. */
export const lateCpuProvider: BackendProvider = {
  name: 'cpu',
  late: true,
  async probe(): Promise<Probe> {
    const { probeCpu } = await import('./probe.ts');
    return probeCpu();
  },
  async create(options?: Readonly<Record<string, unknown>>): Promise<IEngine> {
    const { createCpuEngine } = await import('./engine.ts');
    return createCpuEngine(options as CpuEngineOptions | undefined);
  },
};

registerBackend(lateCpuProvider);

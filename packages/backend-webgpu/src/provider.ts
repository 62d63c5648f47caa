/** How the registry of core sees this package: a name, a probe, a way to make an engine. */
import type { BackendProvider, IEngine, Probe } from '@polygrad/core/engine';
import { findAdapter } from './device/adapter.ts';
import { createWebGpuEngine } from './create.ts';
import type { WebGpuEngineOptions } from './options.ts';

/** Above the CPU engine's 10; below it for software adapters, which that engine beats on the same processor. */
const hardwareScore = 50;
const softwareScore = 2;

/** The 'webgpu' backend. Options: those of `createWebGpuEngine`. */
export const webgpuProvider: BackendProvider = {
  name: 'webgpu',
  async probe(): Promise<Probe> {
    const found = await findAdapter({}).catch((error: unknown) => String(error));
    if (typeof found === 'string') return { score: 0, reason: found, device: 'none' };
    const { name, software } = found;
    if (software) return { score: softwareScore, reason: 'slower than the CPU engine', device: name, software: true };
    return { score: hardwareScore, reason: 'a GPU', device: name };
  },
  create(options?: Readonly<Record<string, unknown>>): Promise<IEngine> {
    return createWebGpuEngine(options as WebGpuEngineOptions | undefined);
  },
};

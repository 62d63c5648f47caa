/** Finding an adapter, and only then loading what an engine is made of: which code that is, the caller says. */
import { EngineMissingError, type Probe } from '@polygrad/core/engine';
import { findAdapter, type Found } from './device/adapter.ts';
import { checkOptions, type WebGpuEngineOptions } from './options.ts';
import type { WebGpuEngine } from './public.ts';

/** What opens an engine on an adapter. */
interface Opener {
  readonly open: (found: Found, options: WebGpuEngineOptions) => Promise<WebGpuEngine>;
}

/** Makes an engine with the code that `load` gives. Throws EngineMissingError where there is no WebGPU or no adapter. */
export async function startEngine(options: WebGpuEngineOptions, load: () => Promise<Opener>): Promise<WebGpuEngine> {
  checkOptions(options);
  const found = await findAdapter(options);
  if (typeof found === 'string') throw new EngineMissingError('webgpu', `${found}; use another engine, such as 'cpu'`);
  // Only now: visitors without WebGPU never load the engine.
  return (await load()).open(found, options);
}

/** Above the CPU engine's 10; below it for software adapters, which that engine beats on the same processor. */
const hardwareScore = 50;
const softwareScore = 2;

/** What there is of WebGPU, for the registry. */
export async function probeWebGpu(): Promise<Probe> {
  const found = await findAdapter({}).catch((error: unknown) => String(error));
  if (typeof found === 'string') return { score: 0, reason: found, device: 'none' };
  const { name, software } = found;
  if (software) return { score: softwareScore, reason: 'slower than the CPU engine', device: name, software: true };
  return { score: hardwareScore, reason: 'a GPU', device: name };
}

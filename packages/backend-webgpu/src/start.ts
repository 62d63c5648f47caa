/** Finding an adapter, and only then loading what an engine is made of: which code that is, the caller says. */
import { EngineMissingError, type Probe } from '@polygrad/core/engine';
import { findAdapter, type Offered } from './device/adapter.ts';
import type { describe } from './device/naming.ts';
import type { checkOptions, WebGpuEngineOptions } from './options.ts';
import type { WebGpuEngine } from './public.ts';

/** The code of an engine. It checks options too: the page has no other use of what does. */
interface EngineCode {
  readonly describe: typeof describe;
  readonly checkOptions: typeof checkOptions;
}

/** What opens an engine on an adapter. */
interface Opener extends EngineCode {
  readonly open: (offered: Offered, options: WebGpuEngineOptions) => Promise<WebGpuEngine>;
}

/**
 * Makes an engine with the code that `load` gives. Throws EngineMissingError where there is no WebGPU or no adapter, whatever the options, and
 * ArgumentError for wrong ones.
 */
export async function startEngine(options: WebGpuEngineOptions, load: () => Promise<Opener>): Promise<WebGpuEngine> {
  let offered: Offered | string;
  try {
    offered = await findAdapter(options);
  } catch (error) {
    // Browsers refuse wrong options with less to say.
    (await load()).checkOptions(options);
    throw error;
  }
  if (typeof offered === 'string')
    throw new EngineMissingError('webgpu', `${offered}; use another engine, such as 'cpu'`);
  // Only now: visitors without WebGPU never load the engine.
  return (await load()).open(offered, options);
}

/** Above the CPU engine's 10; below it for software adapters, which that engine beats on the same processor. */
const hardwareScore = 50;
const softwareScore = 2;

/** What there is of WebGPU, for the registry. An adapter is named by the engine's code, which its visitors need next. */
export async function probeWebGpu(load: () => Promise<EngineCode>): Promise<Probe> {
  const offered = await findAdapter({}).catch((error: unknown) => String(error));
  if (typeof offered === 'string') return { score: 0, reason: offered, device: 'none' };
  const { name, software } = (await load()).describe(offered);
  if (software) return { score: softwareScore, reason: 'slower than the CPU engine', device: name, software: true };
  return { score: hardwareScore, reason: 'a GPU', device: name };
}

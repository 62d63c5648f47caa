/**
 * Finding an adapter. Its name, and whether it is hardware (naming.ts), and the device asked of it (device.ts) come with the engine.
 */
import { host } from '#host';
import type { WebGpuEngineOptions } from '../options.ts';

/** An adapter, and the entry of WebGPU that gave it; a text for an adapter of the options where there is none. */
export interface Offered {
  readonly adapter: GPUAdapter;
  readonly gpu: GPU | string;
}

/** The adapter the options ask for, or why there is none. */
export async function findAdapter(options: WebGpuEngineOptions): Promise<Offered | string> {
  const gpu = await host.gpu();
  if (options.adapter !== undefined) return { adapter: options.adapter, gpu };
  if (typeof gpu === 'string') return gpu;
  const wanted: GPURequestAdapterOptions = { powerPreference: options.powerPreference ?? 'high-performance' };
  if (options.forceFallbackAdapter === true) wanted.forceFallbackAdapter = true;
  const adapter = await host.asking(() => gpu.requestAdapter(wanted));
  if (adapter !== null) return { adapter, gpu };
  return options.forceFallbackAdapter === true
    ? 'there is no software adapter'
    : 'WebGPU is there, but offers no adapter: no GPU, no driver for it (Vulkan, Metal or Direct3D 12), or it is blocked';
}

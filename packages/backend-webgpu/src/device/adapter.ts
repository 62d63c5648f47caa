/**
 * Adapters: finding one, naming it, telling hardware from software. The device asked of it is in device.ts, which comes with the engine.
 */
import type { EngineCaps } from '@polygrad/core/engine';
import { host } from '#host';
import type { WebGpuEngineOptions } from '../options.ts';

/** An adapter, and what a person wants to know of it. */
export interface Found {
  readonly adapter: GPUAdapter;
  /** Vendor, architecture and description, as far as the browser tells them. */
  readonly name: string;
  /** True where a processor pretends to be a GPU. */
  readonly software: boolean;
  /** Sizes of its subgroups; undefined if it has none, or does not tell. */
  readonly subgroups?: EngineCaps['subgroups'];
}

/** The adapter the options ask for, or why there is none. */
export async function findAdapter(options: WebGpuEngineOptions): Promise<Found | string> {
  const gpu = await host.gpu();
  if (options.adapter !== undefined) return describe(options.adapter, gpu);
  if (typeof gpu === 'string') return gpu;
  const wanted: GPURequestAdapterOptions = { powerPreference: options.powerPreference ?? 'high-performance' };
  if (options.forceFallbackAdapter === true) wanted.forceFallbackAdapter = true;
  const adapter = await host.asking(() => gpu.requestAdapter(wanted));
  if (adapter !== null) return describe(adapter, gpu);
  return options.forceFallbackAdapter === true
    ? 'there is no software adapter'
    : 'WebGPU is there, but offers no adapter: no GPU, no driver for it (Vulkan, Metal or Direct3D 12), or it is blocked';
}

const softwareNames = /swiftshader|llvmpipe|lavapipe|basic render|\bwarp\b|\bsoftware\b/i;

function describe(adapter: GPUAdapter, gpu: GPU | string): Found {
  const { info } = adapter;
  const { vendor, architecture, device, description } = info;
  const words = [description || device, [vendor, architecture].filter(Boolean).join(' ')].filter(Boolean);
  const older = (adapter as { isFallbackAdapter?: boolean }).isFallbackAdapter === true;
  const told = info.isFallbackAdapter === true || older;
  const software = told || softwareNames.test(`${vendor} ${architecture} ${device} ${description}`);
  const name = words.length === 2 ? `${words[0]} (${words[1]})` : (words[0] ?? 'unnamed adapter');
  return { adapter, name: software ? `${name}, software` : name, software, subgroups: subgroupsOf(adapter, gpu) };
}

function subgroupsOf({ features, info }: GPUAdapter, gpu: GPU | string): EngineCaps['subgroups'] {
  const { subgroupMinSize: least, subgroupMaxSize: most } = info;
  if (!features.has('subgroups') || !(least > 1 && most >= least)) return undefined;
  return { least, most, numbered: typeof gpu !== 'string' && gpu.wgslLanguageFeatures?.has('subgroup_id') };
}

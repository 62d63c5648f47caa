/** Adapters: their names, telling hardware from software, and what they tell of subgroups. */
import type { EngineCaps } from '@polygrad/core/engine';
import type { Offered } from './adapter.ts';

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

const softwareNames = /swiftshader|llvmpipe|lavapipe|basic render|\bwarp\b|\bsoftware\b/i;

/** What there is to say of an adapter. */
export function describe({ adapter, gpu }: Offered): Found {
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

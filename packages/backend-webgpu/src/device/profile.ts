/**
 * Profiles: capabilities that many adapters have, for plans that are recorded on one of them and used on others.
 *
 * Limits are those that every adapter of WebGPU grants (section 3.6.2 of its specification). Arithmetic is taken for what holds on all: kernels keep their
 * rounding from compilers that regroup sums, and expect denormal numbers to be taken for 0. Tiles are those that shapes ask for; none is measured.
 */
import type { EngineCaps } from '@polygrad/core/engine';
import type { WebGpuEngineOptions, WebGpuProfile } from '../options.ts';
import type { Found } from './naming.ts';

/** All profiles, the best first. */
export const profiles: readonly WebGpuProfile[] = ['f16-subgroups', 'f16', 'subgroups', 'common'];

/** Options that say what a profile says. */
export const decided: readonly (keyof WebGpuEngineOptions)[] = ['maxBindings', 'tuning', 'subgroups', 'reassociates'];

/** The sizes that subgroups of WebGPU may have. */
const sizes = { least: 4, most: 128, numbered: true } as const;

/** True if an adapter has what a profile asks for. */
export function hasProfile(profile: WebGpuProfile, { adapter, subgroups }: Found): boolean {
  const [half, groups] = [profile.startsWith('f16'), profile.endsWith('subgroups')];
  const isFit = subgroups?.numbered === true && subgroups.least >= sizes.least && subgroups.most <= sizes.most;
  return (!half || adapter.features.has('shader-f16')) && (!groups || isFit);
}

/** What is the same for all devices with a profile: all but the sizes of buffers, which are checked when a plan is read. */
export function profileCaps(profile: WebGpuProfile): Partial<EngineCaps> {
  const dtypes: EngineCaps['dtypes'] = new Set([
    ...(['float32', 'int32', 'uint32', 'bool'] as const),
    ...(profile.startsWith('f16') ? (['float16'] as const) : []),
  ]);
  return {
    dtypes,
    computes: dtypes,
    sharedBytes: 16384,
    maxGroup: 256,
    maxBindings: 8,
    bindAlign: 256,
    subgroups: profile.endsWith('subgroups') ? sizes : undefined,
    sharedIsMemory: false,
    flushesDenormals: true,
  };
}

/** How an engine's tiles are tuned: what its options say, or the default store. */
import { defaultStore, type EngineTuning } from '@polygrad/core/engine';
import type { WebGpuEngineOptions } from '../options.ts';

/** How the engine's tiles are tuned; undefined: they are not, unless `tune` is called. */
export function tuningOf({ tuning }: WebGpuEngineOptions, software: boolean): EngineTuning | undefined {
  if (typeof tuning === 'object') return tuning;
  return (tuning ?? !software) ? { store: defaultStore(), automatic: true } : undefined;
}

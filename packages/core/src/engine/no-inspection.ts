/** The import `#inspection` in bundles for browsers: objects are left as they are. */
import type { CompiledKernel, EngineCaps, IEngine, Logger } from './engine.ts';

/*@__NO_SIDE_EFFECTS__*/
export function showEngine<T extends IEngine>(target: T, _name?: string): T {
  return target;
}

/*@__NO_SIDE_EFFECTS__*/
export function showCaps(caps: EngineCaps): EngineCaps {
  return caps;
}

/*@__NO_SIDE_EFFECTS__*/
export function showKernel<T extends CompiledKernel>(target: T, _name?: string): T {
  return target;
}

export const usualLogger: Logger | null = null;

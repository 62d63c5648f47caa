/**
 * What bundles for browsers have in the place of files that only Node needs: the imports `#inspection`, `#files` and `#help`. Objects are left as they are,
 * there are no files, and no help.
 */
import type { CompiledKernel, EngineCaps, IEngine, Logger, TuningStore } from './engine.ts';

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

export function fileStore(_folder?: string): TuningStore | null {
  return null;
}

export function putHelp(_prototype: object): void {}

export function checkCount(_name: string, _operation: unknown, _rest: readonly unknown[]): void {}

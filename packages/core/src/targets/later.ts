/** What an engine has in the place of a lowering that is still to be loaded: plans that were brought along need none. */
import type { Lowering } from '../engine/engine.ts';
import { KernelCache } from '../planner/lowering/kernel-cache.ts';

/**
 * The lowering of an engine that may still have to load it. `get` gives it, or throws an UnsupportedError that says when to try again (`until`). Assign the
 * lowering to this one when it is there: not every part of it can be asked for.
 *
 * @example
 * import { laterLowering } from '@polygrad/core/engine/planned';
 * import { vectorLowering } from '@polygrad/core/engine/vectors';
 * const lowering = laterLowering(() => vectorLowering);
 * console.log(lowering.sizes, lowering.columns); //=> true undefined
 * Object.assign(lowering, vectorLowering);
 * console.log(typeof lowering.columns); //=> function
 */
export function laterLowering(get: () => Lowering): Lowering {
  return {
    sizes: true,
    planner: {
      makePlan: (...args) => get().planner.makePlan(...args),
      kernelsOf: (engine) => new KernelCache(engine),
    },
    legalize: (program, caps) => get().legalize!(program, caps),
    shape: (...args) => get().shape(...args),
    contraction: (...args) => get().contraction(...args),
    ways: (...args) => get().ways(...args),
  };
}

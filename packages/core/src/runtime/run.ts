/**
 * One run: the plan of the nodes asked for, found or made, and executed on one engine.
 */
import { noticed } from '../engine/recovery.ts';
import type { Node } from '../graph/node.ts';
import { Cone, type ConeOptions } from '../planner/capture/cone.ts';
import type { EngineState } from './engine-state.ts';
import { execute } from './execute.ts';
import { makePlan, type Plan } from '../planner/plan.ts';

/** Kernels kept per engine: compiled code takes tens of kilobytes. */
const kernelLimit = 4096;

/** A reader waits for kernels so many times: compiling that fails for want of memory begins anew, and a run tells of it. */
export const mostWaits = 3;

/**
 * What a run waits for rather than going on at once: nothing, the device's word on memory that it needs anew, or that and kernels that are
 * being compiled.
 */
export type Patience = 'none' | 'memory' | 'kernels';

const cone = new Cone();

/**
 * Realises the nodes on one engine. False, with nothing done, where that engine lacks a dtype or data on the way: then
 * realise.ts decides.
 *
 * A run that is put off returns a promise of when to try again.
 */
export function run(
  state: EngineState,
  wanted: readonly Node[],
  options: ConeOptions,
  patience: Patience = 'none',
): boolean | Promise<void> {
  try {
    if (!cone.collect(wanted, options)) return false;
    const plan = planOf(state);
    const { engine } = state;
    if (patience === 'kernels' && engine.compiling !== undefined) {
      const compiled = engine.compiling(plan.dispatches.map(({ kernel }) => kernel));
      if (compiled !== null) return compiled;
    }
    const unsure = execute(plan, cone, state.pool, patience !== 'none');
    if (unsure !== null) return unsure;
    state.flushes++;
    state.kernels += plan.dispatches.length;
    state.inFlight++;
    state.pool.age();
    return true;
  } catch (error) {
    throw noticed(state.engine, error);
  } finally {
    cone.clear();
  }
}

/** Makes the plan that `run` would run, if one engine suffices. */
export function prepare(state: EngineState, wanted: readonly Node[], options: ConeOptions): void {
  try {
    if (cone.collect(wanted, options)) planOf(state);
  } finally {
    cone.clear();
  }
}

/** The plan of what the cone holds. */
function planOf(state: EngineState): Plan {
  const { hash, key } = cone;
  let plan = state.plans.find(hash, key);
  if (plan !== undefined) {
    state.planHits++;
    return plan;
  }
  state.planMisses++;
  plan = makePlan(cone, {
    engine: state.engine,
    kernels: state.kernelCache,
    elementBytes: state.elementBytes,
  });
  state.plans.add(hash, key, plan);
  state.plans.trim(() => state.kernelCache.size > kernelLimit);
  return plan;
}

/**
 * One run: the plan of the nodes asked for, found or made, and executed on one engine.
 */
import type { UnsupportedError } from '../engine/errors.ts';
import { noticed } from '../engine/recovery.ts';
import type { Node } from '../graph/node.ts';
import { PolygradError } from '../shape/errors.ts';
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

/** What readers that cannot wait are told, by what there is to wait for. */
const missing = new WeakMap<Promise<void>, UnsupportedError>();

/** The error for a reader that would have to wait for code, or undefined where it is something else that is on its way. */
export function missingCode(arrival: Promise<void>): UnsupportedError | undefined {
  return missing.get(arrival);
}

/** When to try again, where an engine lacks code that is on its way. Throws any other error. */
function codeOnItsWay(error: unknown, { engine }: EngineState): Promise<void> {
  // The engine may know another copy of this package.
  const { until } = (error instanceof PolygradError ? error : {}) as Partial<UnsupportedError>;
  if (until === undefined) throw noticed(engine, error);
  missing.set(until, error as UnsupportedError);
  return until;
}

/**
 * Realises the nodes on one engine. False, with nothing done, where that engine lacks a dtype or data on the way: then
 * realise.ts decides.
 *
 * A run that is put off, or lacks code that is loaded when first used, returns a promise of when to try again.
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
    return codeOnItsWay(error, state);
  } finally {
    cone.clear();
  }
}

/** Makes the plan that `run` would run, if one engine suffices. Returns what to wait for where code for it is on its way. */
export function prepare(state: EngineState, wanted: readonly Node[], options: ConeOptions): Promise<void> | null {
  try {
    if (cone.collect(wanted, options)) planOf(state);
    return null;
  } catch (error) {
    return codeOnItsWay(error, state);
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

/**
 * Plans ahead of a run: made for nodes that are to be computed later, or told to families, which then expect another size. Nothing is computed, and nodes
 * stay as they are.
 */
import type { Node } from '../graph/node.ts';
import type { CaptureOptions } from '../planner/capture/captured-graph.ts';
import { newFamilies } from '#families';
import { codeOnItsWay, loops, planOf, runs } from './run.ts';
import type { EngineState } from './state.ts';

/** Makes the plan that `run` would run, if one engine suffices. Returns a promise if code for it is being loaded. */
export function prepare(state: EngineState, wanted: readonly Node[], options: CaptureOptions): Promise<void> | null {
  const { captured } = runs;
  try {
    if (captured.collect(wanted, options)) {
      if (captured.key.looped) return loops!(state, wanted, options) as Promise<void> | null;
      planOf(state, captured);
    }
    return null;
  } catch (error) {
    return codeOnItsWay(error, state, []);
  } finally {
    captured.clear();
  }
}

/** Tells families of the nodes' form, which is to run later (`PlanFamilies.announce`). */
export function announceTo(state: EngineState, wanted: readonly Node[], options: CaptureOptions): void {
  const { captured } = runs;
  try {
    if (!captured.collect(wanted, options) || captured.key.looped || state.plans.find(captured.key) !== undefined)
      return;
    state.families ??= newFamilies();
    state.families?.announce(captured);
  } finally {
    captured.clear();
  }
}

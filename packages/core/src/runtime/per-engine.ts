/** What the runtime keeps of each engine from run to run: types alone. run.ts makes it, and what uses an engine counts in it. */
import type { IEngine } from '../engine/engine.ts';
import type { BufferPool } from '../engine/pool.ts';
import type { PlanCache } from '../planner/capture/cache.ts';
import type { ConeOptions } from '../planner/capture/cone.ts';
import type { PlanFamilies } from '../planner/families/families.ts';
import type { KernelCache } from '../planner/lowering/kernel-cache.ts';
import type { Plan } from '../planner/plan.ts';

/** Everything kept for one engine. */
export interface EngineState {
  readonly engine: IEngine;
  readonly pool: BufferPool;
  readonly plans: PlanCache<Plan>;
  readonly kernelCache: KernelCache;
  /** Plans for classes of sizes; null while there are none. */
  families: PlanFamilies | null;
  readonly elementBytes: readonly number[];
  readonly global: ConeOptions;
  readonly partial: ConeOptions;
  flushes: number;
  /** Of the flushes, those that the device is known to have finished (devices.ts). */
  finished: number;
  planHits: number;
  planMisses: number;
  /** Plans made, for one size or a class of sizes, and plans that an earlier process has made. */
  madePlans: number;
  keptPlans: number;
  /** Milliseconds that making plans has taken, compiling included where the engine compiles at once. */
  planning: number;
  kernels: number;
  /** Calls of compiled functions that ran a recording again, and recordings that are held (replay/). */
  replays?: number;
  recordings?: number;
  /** Another object each time that all plans are forgotten. */
  forgotten?: object;
  /** Submissions, and copies from other engines, since the device was last known to be idle. */
  inFlight: number;
  idling: Promise<void> | null;
}

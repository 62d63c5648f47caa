/** What the runtime keeps for each engine between runs: types only. run.ts makes it, and users of an engine update its counts. */
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
  /** How many flushes the device is known to have finished (devices.ts). */
  finished: number;
  planHits: number;
  planMisses: number;
  /** Plans made, for one size or for a class of sizes, and plans loaded that an earlier process made. */
  madePlans: number;
  keptPlans: number;
  /** Milliseconds spent on making plans, including compiling if the engine compiles at once. */
  planning: number;
  kernels: number;
  /** Calls of compiled functions that replayed a recording, and recordings held (replay/). */
  replays?: number;
  recordings?: number;
  /** A new object each time that all plans are forgotten. */
  forgotten?: object;
  /** Submissions, and copies from other engines, since the device was last known to be idle. */
  inFlight: number;
  idling: Promise<void> | null;
}

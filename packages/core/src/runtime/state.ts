/** What the runtime keeps between runs: types only. run.ts makes the state of an engine, and users of an engine update its counts; placement/ has the placer. */
import type { IEngine } from '../engine/engine.ts';
import type { BufferPool } from '../engine/pool.ts';
import type { Node } from '../graph/node.ts';
import type { PlanCache } from '../planner/capture/cache.ts';
import type { CapturedGraph, CaptureOptions } from '../planner/capture/captured-graph.ts';
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
  readonly global: CaptureOptions;
  readonly partial: CaptureOptions;
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

/**
 * Decides which engine computes what, where that is not simply the current one (placement/). An `order` has sources before
 * users, and `index` is a node's position in it.
 */
export interface Placer {
  /** The value of `Plan.stays` for plans that need no decision: work that no reader waits for runs on the current engine. */
  readonly stays: object;
  /** True if this engine computes the whole captured graph; otherwise multi-engine.ts cuts it. `plan` is undefined if it must be made first. */
  isHere(
    state: EngineState,
    captured: CapturedGraph,
    wanted: readonly Node[],
    told: boolean,
    plan: Plan | undefined,
  ): boolean;
  /** True once an entire flush was computed on another engine. */
  readonly isAway: boolean;
  /** The other engine that computed all of such a flush before, which is tried first; null for the current one. */
  likely(wanted: readonly Node[]): EngineState | null;
  /** Notes the engine on which all of a flush was computed; null: the likely engine could not. */
  learn(wanted: readonly Node[], state: EngineState | null): void;
  /** Engines other than the current one that may compute an entire flush. */
  others(): readonly EngineState[];
  /** Decides the engine of each unrealised node. */
  assign(
    order: readonly Node[],
    wanted: readonly Node[],
    current: EngineState,
    told: boolean,
  ): readonly (EngineState | null)[];
  /** True if the engine is known to refuse the node. */
  refuses(state: EngineState, node: Node): boolean;
  /** Notes that nodes go to the CPU engine because an engine cannot compute them, with the reason. Throws if the policy forbids it. */
  fallBack(state: EngineState, reason: string, nodes: readonly Node[], error?: Error): void;
  /** True if the CPU engine should try work that failed with this error. */
  takes(error: unknown, state: EngineState): boolean;
  /** The engine that will compute a node; null if not known yet. */
  engineOf(node: Node): IEngine | null;
}

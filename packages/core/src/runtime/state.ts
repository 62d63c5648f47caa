/**
 * What the runtime keeps between runs: for all engines (`RunState`), and for each one (`EngineState`).
 *
 * run.ts makes the state of an engine, and users of an engine update its counts; placement/ has the placer.
 */
import { usualLogger } from '#inspection';
import type { IEngine, Logger } from '../engine/engine.ts';
import { type BufferPool, EngineCalls } from '../engine/pool.ts';
import type { Node } from '../graph/node.ts';
import type { PlanCache } from '../planner/capture/cache.ts';
import { CapturedGraph, type CaptureOptions } from '../planner/capture/captured-graph.ts';
import type { PlanFamilies } from '../planner/families/families.ts';
import type { KernelCache } from '../planner/lowering/kernel-cache.ts';
import type { MakePlan, Plan } from '../planner/plan.ts';

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

/** Makes a plan with the planner that the engine brought. */
export const planByEngine: MakePlan = (captured, options, sized) =>
  options.engine.caps.lowering.planner.makePlan(captured, options, sized);

/** The state of a runtime (runtime.ts) that belongs to this file: all but the queue of flushes and the copies. */
export class RunState extends EngineCalls {
  readonly captured: CapturedGraph = new CapturedGraph();
  readonly engines: WeakMap<IEngine, EngineState> = new WeakMap();
  /** The state of the engine used last. */
  last: EngineState | null = null;
  /** Null where the current engine computes all it can. */
  placer: Placer | null = null;
  /** Code that is being loaded, and nodes that need it: work that builds on those is not planned before. */
  awaited: { readonly until: Promise<void>; readonly nodes: WeakSet<Node> } | null = null;
  /** Transfers between engines that are under way. */
  readonly transfers: Set<Promise<void>> = new Set();
  /** Id of the newest node at the last read, and at the round of reads before it. */
  lastRead: number = 0;
  readBefore: number = 0;
  /** Nodes up to this id existed at the previous read, so the current plan stores them (`isExpensiveOrOld`); 0: none. */
  old: number = 0;
  /** When the event loop last had a turn (`turn` in reading.ts). */
  since: number = 0;
  /** Hints to the garbage collector that were seen, and turns of the event loop still to be given because of one. */
  known: number = 0;
  owed: number = 0;
  /** Whether sizes share plans. */
  dynamicSizes: 'automatic' | 'always' | 'never' = 'automatic';
  /** Set while plans are recorded for pages, which share no plan before a second size is there. */
  declare forPages?: boolean;
  /** What plans in files are for, a list for each file in use. */
  declare brought?: (readonly string[])[];
  /** Makes plans, or finds those of earlier processes (stored/). */
  makePlan: MakePlan = planByEngine;
  /** Receives hints. */
  logger: Logger | null = usualLogger;
}

/** The state in use. */
export let runs: RunState = new RunState();

/** Replaces the state in use. */
export function useRuns(next: RunState): void {
  runs = next;
}

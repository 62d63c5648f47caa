/** What the runtime keeps from run to run: of each engine its plans, kernels and counts; of reads how old the graph was. */
import type { Command, IEngine } from '../engine/engine.ts';
import { type BufferPool, poolOf, storageBytes } from '../engine/pool.ts';
import { watchEngine } from '../engine/recovery.ts';
import type { Node } from '../graph/node.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { PlanCache } from '../planner/capture/cache.ts';
import { Cone, type ConeOptions } from '../planner/capture/cone.ts';
import { KernelCache } from '../planner/lowering/kernel-cache.ts';
import type { Plan } from '../planner/plan.ts';
import { traits } from '../planner/capture/traits.ts';

/** Everything kept for one engine. */
export interface EngineState {
  readonly engine: IEngine;
  readonly pool: BufferPool;
  readonly plans: PlanCache<Plan>;
  readonly kernelCache: KernelCache;
  readonly elementBytes: readonly number[];
  readonly global: ConeOptions;
  readonly partial: ConeOptions;
  flushes: number;
  planHits: number;
  planMisses: number;
  kernels: number;
  /** Submissions since the device was last known to be idle. */
  inFlight: number;
  idling: Promise<void> | null;
}

/** Plans kept per engine. */
const planLimit = 512;

/** Has an engine start a batch. */
export function submit(engine: IEngine, commands: readonly Command[]): void {
  engine.submit(commands);
}

/** The runtime's own part of a runtime (runtime.ts), but for the queue of flushes and copies. */
export class RunState {
  readonly cone: Cone = new Cone();
  readonly engines: WeakMap<IEngine, EngineState> = new WeakMap();
  /** That of the engine used last. */
  last: EngineState | null = null;
  /** Starts a batch: the one place where a plan's commands go to an engine, and where a profile listens. */
  submit: typeof submit = submit;
  /** Transfers between engines that are under way. */
  readonly transfers: Set<Promise<void>> = new Set();
  /** The newest node when something was read last, that of the round of reads before, and the one that counts for the run being planned. */
  lastRead: number = 0;
  readBefore: number = 0;
  old: number = 0;
  /** When the last turn of the event loop was asked for; hints to the collector that are known here, and turns it is still to have (`turn`). */
  since: number = 0;
  known: number = 0;
  owed: number = 0;
}

/** The part in use. */
export let runs: RunState = new RunState();

/** Another part takes its place. */
export function useRuns(next: RunState): void {
  runs = next;
}

/** The state of an engine; made on first use. */
export function stateOf(engine: IEngine): EngineState {
  const { last } = runs;
  if (last !== null && last.engine === engine) return last;
  let state = runs.engines.get(engine);
  if (state === undefined) {
    const pool = poolOf(engine);
    const elementBytes: number[] = [];
    for (const [dtype, { id }] of Object.entries(dtypeInfo)) elementBytes[id] = storageBytes(engine, dtype as DType);
    const { bindAlign, dtypes } = engine.caps;
    const options = { pool, dtypes, elementBytes, bindAlign, keep: isDear };
    const kernelCache = new KernelCache(engine);
    const plans = new PlanCache<Plan>(planLimit, (plan) => kernelCache.drop(plan.kernels));
    state = {
      engine,
      pool,
      plans,
      kernelCache,
      elementBytes,
      global: { ...options, donate: true },
      partial: { ...options, donate: false, keep: isDearOrOld },
      flushes: 0,
      planHits: 0,
      planMisses: 0,
      kernels: 0,
      inFlight: 0,
      idling: null,
    };
    runs.engines.set(engine, state);
    engine.caps.lowering.start?.(engine, () => plans.clear());
    watchEngine(engine);
  }
  runs.last = state;
  return state;
}

/**
 * Cheap work that was there at the read before is wanted for the second time: it is not computed a third. A loop that replaces its
 * values and reads one in every round would else be computed from its beginning each time, by a new plan.
 */
function isDearOrOld(node: Node): boolean {
  return isDear(node) || (node.id <= runs.old && node.src.length > 0 && traits[node.op].work > 0);
}

/** Too dear to compute twice: kept in memory if somebody may ask for it later. */
function isDear(node: Node): boolean {
  const { role } = traits[node.op];
  return role === 'contraction' || role === 'reduce' || role === 'program';
}

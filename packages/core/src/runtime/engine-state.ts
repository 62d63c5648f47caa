/**
 * What the runtime keeps for each engine: plans, kernels, counts.
 */
import type { IEngine } from '../engine/engine.ts';
import { type BufferPool, poolOf } from '../engine/pool.ts';
import { watchEngine } from '../engine/recovery.ts';
import type { Node } from '../graph/node.ts';
import { graph } from '../graph/state.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { PlanCache } from '../planner/capture/cache.ts';
import type { ConeOptions } from '../planner/capture/cone.ts';
import { storageBytes } from './host-data.ts';
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

const states = new WeakMap<IEngine, EngineState>();
let last: EngineState | null = null;

/** The state of an engine; made on first use. */
export function stateOf(engine: IEngine): EngineState {
  if (last !== null && last.engine === engine) return last;
  let state = states.get(engine);
  if (state === undefined) {
    const pool = poolOf(engine);
    const elementBytes = Object.entries(dtypeInfo).reduce<number[]>((list, [dtype, info]) => {
      list[info.id] = storageBytes(engine, dtype as DType);
      return list;
    }, []);
    const { bindAlign, dtypes } = engine.caps;
    const options = { pool, dtypes, elementBytes, bindAlign, keep: isDear };
    const kernelCache = new KernelCache(engine);
    const plans = new PlanCache<Plan>(planLimit, (plan) => kernelCache.drop(plan.kernels));
    const counts = { flushes: 0, planHits: 0, planMisses: 0, kernels: 0, inFlight: 0, idling: null };
    state = {
      engine,
      pool,
      plans,
      kernelCache,
      elementBytes,
      global: { ...options, donate: true },
      partial: { ...options, donate: false, keep: isDearOrOld },
      ...counts,
    };
    states.set(engine, state);
    engine.caps.lowering.start?.(engine, () => plans.clear());
    watchEngine(engine);
  }
  last = state;
  return state;
}

/** The newest node when something was read last, that of the round of reads before, and the one that counts for the run being planned. */
let newestAtRead = 0;
let newestBefore = 0;
let oldUpTo = 0;

/**
 * Something is read: returns the newest node there was at the read before. Reads between which nothing is recorded count as one.
 */
export function beginRead(): number {
  const { newest } = graph;
  if (newest !== newestAtRead) {
    newestBefore = newestAtRead;
    newestAtRead = newest;
  }
  return newestBefore;
}

/** Nodes up to this one count as old for reads, from now on. */
export function takeForOld(newest: number): void {
  oldUpTo = newest;
}

/**
 * Cheap work that was there at the read before is wanted for the second time: it is not computed a third. A loop that replaces its
 * values and reads one in every round would else be computed from its beginning each time, by a new plan.
 */
function isDearOrOld(node: Node): boolean {
  return isDear(node) || (node.id <= oldUpTo && node.src.length > 0 && traits[node.op].work > 0);
}

/** Too dear to compute twice: kept in memory if somebody may ask for it later. */
function isDear(node: Node): boolean {
  const { role } = traits[node.op];
  return role === 'contraction' || role === 'reduce' || role === 'program';
}

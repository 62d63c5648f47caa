/**
 * What the scheduler keeps for each engine: plans, kernels, counts.
 */
import type { IEngine } from '../engine/engine.ts';
import { type BufferPool, poolOf } from '../engine/pool.ts';
import { watchEngine } from '../engine/recovery.ts';
import type { Node } from '../graph/node.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { PlanCache } from './cache.ts';
import type { ConeOptions } from './cone.ts';
import { storageBytes } from './host-data.ts';
import { KernelCache } from './kernel-cache.ts';
import type { Plan } from './plan.ts';
import { traits } from './traits.ts';

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
      partial: { ...options, donate: false },
      ...counts,
    };
    states.set(engine, state);
    engine.caps.lowering.start?.(engine, () => plans.clear());
    watchEngine(engine);
  }
  last = state;
  return state;
}

/** Too dear to compute twice: kept in memory if somebody may ask for it later. */
function isDear(node: Node): boolean {
  const { role } = traits[node.op];
  return role === 'contraction' || role === 'reduce' || role === 'program';
}

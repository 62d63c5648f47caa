/**
 * What the scheduler keeps for each engine: plans, kernels, counts; and how a tensor comes from one engine to another.
 */
import type { IEngine } from '../engine/engine.ts';
import { UnsupportedError } from '../engine/errors.ts';
import { type BufferPool, type PoolBuffer, poolOf } from '../engine/pool.ts';
import type { Node, NodeStorage } from '../graph/node.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { PlanCache } from './cache.ts';
import { type ConeOptions, viewBase } from './cone.ts';
import { fromDevice, storageBytes, toDevice } from './host-data.ts';
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
    const { bindAlign } = engine.caps;
    const options = { pool, elementBytes, bindAlign, keep: isDear, bringHome: (node: Node) => bringHome(node, pool) };
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
  }
  last = state;
  return state;
}

/** Too dear to compute twice: kept in memory if somebody may ask for it later. */
function isDear(node: Node): boolean {
  const { role } = traits[node.op];
  return role === 'contraction' || role === 'reduce' || role === 'program';
}

/** Moves a leaf's data from the engine that has it to this pool's. */
function bringHome(node: Node, pool: BufferPool): void {
  const { buffer, view } = node.storage as NodeStorage;
  const from = (buffer as PoolBuffer).pool.engine;
  if (from.downloadSync === undefined) {
    throw new UnsupportedError(
      'flush',
      `a tensor of shape [${node.shape}] is on engine '${from.name}', which cannot read at once, and is needed on '${pool.engine.name}'; read it with await t.data() and make it again`,
    );
  }
  const base = viewBase(node.shape, view.strides, view.offset);
  const span = node.shape.includes(0)
    ? 0
    : node.shape.reduce((sum, n, axis) => sum + Math.abs(view.strides[axis] as number) * (n - 1), 1);
  const element = storageBytes(from, node.dtype);
  const bytes = from.downloadSync(
    { buffer: (buffer as PoolBuffer).memory, offset: base * element, bytes: span * element },
    new Uint8Array(span * element),
  );
  const size = span * storageBytes(pool.engine, node.dtype);
  const fresh = pool.alloc(size);
  pool.engine.upload(
    { buffer: fresh.memory, offset: 0, bytes: size },
    toDevice(pool.engine, node.dtype, fromDevice(from, node.dtype, bytes, span)),
  );
  node.storage = { buffer: fresh, view: { strides: view.strides, offset: view.offset - base } };
  buffer.release();
}

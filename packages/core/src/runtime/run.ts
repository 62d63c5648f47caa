/**
 * One run: the plan of the nodes asked for, found or made, and executed on one engine. What is kept from run to run is made here too: of
 * each engine its plans, kernels and counts (per-engine.ts), of reads how old the graph was.
 */
import { usualLogger } from '#inspection';
import type { Command, IEngine, Binding, Logger } from '../engine/engine.ts';
import { type BufferPool, poolOf, storageBytes, type PoolBuffer } from '../engine/pool.ts';
import { watchEngine, noticed } from '../engine/recovery.ts';
import { type Attrs, type Node, type NodeStorage, realise } from '../graph/node.ts';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { graph } from '../graph/state.ts';
import { PlanCache } from '../planner/capture/cache.ts';
import { Cone, type ConeOptions } from '../planner/capture/cone.ts';
import { newFamilies } from '#families';
import type { BindingPlan, MakePlan, OutputPlan, Plan, PlanOptions } from '../planner/plan.ts';
import { definitionAt } from '../graph/definition.ts';
import { PolygradError } from '@polygrad/compiler/shape/errors';
import { DeviceError, DeviceLostError, type UnsupportedError } from '../engine/errors.ts';
import type { EngineState } from './per-engine.ts';
import type { Placer } from './placer.ts';

/** Plans kept per engine. */
const planLimit = 512;

/** Has an engine start a batch. */
export function submit(engine: IEngine, commands: readonly Command[]): void {
  engine.submit(commands);
}

/** Copies host bytes to an engine. */
export function upload(engine: IEngine, to: Binding, data: ArrayBufferView): void {
  engine.upload(to, data);
}

/** Reads an engine's memory, at once or later. */
export function download(engine: IEngine, from: Binding, into: Uint8Array): Promise<Uint8Array> {
  return engine.download(from, into);
}
export function downloadSync(engine: IEngine, from: Binding, into: Uint8Array): Uint8Array {
  return engine.downloadSync!(from, into);
}

/** Makes a plan by what the engine brought. */
export const planByEngine: MakePlan = (cone, options, sized) =>
  options.engine.caps.lowering.planner.makePlan(cone, options, sized);

/** The runtime's own part of a runtime (runtime.ts), but for the queue of flushes and copies. */
export class RunState {
  readonly cone: Cone = new Cone();
  readonly engines: WeakMap<IEngine, EngineState> = new WeakMap();
  /** That of the engine used last. */
  last: EngineState | null = null;
  /** Starts a batch: the one place where a plan's commands go to an engine, and where a profile listens. */
  submit: typeof submit = submit;
  /** The same for bytes that go to engines and come from them. */
  upload: typeof upload = upload;
  download: typeof download = download;
  downloadSync: typeof downloadSync = downloadSync;
  /** Null where the current engine computes all it can. */
  placer: Placer | null = null;
  /** Code on its way, and what waits for it: flushes of work that builds on that are not planned before. */
  awaited: { readonly until: Promise<void>; readonly nodes: WeakSet<Node> } | null = null;
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
  /** Whether sizes share plans. */
  dynamicSizes: 'automatic' | 'always' | 'never' = 'automatic';
  /** How plans are made, or found among those of earlier processes (stored/). */
  makePlan: MakePlan = planByEngine;
  /** Whom hints go to. */
  logger: Logger | null = usualLogger;
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
    const kernelCache = engine.caps.lowering.planner.kernelsOf(engine);
    const plans = new PlanCache<Plan>(planLimit, (plan) => kernelCache.drop(plan.kernels));
    state = {
      engine,
      pool,
      plans,
      kernelCache,
      families: null,
      elementBytes,
      global: { ...options, donate: true },
      partial: { ...options, donate: false, keep: isDearOrOld },
      flushes: 0,
      finished: 0,
      planHits: 0,
      planMisses: 0,
      madePlans: 0,
      keptPlans: 0,
      planning: 0,
      kernels: 0,
      inFlight: 0,
      idling: null,
    };
    runs.engines.set(engine, state);
    const made = state;
    engine.caps.lowering.start?.(engine, () => forgetPlans(made));
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
  return isDear(node) || (node.id <= runs.old && node.src.length > 0 && definitionAt(node.kind).work > 0);
}

/** Too dear to compute twice: kept in memory if somebody may ask for it later. */
function isDear(node: Node): boolean {
  const { role } = definitionAt(node.kind);
  return role === 'contraction' || role === 'reduce' || role === 'program';
}

/** Kernels kept per engine: compiled code takes tens of kilobytes. */
const kernelLimit = 4096;

/** A reader waits for kernels so many times: compiling that fails for want of memory begins anew, and a run tells of it. */
export const mostWaits = 3;

/**
 * What a run waits for rather than going on at once: nothing, the device's word on memory that it needs anew, or that and kernels that are
 * being compiled.
 */
export type Patience = 'none' | 'memory' | 'kernels';

/** What readers that cannot wait are told, by what there is to wait for. */
const missing = new WeakMap<Promise<void>, UnsupportedError>();

/** The error for a reader that would have to wait for code, or undefined where it is something else that is on its way. */
export function missingCode(arrival: Promise<void>): UnsupportedError | undefined {
  return missing.get(arrival);
}

/** When to try again, where an engine lacks code that is on its way. Throws any other error. */
function codeOnItsWay(error: unknown, { engine }: EngineState, wanted: readonly Node[]): Promise<void> {
  // The engine may know another copy of this package.
  const { until } = (error instanceof PolygradError ? error : {}) as Partial<UnsupportedError>;
  if (until === undefined) throw noticed(engine, error);
  missing.set(until, error as UnsupportedError);
  const here = runs;
  if (here.awaited?.until !== until) {
    const started = { until, nodes: new WeakSet<Node>() };
    here.awaited = started;
    const over = (): void => {
      if (here.awaited === started) here.awaited = null;
    };
    until.then(over, over);
  }
  for (const node of wanted) here.awaited.nodes.add(node);
  return until;
}

/** True if the cone builds on what waits for code. Loops that never await would else plan ever more steps in vain. */
function buildsOnAwaited(cone: Cone, nodes: WeakSet<Node>): boolean {
  for (let i = 0; i < cone.count; i++) if (nodes.has(cone.nodes[i]!)) return true;
  return false;
}

/** Does a run with loops in it, in several runs (loops.ts). Without patience, the last of them is only planned; null: it is. */
type RunLoops = (
  state: EngineState,
  wanted: readonly Node[],
  options: ConeOptions,
  patience?: Patience,
  told?: boolean,
) => boolean | Promise<void> | null;

let loops: RunLoops | null = null;

/** From now on there may be loops: pages without one do without their code. */
export function bringLoops(runLoops: RunLoops): void {
  loops = runLoops;
}

/**
 * Realises the nodes on one engine. False, with nothing done, where that engine lacks a dtype or data on the way, or the placer, if it is
 * asked, wants it elsewhere: then queue.ts decides.
 *
 * A run that is put off, or lacks code that is loaded when first used, returns a promise of when to try again. One that nobody is `told` of is
 * not tried before.
 */
export function run(
  state: EngineState,
  wanted: readonly Node[],
  options: ConeOptions,
  patience: Patience = 'none',
  told = true,
  placer: Placer | null = null,
): boolean | Promise<void> {
  const { cone } = runs;
  try {
    if (!cone.collect(wanted, options)) return false;
    const found = state.plans.find(cone.hash, cone.key);
    // What stays where it is costs one comparison.
    if (placer !== null && (told || found === undefined || found.stays !== placer.stays))
      if (!placer.isHere(state, cone, wanted, told, found)) return false;
    if (cone.key.looped) return loops!(state, wanted, options, patience, told) as boolean | Promise<void>;
    const { awaited } = runs;
    if (awaited !== null && !told && buildsOnAwaited(cone, awaited.nodes)) {
      for (const node of wanted) awaited.nodes.add(node);
      return awaited.until;
    }
    if (found !== undefined) state.planHits++;
    const plan = found ?? newPlan(state, cone);
    graph.observer?.plan(plan, cone);
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
    return codeOnItsWay(error, state, wanted);
  } finally {
    cone.clear();
  }
}

/** Makes the plan that `run` would run, if one engine suffices. Returns what to wait for where code for it is on its way. */
export function prepare(state: EngineState, wanted: readonly Node[], options: ConeOptions): Promise<void> | null {
  const { cone } = runs;
  try {
    if (cone.collect(wanted, options)) {
      if (cone.key.looped) return loops!(state, wanted, options) as Promise<void> | null;
      planOf(state, cone);
    }
    return null;
  } catch (error) {
    return codeOnItsWay(error, state, []);
  } finally {
    cone.clear();
  }
}

/** Forgets all plans and lets their kernels go. */
export function forgetPlans(state: EngineState): void {
  state.forgotten = {};
  state.plans.clear();
  state.families?.clear(optionsOf(state));
}

const optionsOf = (state: EngineState): PlanOptions => {
  const { engine, kernelCache, elementBytes } = state;
  const counted: MakePlan = (...args) => {
    const { keptPlans } = state;
    const plan = runs.makePlan(...args);
    if (keptPlans === state.keptPlans) state.madePlans++;
    return plan;
  };
  return { engine, kernels: kernelCache, elementBytes, makePlan: counted };
};

/** The plan of what the cone holds. */
export function planOf(state: EngineState, cone: Cone): Plan {
  const found = state.plans.find(cone.hash, cone.key);
  if (found !== undefined) state.planHits++;
  return found ?? newPlan(state, cone);
}

/** Makes the plan of what the cone holds, and keeps it. */
function newPlan(state: EngineState, cone: Cone): Plan {
  const { hash, key } = cone;
  state.planMisses++;
  const started = performance.now();
  let plan: Plan | null = null;
  const { dynamicSizes, logger } = runs;
  const options = optionsOf(state);
  if (dynamicSizes !== 'never' && (state.engine.caps.lowering.sizes || logger !== null)) {
    state.families ??= newFamilies();
    plan = state.families?.findOrHint(cone, options, dynamicSizes === 'always', state.planHits, logger) ?? null;
  }
  plan ??= options.makePlan(cone, options, null);
  state.plans.add(hash, key, plan);
  state.plans.trim(() => state.kernelCache.size > kernelLimit);
  state.planning += performance.now() - started;
  return plan;
}

/**
 * Binds a plan's slots to this flush's buffers, submits its commands once, hands the results to the nodes.
 *
 * If anything throws before the commands are submitted, every buffer made here goes back and no node has changed: they are
 * still pending and the flush can be tried again. So they do where a patient caller must wait for the device's word on new memory.
 *
 * @returns null when it is done, else, with nothing done, a promise of when to try again
 */
function execute(plan: Plan, cone: Cone, pool: BufferPool, patient: boolean): Promise<void> | null {
  const nodes = cone.nodes as readonly Node[];
  // Buffers of outputs, then blocks for temporaries.
  const taken = new Array<PoolBuffer>(plan.buffers.length + plan.blocks.length);
  let count = 0;
  try {
    for (const { bytes, sizeClass, donor } of plan.buffers) {
      if (donor < 0) taken[count] = pool.alloc(bytes, sizeClass);
      else {
        const buffer = bufferOf(nodes[donor]!);
        buffer.retain();
        buffer.dropCopies();
        taken[count] = buffer;
      }
      count++;
    }
    for (const { bytes, sizeClass } of plan.blocks) {
      taken[count] = pool.alloc(bytes, sizeClass);
      count++;
    }
    if (pool.engine.confirming !== undefined) {
      const unsure = patient ? pool.engine.confirming() : null;
      if (unsure !== null) {
        for (const buffer of taken) buffer.release();
        return unsure;
      }
      checkLeaves(cone);
    }
    if (plan.dispatches.length > 0) {
      const commands = commandsOf(plan, cone, taken);
      try {
        runs.submit(pool.engine, commands);
      } catch (error) {
        const overwrites = plan.buffers.some(({ donor }) => donor >= 0);
        throw unstarted(error, pool.engine, commands, overwrites);
      }
    }
  } catch (error) {
    while (count > 0) taken[--count]!.release();
    throw error;
  }
  if (plan.outputs.length === 1) {
    realise(nodes[cone.outputs.data[0]!]!, storageOf(plan.outputs[0]!, cone, taken));
  } else {
    // Storages first: letting sources go may give leaves back.
    const storages = plan.outputs.map((output) => storageOf(output, cone, taken));
    for (let i = 0; i < storages.length; i++) {
      realise(nodes[cone.outputs.data[i]!]!, storages[i]!);
    }
  }
  for (let i = 0; i < taken.length; i++) taken[i]!.release();
  return null;
}

/** Codes of what an engine says before a batch has begun, or after it has seen to it that the batch may run twice. */
const toldBefore: readonly unknown[] = ['OUT_OF_MEMORY', 'COMPILE', 'UNSUPPORTED', 'DEVICE_LOST', 'ENGINE_DISPOSED'];

/**
 * What a batch ends in that `submit` refused: what the engine says of memory, kernels and its end. After any other error nobody knows how far the batch
 * came.
 *
 * @param overwrites the batch writes over values that are still wanted if it fails: they are gone then, and the device counts as lost
 */
export function unstarted(error: unknown, engine: IEngine, commands: readonly Command[], overwrites: boolean): unknown {
  if (toldBefore.includes((error as Partial<PolygradError> | null)?.code)) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const batch = `a batch of ${commands.length} command${commands.length === 1 ? '' : 's'}`;
  if (overwrites) {
    const text = `${batch} failed after it may have written over its inputs: ${reason}`;
    return new DeviceLostError(engine.name, engine.device, text, { cause: error });
  }
  const text = `${batch} was not started: ${reason}; nothing was changed: try once more, and choose another engine with setEngine() if that fails too`;
  return new DeviceError(engine.name, text, { cause: error });
}

/** Throws for leaves that the device had no memory for: they have no data to compute from. */
function checkLeaves(cone: Cone): void {
  for (let i = 0; i < cone.leaves.length; i++) {
    const { refused } = (cone.storageOf(cone.nodes[cone.leaves.data[i]!]!).buffer as PoolBuffer).memory;
    if (refused != null) throw refused;
  }
}

function bufferOf(node: Node): PoolBuffer {
  return node.storage!.buffer as PoolBuffer;
}

/** Storage of an output, with one count of its buffer. */
function storageOf({ leaf, at, view }: OutputPlan, cone: Cone, buffers: readonly PoolBuffer[]): NodeStorage {
  if (!leaf) {
    const buffer = buffers[at]!;
    buffer.retain();
    return { buffer, view };
  }
  const { buffer, view: base } = cone.storageOf(cone.nodes[at]!);
  buffer.retain();
  return { buffer, view: { strides: view.strides, offset: base.offset + view.offset } };
}

const noScalars: readonly (number | bigint)[] = [];

function commandsOf(plan: Plan, cone: Cone, taken: readonly PoolBuffer[]): Command[] {
  const { dispatches } = plan;
  const commands = new Array<Command>(dispatches.length);
  for (let at = 0; at < dispatches.length; at++) {
    const { kernel, bindings, scalars, groups } = dispatches[at]!;
    const bound = new Array<Binding>(bindings.length);
    for (let i = 0; i < bindings.length; i++) bound[i] = bind(bindings[i]!, cone, taken);
    const values =
      scalars.length === 0
        ? noScalars
        : scalars.map((local) =>
            local < 0 ? plan.sizes[-1 - local]! : (cone.nodes[local]!.attr as Attrs['scalar']).value,
          );
    commands[at] = { kind: 'dispatch', kernel, bindings: bound, scalars: values, groups };
  }
  return commands;
}

function bind({ kind, at, unit, offset, bytes }: BindingPlan, cone: Cone, taken: readonly PoolBuffer[]): Binding {
  if (kind === 'taken') return { buffer: taken[at]!.memory, offset, bytes };
  const { buffer, view } = cone.storageOf(cone.nodes[at]!);
  return { buffer: (buffer as PoolBuffer).memory, offset: view.offset * unit - offset, bytes };
}

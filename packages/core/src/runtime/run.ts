/**
 * One run: finds or makes the plan of the requested nodes, binds it and submits it to one engine.
 *
 * In: nodes, an engine's state. Out: nodes with storage; or false, or a promise, if this engine cannot compute them now. What is
 * kept between runs is in state.ts.
 */
import type { Command, DispatchCommand, IEngine, Binding } from '../engine/engine.ts';
import { poolOf, storageBytes, type PoolBuffer } from '../engine/pool.ts';
import { watchEngine, noticed } from '../engine/registry.ts';
import { keepRange } from '../graph/known-range.ts';
import { type Attrs, type Node, type NodeStorage, realise } from '../graph/node.ts';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import type { View } from '@polygrad/compiler/shape/view';
import { graph } from '../graph/state.ts';
import { PlanCache } from '../planner/capture/cache.ts';
import type { CapturedGraph, CaptureOptions } from '../planner/capture/captured-graph.ts';
import { newFamilies } from '#families';
import type {
  BindingPlan,
  BufferPlan,
  DispatchPlan,
  MakePlan,
  OutputPlan,
  Plan,
  PlanOptions,
} from '../planner/plan.ts';
import { definitionAt } from '../graph/definition.ts';
import { PolygradError } from '@polygrad/compiler/shape/errors';
import { DeviceError, DeviceLostError, type UnsupportedError } from '../engine/errors.ts';
import { type EngineState, type Placer, runs } from './state.ts';

/** Plans kept per engine. */
const planLimit = 512;

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
    const options = { pool, dtypes, elementBytes, bindAlign, keep: isExpensive };
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
      partial: { ...options, donate: false, keep: isExpensiveOrOld },
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
 * Cheap work that was already pending at the previous read is now computed for the second time. It is stored, so that there is
 * no third time. Otherwise a loop that reads a value in each round would compute all from the beginning, by ever new plans.
 */
function isExpensiveOrOld(node: Node): boolean {
  return isExpensive(node) || (node.id <= runs.old && node.src.length > 0 && definitionAt(node.kind).work > 0);
}

/** True if the node costs too much to compute twice: it is stored if it may be needed later. */
function isExpensive(node: Node): boolean {
  const { role } = definitionAt(node.kind);
  return role === 'contraction' || role === 'reduce' || role === 'program';
}

/** Kernels kept per engine: compiled code takes tens of kilobytes. */
const kernelLimit = 4096;

/**
 * How often plans use them, with which plans take about 0.4 GB. Programs that read once in hundreds of steps of changing sizes would fill memory with plans
 * that nobody asks for again.
 */
const useLimit = 2 ** 16;

/** How often a reader waits for kernels. Compiling that runs out of memory starts again, and the run reports that. */
export const mostWaits = 3;

/**
 * What a run waits for, rather than going on: nothing; the device's answer about new memory; or that, and kernels that are
 * being compiled.
 */
export type Patience = 'none' | 'memory' | 'kernels';

/** Errors for readers that cannot wait, by the promise. */
const missing = new WeakMap<Promise<void>, UnsupportedError>();

/** The error for a reader that would have to wait for code; undefined if the promise is for something else. */
export function missingCode(arrival: Promise<void>): UnsupportedError | undefined {
  return missing.get(arrival);
}

/** When to try again, if an engine lacks code that is being loaded. Throws any other error. */
export function codeOnItsWay(error: unknown, { engine }: EngineState, wanted: readonly Node[]): Promise<void> {
  // The error's class may be of another copy of this package.
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

/** True if the captured graph builds on nodes that wait for code. Otherwise loops that never await would plan ever more steps in vain. */
function buildsOnAwaited(captured: CapturedGraph, nodes: WeakSet<Node>): boolean {
  for (let i = 0; i < captured.count; i++) if (nodes.has(captured.nodes[i]!)) return true;
  return false;
}

/** Runs nodes with loops among them, as several runs (loops.ts). Without patience the last one is only planned; null: it is. */
type RunLoops = (
  state: EngineState,
  wanted: readonly Node[],
  options: CaptureOptions,
  patience?: Patience,
  told?: boolean,
) => boolean | Promise<void> | null;

export let loops: RunLoops | null = null;

/** Registers the code of loops: pages without loops do not carry it. */
export function registerLoops(runLoops: RunLoops): void {
  loops = runLoops;
}

/**
 * Realises the nodes on one engine. False, with nothing done, if that engine lacks a dtype or data that is on its way, or if the placer
 * wants the work elsewhere: then queue.ts decides.
 *
 * A run that is put off, or lacks code that is loaded at first use, returns a promise of when to try again. If no caller waits for the
 * result (`told` is false), it is not tried before. Code that plans can do without is waited for too, but by readers that cannot wait.
 */
export function run(
  state: EngineState,
  wanted: readonly Node[],
  options: CaptureOptions,
  patience: Patience = 'none',
  told = true,
  placer: Placer | null = null,
): boolean | Promise<void> {
  const { captured } = runs;
  try {
    if (!captured.collect(wanted, options)) return false;
    const found = state.plans.find(captured.key);
    // A plan known to stay here costs one comparison.
    if (placer !== null && (told || found === undefined || found.stays !== placer.stays))
      if (!placer.isHere(state, captured, wanted, told, found)) return false;
    if (captured.key.looped) return loops!(state, wanted, options, patience, told) as boolean | Promise<void>;
    const { awaited } = runs;
    if (awaited !== null && !told && buildsOnAwaited(captured, awaited.nodes)) {
      for (const node of wanted) awaited.nodes.add(node);
      return awaited.until;
    }
    if (found !== undefined) state.planHits++;
    const plan = found ?? newPlan(state, captured);
    graph.observer?.plan(plan, captured);
    const { engine } = state;
    if (patience === 'kernels' && engine.compiling !== undefined) {
      const compiled = engine.compiling(plan.dispatches.map(({ kernel }) => kernel));
      if (compiled !== null) return compiled;
    }
    const unsure = executed(plan, captured, state, patience !== 'none');
    if (unsure !== null) return unsure;
    state.flushes++;
    state.inFlight++;
    state.pool.age();
    return true;
  } catch (error) {
    const without = patience === 'none' && told ? (error as Partial<UnsupportedError> | null)?.without : undefined;
    if (without === undefined) return codeOnItsWay(error, state, wanted);
    captured.clear();
    return without(() => run(state, wanted, options, patience, told, placer));
  } finally {
    captured.clear();
  }
}

/** Drops all plans and their kernels. */
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

/** The plan of the captured graph. */
export function planOf(state: EngineState, captured: CapturedGraph): Plan {
  const found = state.plans.find(captured.key);
  if (found !== undefined) state.planHits++;
  return found ?? newPlan(state, captured);
}

/** Makes and keeps the plan of the captured graph. */
function newPlan(state: EngineState, captured: CapturedGraph): Plan {
  state.planMisses++;
  const started = performance.now();
  let plan: Plan | null = null;
  const { dynamicSizes, logger, forPages } = runs;
  const options = optionsOf(state);
  if (dynamicSizes !== 'never' && (state.engine.caps.lowering.sizes || logger !== null)) {
    state.families ??= newFamilies();
    const first = forPages ? 'never' : dynamicSizes === 'always' ? 'always' : 'expected';
    plan = state.families?.findOrHint(captured, options, first, state.planHits, logger) ?? null;
  }
  plan ??= options.makePlan(captured, options, null);
  state.plans.add(captured.key, plan);
  state.plans.trim(() => state.kernelCache.size > kernelLimit || state.kernelCache.held > useLimit);
  state.planning += performance.now() - started;
  return plan;
}

/** Runs plans: `execute`, or what was registered. */
let executed: typeof execute = execute;

/** A reader was told of an error; null: nobody hears of it. */
export let heard: ((state: EngineState, error: unknown) => void) | null = null;

/** Registers what follows where a driver refuses a kernel of a plan that was found rather than made (stored/read-plan.ts). */
export function registerFound(execute: typeof executed, hear: typeof heard): void {
  executed = execute;
  heard = hear;
}

/**
 * Binds a plan's slots to this flush's buffers, submits its commands once, and hands the results to the nodes.
 *
 * If anything throws before the commands are submitted, all buffers allocated here are freed and no node has changed: they are
 * still pending and the flush can be tried again. The same holds if a patient caller must wait for the device's answer about new memory.
 *
 * @returns null when it is done; else nothing was done, and the promise says when to try again
 */
export function execute(
  plan: Plan,
  captured: CapturedGraph,
  state: EngineState,
  patient: boolean,
): Promise<void> | null {
  const { pool } = state;
  const nodes = captured.nodes as readonly Node[];
  // Output buffers, then blocks for temporaries.
  const { buffers, blocks } = plan;
  const taken = new Array<PoolBuffer>(buffers.length + blocks.length);
  let count = 0;
  try {
    for (let i = 0; i < buffers.length; i++) {
      const { bytes, sizeClass, donor } = buffers[i]!;
      taken[count] = donor < 0 ? pool.alloc(bytes, sizeClass) : donated(nodes[donor]!);
      count++;
    }
    for (let i = 0; i < blocks.length; i++) {
      const { bytes, sizeClass } = blocks[i]!;
      taken[count] = pool.alloc(bytes, sizeClass);
      count++;
    }
    if (pool.engine.confirming !== undefined) {
      const unsure = patient ? pool.engine.confirming() : null;
      if (unsure !== null) {
        for (const buffer of taken) buffer.release();
        return unsure;
      }
      checkLeaves(captured);
    }
    if (plan.dispatches.length > 0) start(pool.engine, commandsOf(plan, captured, taken), plan);
  } catch (error) {
    while (count > 0) taken[--count]!.release();
    throw error;
  }
  if (plan.outputs.length === 1)
    stored(nodes[captured.outputs.data[0]!]!, storageOf(plan.outputs[0]!, captured, taken));
  else realiseSeveral(plan, captured, taken);
  for (let i = 0; i < taken.length; i++) taken[i]!.release();
  state.kernels += plan.dispatches.length;
  return null;
}

function realiseSeveral({ outputs }: Plan, captured: CapturedGraph, taken: readonly PoolBuffer[]): void {
  // Storages first: dropping sources may free leaves.
  const storages = outputs.map((output) => storageOf(output, captured, taken));
  for (let i = 0; i < storages.length; i++) stored(captured.nodes[captured.outputs.data[i]!]!, storages[i]!);
}

function stored(node: Node, storage: NodeStorage): void {
  // Not `isInteger`: reads of floats would visit one file more.
  const { kind } = dtypeInfo[node.dtype];
  if (kind === 'int' || kind === 'uint') keepRange(node);
  realise(node, storage);
}

/** Submits the commands of a plan. */
function start(engine: IEngine, commands: readonly Command[], { buffers }: Plan): void {
  try {
    runs.submit(engine, commands);
  } catch (error) {
    throw unstarted(error, engine, commands, buffers.some(isDonated));
  }
}

const isDonated = ({ donor }: BufferPlan): boolean => donor >= 0;

/** Codes of errors after which the batch has not begun, or may safely run again. */
const toldBefore: readonly unknown[] = ['OUT_OF_MEMORY', 'COMPILE', 'UNSUPPORTED', 'DEVICE_LOST', 'ENGINE_DISPOSED'];

/**
 * The error of a batch that `submit` refused: a known engine error as it is. After any other error it is unknown how far the batch
 * came.
 *
 * @param overwrites true if the batch overwrites values that are still needed on failure: then they are gone, and the device counts as lost
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

/** Throws for leaves whose data the device had no memory for. */
function checkLeaves(captured: CapturedGraph): void {
  for (let i = 0; i < captured.leaves.length; i++) {
    const { refused } = (captured.storageOf(captured.nodes[captured.leaves.data[i]!]!).buffer as PoolBuffer).memory;
    if (refused != null) throw refused;
  }
}

/** The buffer of a leaf that is written over, with a reference. */
function donated(leaf: Node): PoolBuffer {
  const buffer = leaf.storage!.buffer as PoolBuffer;
  buffer.retain();
  buffer.dropCopies();
  return buffer;
}

/** Storage of an output, with a reference to its buffer. */
function storageOf(
  { leaf, at, view }: OutputPlan,
  captured: CapturedGraph,
  buffers: readonly PoolBuffer[],
): NodeStorage {
  if (!leaf) {
    const buffer = buffers[at]!;
    buffer.retain();
    return { buffer, view };
  }
  const { buffer, view: base } = captured.storageOf(captured.nodes[at]!);
  buffer.retain();
  return { buffer, view: { strides: view.strides, offset: base.offset + view.offset } };
}

const noScalars: readonly (number | bigint)[] = [];

/**
 * The commands of a plan for this run. Those of its run before serve again where they name the same memory and numbers. So neither a command nor a list of
 * them is changed later: engines, profiles and recordings keep them.
 */
function commandsOf(plan: Plan, captured: CapturedGraph, taken: readonly PoolBuffer[]): readonly Command[] {
  const { dispatches, sizes, commands: before } = plan;
  let commands: DispatchCommand[] | null = null;
  for (let at = 0; at < dispatches.length; at++) {
    const dispatch = dispatches[at]!;
    const old = before[at];
    if (old !== undefined && isSame(old, dispatch, sizes, captured, taken)) {
      if (commands !== null) commands[at] = old;
      continue;
    }
    if (commands === null) {
      commands = new Array<DispatchCommand>(dispatches.length);
      for (let i = 0; i < at; i++) commands[i] = before[i]!;
    }
    commands[at] = commandOf(dispatch, sizes, captured, taken);
  }
  if (commands !== null) plan.commands = commands;
  return plan.commands;
}

/** True if a command of the run before names what this run would. */
function isSame(
  command: DispatchCommand,
  { bindings, scalars }: DispatchPlan,
  sizes: Plan['sizes'],
  captured: CapturedGraph,
  taken: readonly PoolBuffer[],
): boolean {
  for (let i = 0; i < bindings.length; i++) {
    const b = bindings[i]!;
    const known = command.bindings[i]!;
    if (b.kind === 'taken') {
      if (taken[b.at]!.memory !== known.buffer) return false;
    } else {
      const { buffer, view } = captured.storageOf(captured.nodes[b.at]!);
      if ((buffer as PoolBuffer).memory !== known.buffer || offsetOf(b, view) !== known.offset) return false;
    }
  }
  for (let i = 0; i < scalars.length; i++)
    if (!Object.is(scalarOf(scalars[i]!, sizes, captured), command.scalars[i])) return false;
  return true;
}

function commandOf(
  { kernel, bindings, scalars, groups }: DispatchPlan,
  sizes: Plan['sizes'],
  captured: CapturedGraph,
  taken: readonly PoolBuffer[],
): DispatchCommand {
  const bound = new Array<Binding>(bindings.length);
  for (let i = 0; i < bindings.length; i++) {
    const b = bindings[i]!;
    const { bytes } = b;
    if (b.kind === 'taken') bound[i] = { buffer: taken[b.at]!.memory, offset: b.offset, bytes };
    else {
      const { buffer, view } = captured.storageOf(captured.nodes[b.at]!);
      bound[i] = { buffer: (buffer as PoolBuffer).memory, offset: offsetOf(b, view), bytes };
    }
  }
  let values = noScalars;
  if (scalars.length > 0) {
    const list = new Array<number | bigint>(scalars.length);
    for (let i = 0; i < scalars.length; i++) list[i] = scalarOf(scalars[i]!, sizes, captured);
    values = list;
  }
  return { kind: 'dispatch', kernel, bindings: bound, scalars: values, groups };
}

function scalarOf(local: number, sizes: Plan['sizes'], captured: CapturedGraph): number | bigint {
  return local < 0 ? sizes[-1 - local]! : (captured.nodes[local]!.attr as Attrs['scalar']).value;
}

/** Bytes from the start of a leaf's buffer. */
function offsetOf({ unit, offset }: BindingPlan, view: View): number {
  return view.offset * unit - offset;
}

/** One run: the plan of the nodes asked for, found or made, and executed on one engine. */
import { noticed } from '../engine/recovery.ts';
import { type Node, type NodeStorage, realise } from '../graph/node.ts';
import type { Cone, ConeOptions } from '../planner/capture/cone.ts';
import { type EngineState, runs } from './state.ts';
import { makePlan, type Plan, type BindingPlan, type DispatchPlan, type OutputPlan } from '../planner/plan.ts';
import type { Binding, Command } from '../engine/engine.ts';
import type { BufferPool, PoolBuffer } from '../engine/pool.ts';
import type { Attrs } from '../graph/attrs.ts';

/** Kernels kept per engine: compiled code takes tens of kilobytes. */
const kernelLimit = 4096;

/** A reader waits for kernels so many times: compiling that fails for want of memory begins anew, and a run tells of it. */
export const mostWaits = 3;

/**
 * What a run waits for rather than going on at once: nothing, the device's word on memory that it needs anew, or that and kernels that are
 * being compiled.
 */
export type Patience = 'none' | 'memory' | 'kernels';

/**
 * Realises the nodes on one engine. False, with nothing done, where that engine lacks a dtype or data on the way: then
 * queue.ts decides.
 *
 * A run that is put off returns a promise of when to try again.
 */
export function run(
  state: EngineState,
  wanted: readonly Node[],
  options: ConeOptions,
  patience: Patience = 'none',
): boolean | Promise<void> {
  const { cone } = runs;
  try {
    if (!cone.collect(wanted, options)) return false;
    const plan = planOf(state, cone);
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
    throw noticed(state.engine, error);
  } finally {
    cone.clear();
  }
}

/** Makes the plan that `run` would run, if one engine suffices. */
export function prepare(state: EngineState, wanted: readonly Node[], options: ConeOptions): void {
  const { cone } = runs;
  try {
    if (cone.collect(wanted, options)) planOf(state, cone);
  } finally {
    cone.clear();
  }
}

/** The plan of what the cone holds. */
function planOf(state: EngineState, cone: Cone): Plan {
  const { hash, key } = cone;
  let plan = state.plans.find(hash, key);
  if (plan !== undefined) {
    state.planHits++;
    return plan;
  }
  state.planMisses++;
  plan = makePlan(cone, {
    engine: state.engine,
    kernels: state.kernelCache,
    elementBytes: state.elementBytes,
  });
  state.plans.add(hash, key, plan);
  state.plans.trim(() => state.kernelCache.size > kernelLimit);
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
        const buffer = bufferOf(nodes[donor] as Node);
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
    if (plan.dispatches.length > 0) runs.submit(pool.engine, commandsOf(plan, cone, taken));
  } catch (error) {
    while (count > 0) (taken[--count] as PoolBuffer).release();
    throw error;
  }
  if (plan.outputs.length === 1) {
    realise(nodes[cone.outputs.data[0] as number] as Node, storageOf(plan.outputs[0] as OutputPlan, cone, taken));
  } else {
    // Storages first: letting sources go may give leaves back.
    const storages = plan.outputs.map((output) => storageOf(output, cone, taken));
    for (let i = 0; i < storages.length; i++) {
      realise(nodes[cone.outputs.data[i] as number] as Node, storages[i] as NodeStorage);
    }
  }
  for (let i = 0; i < taken.length; i++) (taken[i] as PoolBuffer).release();
  return null;
}

/** Throws for leaves that the device had no memory for: they have no data to compute from. */
function checkLeaves(cone: Cone): void {
  for (let i = 0; i < cone.leaves.length; i++) {
    const { refused } = (cone.storageOf(cone.nodes[cone.leaves.data[i] as number] as Node).buffer as PoolBuffer).memory;
    if (refused != null) throw refused;
  }
}

function bufferOf(node: Node): PoolBuffer {
  return (node.storage as NodeStorage).buffer as PoolBuffer;
}

/** Storage of an output, with one count of its buffer. */
function storageOf({ leaf, at, view }: OutputPlan, cone: Cone, buffers: readonly PoolBuffer[]): NodeStorage {
  if (!leaf) {
    const buffer = buffers[at] as PoolBuffer;
    buffer.retain();
    return { buffer, view };
  }
  const { buffer, view: base } = cone.storageOf(cone.nodes[at] as Node);
  buffer.retain();
  return { buffer, view: { strides: view.strides, offset: base.offset + view.offset } };
}

const noScalars: readonly (number | bigint)[] = [];

function commandsOf(plan: Plan, cone: Cone, taken: readonly PoolBuffer[]): Command[] {
  const { dispatches } = plan;
  const commands = new Array<Command>(dispatches.length);
  for (let at = 0; at < dispatches.length; at++) {
    const { kernel, bindings, scalars } = dispatches[at] as DispatchPlan;
    const bound = new Array<Binding>(bindings.length);
    for (let i = 0; i < bindings.length; i++) bound[i] = bind(bindings[i] as BindingPlan, cone, taken);
    const values =
      scalars.length === 0
        ? noScalars
        : scalars.map((local) => ((cone.nodes[local] as Node).attr as Attrs['scalar']).value);
    commands[at] = { kind: 'dispatch', kernel, bindings: bound, scalars: values };
  }
  return commands;
}

function bind({ kind, at, unit, offset, bytes }: BindingPlan, cone: Cone, taken: readonly PoolBuffer[]): Binding {
  if (kind === 'taken') return { buffer: (taken[at] as PoolBuffer).memory, offset, bytes };
  const { buffer, view } = cone.storageOf(cone.nodes[at] as Node);
  return { buffer: (buffer as PoolBuffer).memory, offset: view.offset * unit - offset, bytes };
}

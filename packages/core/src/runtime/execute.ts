/**
 * One run of a plan: binds its slots to this flush's buffers, submits its commands once, hands the results to the nodes.
 *
 * If anything throws before the commands are submitted, every buffer made here goes back and no node has changed: they are
 * still pending and the flush can be tried again. So they do where a patient caller must wait for the device's word on new memory.
 */
import type { Binding, Command } from '../engine/engine.ts';
import type { BufferPool, PoolBuffer } from '../engine/pool.ts';
import type { Attrs } from '../graph/attrs.ts';
import type { Node, NodeStorage } from '../graph/node.ts';
import { realise } from '../graph/counting.ts';
import type { Cone } from '../planner/capture/cone.ts';
import type { BindingPlan, DispatchPlan, OutputPlan, Plan } from '../planner/plan.ts';
import { submit } from './submission.ts';

/** Returns null when it is done, else, with nothing done, a promise of when to try again. */
export function execute(plan: Plan, cone: Cone, pool: BufferPool, patient: boolean): Promise<void> | null {
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
    if (plan.dispatches.length > 0) submit(pool.engine, commandsOf(plan, cone, taken));
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

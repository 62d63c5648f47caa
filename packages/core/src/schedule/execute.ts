/**
 * One run of a plan: binds its slots to this flush's buffers, submits its commands once, hands the results to the nodes.
 *
 * If anything throws before the commands are submitted, every buffer made here goes back and no node has changed: they are
 * still pending and the flush can be tried again.
 */
import type { Binding, Command } from '../engine/engine.ts';
import type { BufferPool, PoolBuffer } from '../engine/pool.ts';
import type { Attrs } from '../graph/attrs.ts';
import type { Node, NodeStorage } from '../graph/node.ts';
import { realise } from '../graph/recorder.ts';
import { type Cone, viewBase } from './cone.ts';
import { dtypeInfo } from '../shape/dtype.ts';
import type { BindingPlan, Plan } from './plan.ts';

export function execute(plan: Plan, cone: Cone, pool: BufferPool, elementBytes: readonly number[]): void {
  const { nodes } = cone;
  const taken: PoolBuffer[] = [];
  const buffers: PoolBuffer[] = [];
  const blocks: PoolBuffer[] = [];
  try {
    for (const { bytes, sizeClass, donor } of plan.buffers) {
      const buffer = donor < 0 ? pool.alloc(bytes, sizeClass) : shared((nodes[donor] as Node).storage);
      buffers.push(buffer);
      taken.push(buffer);
    }
    for (const { bytes, sizeClass } of plan.blocks) {
      const block = pool.alloc(bytes, sizeClass);
      blocks.push(block);
      taken.push(block);
    }
    if (plan.dispatches.length > 0) pool.engine.submit(commandsOf(plan, nodes, buffers, blocks, elementBytes));
  } catch (error) {
    for (const buffer of taken) buffer.release();
    throw error;
  }
  // Storages first: letting sources go may give leaves back.
  const storages = plan.outputs.map(({ kind, at, strides, offset }): NodeStorage => {
    if (kind === 'empty') return { buffer: pool.alloc(0), view: { strides, offset: 0 } };
    if (kind === 'buffer') return { buffer: retained(buffers[at] as PoolBuffer), view: { strides, offset } };
    const leaf = (nodes[at] as Node).storage as NodeStorage;
    return { buffer: retained(leaf.buffer as PoolBuffer), view: { strides, offset: leaf.view.offset + offset } };
  });
  storages.forEach((storage, i) => {
    realise(nodes[cone.outputs[i] as number] as Node, storage);
  });
  for (const buffer of taken) buffer.release();
}

function retained(buffer: PoolBuffer): PoolBuffer {
  buffer.retain();
  return buffer;
}

function shared(storage: NodeStorage | null): PoolBuffer {
  return retained((storage as NodeStorage).buffer as PoolBuffer);
}

function commandsOf(
  plan: Plan,
  nodes: readonly Node[],
  buffers: readonly PoolBuffer[],
  blocks: readonly PoolBuffer[],
  elementBytes: readonly number[],
): Command[] {
  const bind = (b: BindingPlan): Binding => {
    switch (b.kind) {
      case 'leaf': {
        const { shape, dtype, storage } = nodes[b.local] as Node;
        const { buffer, view } = storage as NodeStorage;
        const first = viewBase(shape, view.strides, view.offset) * (elementBytes[dtypeInfo[dtype].id] as number);
        return { buffer: (buffer as PoolBuffer).memory, offset: first - b.shift, bytes: b.bytes };
      }
      case 'output':
        return { buffer: (buffers[b.buffer] as PoolBuffer).memory, offset: 0, bytes: b.bytes };
      case 'temp':
        return { buffer: (blocks[b.block] as PoolBuffer).memory, offset: b.offset, bytes: b.bytes };
      default:
        return b satisfies never;
    }
  };
  const commands: Command[] = [];
  for (const { kernel, bindings, scalars } of plan.dispatches) {
    const values = scalars.map((local) => ((nodes[local] as Node).attr as Attrs['scalar']).value);
    commands.push({ kind: 'dispatch', kernel, bindings: bindings.map(bind), scalars: values });
  }
  return commands;
}

/**
 * Nodes that become programs written with the builder: scatters, scans and sorts (templates/). Their sources are in memory.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { rowMajorStrides } from '../shape/view.ts';
import type { Lowered } from '../templates/contract.ts';
import type { TensorView } from '../templates/lines.ts';
import { lowerScan } from '../templates/scan.ts';
import type { ScatterOp, ScatterOperand } from '../templates/scatter-parts.ts';
import { lowerScatter } from '../templates/scatter-update.ts';
import { lowerSort } from '../templates/sort.ts';
import type { KernelDraft } from './draft.ts';
import type { Slot } from './lower.ts';
import type { Unit } from './order.ts';
import { isPlanOp, type PlanNode } from './plan-graph.ts';

/** A node's programs, made when its key is new, and what they bind. */
export interface ProgramUnit {
  readonly slots: readonly Slot[];
  readonly key: string;
  readonly lower: (caps: EngineCaps) => Lowered;
}

/** True for sources that such a node's programs do not read: numbers that are written into them. */
export function isBakedIn(node: PlanNode, source: PlanNode): boolean {
  return source.op === 'constant' && (node.op === 'scatter' || node.op === 'scatterAdd') && source !== node.src[1];
}

export function programsOf(unit: Unit): ProgramUnit {
  const [kernel] = unit as readonly [KernelDraft];
  const node = (kernel.stores[0] as { demand: { node: PlanNode } }).demand.node;
  const read: Slot[] = [];
  for (const source of node.src)
    if (!isBakedIn(node, source) && !read.some((slot) => slot.node === source))
      read.push({ node: source, access: 'read' });
  const slots: Slot[] = [{ node, access: 'write' }, ...read];
  const slotOf = (source: PlanNode): number => slots.findIndex((slot) => slot.node === source);
  const described = [node, ...node.src].map((n) =>
    isBakedIn(node, n) ? { constant: String((n as PlanNode<'constant'>).attr.value), sign: signOf(n) } : viewOf(n),
  );
  const key = `${node.op} ${JSON.stringify(node.attr)} ${JSON.stringify(described)} ${node.src.map(slotOf).join()}`;
  return { slots, key, lower: (caps) => lowerNode(node, slotOf, caps) };
}

/** JSON has no -0. */
function signOf(node: PlanNode): boolean {
  return Object.is((node as PlanNode<'constant'>).attr.value, -0);
}

function viewOf(node: PlanNode): TensorView {
  const { dtype, shape, leaf } = node;
  return {
    dtype,
    shape,
    strides: leaf?.strides ?? rowMajorStrides(shape),
    shift: leaf?.shift ?? 0,
    span: leaf?.span ?? node.size,
  };
}

function lowerNode(node: PlanNode, slotOf: (source: PlanNode) => number, caps: EngineCaps): Lowered {
  const out = viewOf(node);
  const source = (i: number): PlanNode => node.src[i] as PlanNode;
  if (isPlanOp(node, 'scan')) {
    const { axis, op, reverse } = node.attr;
    const x = { slot: slotOf(source(0)), view: viewOf(source(0)) };
    const factor = op === 'linear' ? { slot: slotOf(source(1)), view: viewOf(source(1)) } : null;
    return lowerScan({ axis, op, reverse, out, x, factor }, caps);
  }
  if (isPlanOp(node, 'argSort'))
    return lowerSort({ axis: node.attr.axis, descending: node.attr.descending, out, x: viewOf(source(0)) }, caps);
  if (isPlanOp(node, 'scatter') || isPlanOp(node, 'scatterAdd')) {
    const op: ScatterOp = isPlanOp(node, 'scatter') ? node.attr.op : 'add';
    const operand = (n: PlanNode): ScatterOperand =>
      isBakedIn(node, n) ? { constant: (n as PlanNode<'constant'>).attr.value } : { slot: slotOf(n), view: viewOf(n) };
    const index = { slot: slotOf(source(1)), view: viewOf(source(1)) };
    const [base, updates] = [operand(source(0)), operand(source(2))];
    return lowerScatter({ op, axis: node.attr.axis, out, base, index, updates }, caps);
  }
  throw new Error(`[programs] ${node.op} is not written with the builder`);
}

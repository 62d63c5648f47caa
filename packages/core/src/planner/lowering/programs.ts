/**
 * Nodes that become programs written with the builder: scatters, scans and sorts (programs/). Their sources are in memory. Comes with the definitions of
 * those primitives.
 */
import type { EngineCaps } from '../../engine/engine.ts';
import { rowMajorStrides } from '../../shape/view.ts';
import type { Lowered } from '../../codegen/lowering.ts';
import type { TensorView } from '../../programs/lines.ts';
import type { SlotView } from '../../programs/scan/scan.ts';
import type { ScatterOperand } from '../../programs/scatter/update.ts';
import type { Slot } from './lower.ts';
import { isBakedIn, type PlanNode } from '../capture/plan-graph.ts';

/** What the rule of a primitive makes programs from. */
export interface ProgramContext {
  readonly out: TensorView;
  /** A source in memory. */
  slot(i: number): SlotView;
  /** A source in memory, or a number that is written into the programs. */
  operand(i: number): ScatterOperand;
}

export type ProgramRule = (context: ProgramContext, caps: EngineCaps) => Lowered;

/** A node's programs, made when its key is new, and what they bind. */
export interface ProgramUnit {
  readonly slots: readonly Slot[];
  readonly key: string;
  readonly lower: (caps: EngineCaps) => Lowered;
}

/** The programs that a primitive's rule writes for a node. */
export function programsOf(node: PlanNode, rule: ProgramRule): ProgramUnit {
  const read: Slot[] = [];
  for (const source of node.src)
    if (!isBakedIn(node, source) && !read.some((slot) => slot.node === source))
      read.push({ node: source, access: 'read', shift: 0 });
  const slots: Slot[] = [{ node, access: 'write', shift: 0 }, ...read];
  const slotOf = (source: PlanNode): number => slots.findIndex((slot) => slot.node === source);
  const described = [node, ...node.src].map((n) =>
    isBakedIn(node, n) ? { constant: String((n as PlanNode<'constant'>).attr.value), sign: signOf(n) } : viewOf(n),
  );
  const key = `${node.op} ${JSON.stringify(node.attr)} ${JSON.stringify(described)} ${node.src.map(slotOf).join()}`;
  const source = (i: number): PlanNode => node.src[i]!;
  const slot = (i: number): SlotView => ({ slot: slotOf(source(i)), view: viewOf(source(i)) });
  const operand = (i: number): ScatterOperand =>
    isBakedIn(node, source(i)) ? { constant: (source(i) as PlanNode<'constant'>).attr.value } : slot(i);
  return { slots, key, lower: (caps) => rule({ out: viewOf(node), slot, operand }, caps) };
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

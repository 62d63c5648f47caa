/**
 * Large scatters: a copy of the base, then every update in order, each slice by one group.
 *
 * Additions to one element happen in the order of the updates, so results are the same bits everywhere without atomics.
 * Small scatters are reductions over all updates and never come here.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { ProgramBuilder } from '../kernel/builder.ts';
import { Exprs } from '../kernel/expr.ts';
import type { KNode } from '../kernel/ir.ts';
import { sizeOf } from '../shape/view.ts';
import type { Lowered } from '../templates/contract.ts';
import type { KernelDraft } from './draft.ts';
import { flatten, unflatten } from './index-map.ts';
import type { Slot } from './lower.ts';
import type { Unit } from './order.ts';
import { isPlanOp, type PlanNode } from './plan-graph.ts';

/** Elements that lie next to each other in a slice and are done by one group. */
const sliceWidth = 64;

export function lowerScatter(unit: Unit, _caps: EngineCaps): { slots: Slot[]; programs: Lowered } {
  const [kernel] = unit as readonly [KernelDraft];
  const node = (kernel.stores[0] as { demand: { node: PlanNode } }).demand.node;
  if (!isPlanOp(node, 'scatterAdd')) throw new Error(`[scatter] ${node.op} is no scatter`);
  const [base, which, updates] = node.src as [PlanNode, PlanNode, PlanNode];
  const { axis } = node.attr;
  const slots: Slot[] = [];
  const e = new Exprs();
  const slot = (of: PlanNode, access: Slot['access']): KNode => {
    slots.push({ node: of, access });
    return e.param(slots.length - 1, of.dtype, access, of.leaf?.span ?? of.size);
  };
  const out = slot(node, 'readwrite');
  const ofBase = slot(base, 'read');
  const ofWhich = slot(which, 'read');
  const ofUpdates = slot(updates, 'read');

  // A slice is everything but the indexed axis: the axes before it, and those after it cut into pieces.
  const before = node.shape.slice(0, axis);
  const after = node.shape.slice(axis + 1);
  const inner = sizeOf(after);
  const pieces = Math.ceil(inner / sliceWidth);
  const width = Math.min(inner, sliceWidth);
  const groups = sizeOf(before) * pieces;
  const b = new ProgramBuilder(e);
  const group = e.special('group', 0, groups);
  const outer = e.idiv(group, e.i32(pieces));
  const start = e.mul(e.irem(group, e.i32(pieces)), e.i32(width));
  const place = (of: PlanNode, index: readonly KNode[]): KNode =>
    flatten(e, of.shape, index, of.leaf?.strides, of.leaf?.shift);
  const within = (j: KNode): { at: KNode; gate: KNode | undefined } => {
    const at = e.add(start, j);
    return { at, gate: inner % width === 0 ? undefined : e.lt(at, e.i32(inner)) };
  };
  const lead = unflatten(e, before, outer);

  b.loop(node.shape[axis] as number, (i) => {
    b.loop(width, (j) => {
      const { at, gate } = within(j);
      const index = [...lead, i, ...unflatten(e, after, at)];
      b.store(out, place(node, index), b.load(ofBase, place(base, index), 1, gate), gate);
    });
  });
  b.loop(which.size, (t) => {
    const position = unflatten(e, which.shape, t);
    const i = b.load(ofWhich, place(which, position));
    b.loop(width, (j) => {
      const { at, gate } = within(j);
      const tail = unflatten(e, after, at);
      const to = place(node, [...lead, i, ...tail]);
      const update = b.load(ofUpdates, place(updates, [...lead, ...position, ...tail]), 1, gate);
      b.store(out, to, e.add(b.load(out, to, 1, gate), update), gate);
    });
  });
  const name = `scatterAdd_${node.shape.join('x')}`;
  const params = slots.map((s, i) => e.param(i, s.node.dtype, s.access, s.node.leaf?.span ?? s.node.size));
  const program = b.build({ name, params, scalars: [], grid: [groups, 1, 1] });
  return { slots, programs: { dispatches: [{ program, bindings: slots.map((_, param) => ({ param })) }], temps: [] } };
}

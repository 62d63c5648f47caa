/** Elements picked by indices, and sums into places given by indices: each is the other's gradient. */
import { gatherBatch, scatterBatch } from './batch/indexing.ts';
import { makeAgain, makeNode } from '../graph/build.ts';
import { gatherInfer, scatterAddInfer } from '../graph/infer-indexing.ts';
import type { Node } from '../graph/node.ts';
import { constant, zerosLike } from '../graph/primitives.ts';
import type { KNode } from '../ir/ir.ts';
import type { Index } from '../planner/lowering/index-map.ts';
import type { PlanNode } from '../planner/capture/plan-graph.ts';
import { moveIndex, movedFrom, ranges } from '../planner/lowering/sources.ts';
import { part, sum, widened } from '../planner/lowering/values.ts';
import { lowerScatter } from '../programs/scatter/update.ts';
import { programsOf } from '../planner/lowering/programs.ts';
import type { Definition } from '../graph/definition.ts';

export const gatherPrimitive: Definition<'gather'> = {
  op: 'gather',
  infer: gatherInfer,
  gradient: ({ grad, src, attr }) => {
    const [x, index] = src as [Node, Node];
    return [makeNode(scatterAddPrimitive, [constant(0, grad.dtype, x.shape), index, grad], { axis: attr.axis }), null];
  },
  tangent: ({ node, src, attr, tangents }) => makeAgain(node, [tangents[0] as Node, src[1] as Node], attr),
  batch: gatherBatch,
  sources: (c, node, index) => {
    const [x, which] = node.src as [PlanNode, PlanNode];
    const { axis } = node.attr;
    c.need(which, index.slice(axis, axis + which.shape.length));
    const base = movedFrom(x);
    // A bound number is nowhere in memory, and the same at every index.
    if (base.op === 'scalar') c.need(base, []);
    else c.needInMemory(base);
  },
  value: (c, demand, node) => {
    const [x, which] = node.src as [PlanNode, PlanNode];
    const { axis } = node.attr;
    const base = movedFrom(x);
    if (base.op === 'scalar') return part(demand, 1);
    let index: Index = [...demand.index.slice(0, axis), part(demand), ...demand.index.slice(axis + which.shape.length)];
    index = index.map((at, i) => (x.shape[i] === 1 ? c.e.i32(0) : at));
    for (let at = x; at !== base; at = at.src[0] as PlanNode) index = moveIndex(c.e, at, index);
    return c.load(demand, base, index, demand.gate);
  },
};

export const scatterAddPrimitive: Definition<'scatterAdd'> = {
  op: 'scatterAdd',
  infer: scatterAddInfer,
  gradient: ({ grad, src, attr, needs }) => [
    grad,
    null,
    needs[2] ? makeNode(gatherPrimitive, [grad, src[1] as Node], { axis: attr.axis }) : null,
  ],
  tangent: ({ node, src, attr, tangents }) => {
    const [base, index] = src as [Node, Node];
    const [byBase, , byUpdates] = tangents;
    if (byUpdates == null) return byBase ?? null;
    return makeAgain(node, [byBase ?? zerosLike(base), index, byUpdates], attr);
  },
  batch: scatterBatch,
  sources: (c, node, index) => {
    const [base, which, updates] = node.src as [PlanNode, PlanNode, PlanNode];
    const { axis } = node.attr;
    const own = c.loops(which.shape);
    c.need(base, index);
    c.needInside(which, own, null, ranges(own), false);
    c.needInside(updates, [...index.slice(0, axis), ...own, ...index.slice(axis + 1)], null, ranges(own), false);
  },
  value: ({ e }, demand, node) => {
    const [base, which, update] = [part(demand, 0), part(demand, 1), part(demand, 2)];
    const wide = widened(node.dtype);
    const here = e.eq(which, demand.index[node.attr.axis] as KNode);
    const added = e.where(here, e.cast(update, wide), e.constant(wide, 0));
    return e.cast(e.add(e.cast(base, wide), sum(e, demand, added)), node.dtype);
  },
  programs: (node) =>
    programsOf(node, ({ out, slot, operand }, caps) =>
      lowerScatter(
        { op: 'add', axis: node.attr.axis, out, base: operand(0), index: slot(1), updates: operand(2) },
        caps,
      ),
    ),
};

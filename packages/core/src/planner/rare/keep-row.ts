/** Serving demands of one kernel from a staged row, as fusion/decide.ts describes it. Pages load this with the first value that several loops of a kernel need. */
import type { Range } from '@polygrad/compiler/ir/expr';
import type { KNode } from '@polygrad/compiler/ir/ir';
import type { PlanNode } from '../capture/plan-graph.ts';
import { longestRow } from '../fusion/cost.ts';
import { type Demand, loop } from '../fusion/draft.ts';
import type { Partition } from '../fusion/partition.ts';
import { flatten } from '../lowering/index-map.ts';

/** Tries to serve demands of one kernel from a staged row. False if that is not possible; then nothing has changed. */
export function keepRow(p: Partition, node: PlanNode, demands: readonly Demand[], first: Demand): boolean {
  const { kernel } = first;
  const inner: number[] = [];
  for (let axis = 0; axis < node.shape.length; axis++) {
    if (demands.every((d) => d.index[axis] === first.index[axis])) continue;
    const whole = (at: KNode | undefined): boolean => at?.op === 'RANGE' && at.arg.extent === node.shape[axis];
    if (!demands.every((d) => whole(d.index[axis]))) return false;
    inner.push(axis);
  }
  const extents = inner.map((axis) => node.shape[axis]!);
  if (inner.length === 0 || extents.reduce((a, b) => a * b, 1) > longestRow) return false;

  const { e, free } = p.context;
  const around = new Set<Range>();
  first.index.forEach((at, axis) => {
    if (!inner.includes(axis)) for (const range of free.of(at)) around.add(range);
  });
  const isRow = kernel.rows.some((row) => row.size === around.size && [...around].every((range) => row.has(range)));
  if (!isRow) return false;

  const loops = extents.map((n) => loop(p.context, n, 'reduce'));
  const index = first.index.map((at, axis) => (inner.includes(axis) ? loops[inner.indexOf(axis)]! : at));
  const scope = [...kernel.axes.filter((axis) => around.has(axis)), ...loops];
  const from = p.demand(kernel, node, index, scope);
  p.inline(from);
  for (const demand of demands) {
    if (demand === from) continue;
    const at = flatten(
      e,
      extents,
      inner.map((axis) => demand.index[axis]!),
    );
    demand.inline = true;
    demand.staged = { from, ranges: loops, at };
  }
  return true;
}

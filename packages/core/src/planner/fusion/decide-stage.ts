/**
 * Rows kept inside a kernel: a value that several loops of one kernel need for every element of a row is computed once
 * per row into memory private to the group, instead of once per loop.
 *
 * Softmax is the example: exponentials are summed by one loop and divided by the sum in the next. Engines that cannot
 * hold the row compute it again (codegen/loops/optimize.ts); values are the same.
 */
import type { Range } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { longestRow } from './cost.ts';
import type { Demand } from './draft.ts';
import { flatten } from '../lowering/index-map.ts';
import type { Partition } from './partition.ts';
import type { PlanNode } from '../capture/plan-graph.ts';

/** Cheaper elements are computed again as fast as they are read. */
const worthKeeping = 8;

/** Computes demands on the node by way of a row, if they are of that kind; false if not, and nothing has changed. */
export function keepRow(p: Partition, node: PlanNode, demands: readonly Demand[]): boolean {
  const [first] = demands;
  if (first === undefined || demands.length < 2 || p.facts.cost[node.index]! < worthKeeping) return false;
  const { kernel } = first;
  if (kernel.contraction !== null || kernel.closed) return false;
  if (demands.some((d) => d.kernel !== kernel || d.operand || d.gate !== null)) return false;

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

  const loops = extents.map((n) => e.range(n, 'reduce'));
  const index = first.index.map((at, axis) => (inner.includes(axis) ? (loops[inner.indexOf(axis)] as KNode) : at));
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

/**
 * The loops of a kernel that may become a contraction's: those of its result, whatever shape it has been given on the way.
 *
 * A kernel runs through the elements of what it stores. If that is a contraction's result in another shape - images as vectors, heads
 * side by side, channels last - its axes are made of pieces of the contraction's, and each piece gets a loop of its own. With one loop for all
 * of them the contraction would find its rows and columns by division, and no tiles take that.
 */
import type { Shape } from '../../shape/view.ts';
import type { Facts } from '../fusion/cost.ts';
import { isPlanOp, type PlanNode } from '../capture/plan-graph.ts';

/** For each axis of `node`, the extents of the loops it consists of, outermost first; nothing where it is not known. */
export function anchorLoops(facts: Facts, node: PlanNode): number[][] {
  const anchor = facts.origin[node.index];
  if (anchor == null) return [];
  const way: PlanNode[] = [];
  for (let at = node; at !== anchor; ) {
    const next = at.src.find((s) => s.size === at.size && (s === anchor || facts.origin[s.index] === anchor));
    if (next === undefined) return [];
    way.push(at);
    at = next;
  }
  const grouped = isPlanOp(anchor, 'conv') ? anchor.attr.groups * anchor.attr.batchGroups : 1;
  // The features of a convolution lie in groups.
  let axes = anchor.shape.map((extent, axis) => (axis === 1 && grouped > 1 ? [grouped, extent / grouped] : [extent]));
  let { shape } = anchor;
  for (let at = way.pop(); at !== undefined; shape = at.shape, at = way.pop()) {
    const from = axes;
    if (isPlanOp(at, 'permute')) axes = at.attr.axes.map((axis) => from[axis]!);
    else if (at.op === 'reshape') axes = regrouped(from.flat(), at.shape);
    else if (at.shape.join() !== shape.join()) return [];
    if (axes.length === 0) return [];
  }
  return axes;
}

/** Loops in a row as axes of another shape, cut where it has to be; nothing where it does not go. */
function regrouped(loops: readonly number[], shape: Shape): number[][] {
  const left = [...loops].reverse();
  const axes: number[][] = [];
  for (let missing of shape) {
    const axis: number[] = [];
    while (missing > 1) {
      const extent = left.pop()!;
      const part = Math.min(extent, missing);
      if (missing % part !== 0 || extent % part !== 0) return [];
      if (part > 1) axis.push(part);
      if (part < extent) left.push(extent / part);
      missing /= part;
    }
    axes.push(axis);
  }
  return axes;
}

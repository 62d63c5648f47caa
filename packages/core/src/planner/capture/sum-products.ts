/**
 * Sums of products as one longer product: `a b + c d` is `[a c] [b; d]`.
 *
 * The gradient by a weight that is used once for every step of a sequence is such a sum, of as many products as there are steps. Each
 * would write a result as large as the weight, only for the next to read it. Putting the factors side by side moves less
 * where they are small against the result, and is one kernel in place of one for every step.
 */
import { isSmallFloat } from '../../shape/dtype.ts';
import { isPlanOp, type PlanGraph, type PlanNode } from './plan-graph.ts';

/** Elements copied that one kernel less, and its result, are worth. */
const worthCopying = (result: number): number => 2 * result + 2048;

/** `x + y`, which nobody else needs, as one product; null where they are not products of one form, or copies cost more than is saved. */
export function sumOfProducts(graph: PlanGraph, x: PlanNode, y: PlanNode): PlanNode | null {
  if (isPlanOp(x, 'permute') && isPlanOp(y, 'permute')) {
    if (x.attr.axes.join() !== y.attr.axes.join()) return null;
    const sum = sumOfProducts(graph, x.src[0] as PlanNode, y.src[0] as PlanNode);
    return sum && graph.make('permute', x.attr, [sum], x.shape, x.dtype);
  }
  if (!isPlanOp(x, 'dotGeneral') || !isPlanOp(y, 'dotGeneral') || isSmallFloat(x.dtype)) return null;
  if (x.shape.join() !== y.shape.join() || JSON.stringify(x.attr) !== JSON.stringify(y.attr)) return null;
  const { lhsContract, rhsContract } = x.attr;
  const axes = [lhsContract[0] as number, rhsContract[0] as number];
  const same = (a: PlanNode, b: PlanNode, axis: number): boolean =>
    a.dtype === b.dtype && a.shape.every((n, i) => i === axis || n === b.shape[i]);
  if (!x.src.every((s, i) => same(s, y.src[i] as PlanNode, axes[i] as number))) return null;
  if (y.src.reduce((n, s) => n + s.size, 0) > worthCopying(y.size)) return null;
  const src = x.src.map((s, i) => {
    const axis = axes[i] as number;
    const parts = [s, y.src[i] as PlanNode].flatMap((t) =>
      isPlanOp(t, 'concat') && t.attr.axis === axis ? t.src : [t],
    );
    const shape = s.shape.map((n, k) => (k === axis ? n + ((y.src[i] as PlanNode).shape[k] as number) : n));
    return graph.make('concat', { axis }, parts, shape, s.dtype);
  });
  return graph.make('dotGeneral', x.attr, src, x.shape, x.dtype);
}

/**
 * Sums of matrix products as one longer product: `a b + c d` is `[a c] [b; d]`. Pages load this with the first such sum.
 *
 * The gradient of a weight that every step of a sequence uses is such a sum, with a product per step. Each product
 * would write a result as large as the weight, and the next would read it. Concatenated factors move fewer bytes
 * if they are small compared with the result, and need one kernel instead of one per step.
 */
import { isSmallFloat } from '@polygrad/compiler/shape/dtype';
import { isPlanOp, type PlanGraph, type PlanNode, type Product, typicalOf } from '../capture/plan-graph.ts';

/** Copying up to this many elements costs less than one more kernel and its `result` elements. */
const worthCopying = (result: number): number => 2 * result + 2048;

/** `x + y` as one product, if both are products with equal attributes. Null otherwise, or if the copies cost more than they save. */
export function sumOfProducts(graph: PlanGraph, x: PlanNode, y: PlanNode): PlanNode | null {
  if (isPlanOp(x, 'permute') && isPlanOp(y, 'permute')) {
    if (x.attr.axes.join() !== y.attr.axes.join()) return null;
    const sum = sumOfProducts(graph, x.src[0]!, y.src[0]!);
    return sum && graph.make('permute', x.attr, [sum], x.shape, x.dtype);
  }
  if (!isPlanOp(x, 'dotGeneral') || !isPlanOp(y, 'dotGeneral') || isSmallFloat(x.dtype)) return null;
  if (x.shape.join() !== y.shape.join()) return null;
  const { lhsContract, rhsContract } = y.attr;
  const axes = [lhsContract[0]!, rhsContract[0]!];
  // A sum of lengths that are sizes is no size: there the factors get an axis that counts the products.
  const isSized = [x, y].some(({ src }) => src.some((s, i) => graph.sizedAmong(s.shape, [axes[i]!])));
  const [a, b] = [x, y].map((each) => (isSized ? graph.size!.counted(graph, each, y.attr) : each)) as [
    Product,
    Product,
  ];
  if (JSON.stringify(a.attr) !== JSON.stringify(b.attr)) return null;
  const along = isSized ? [0, 0] : axes;
  const same = (s: PlanNode, t: PlanNode, axis: number): boolean =>
    s.dtype === t.dtype && s.shape.every((n, i) => i === axis || n === t.shape[i]);
  if (!a.src.every((s, i) => same(s, b.src[i]!, along[i]!))) return null;
  if (y.src.reduce((n, s) => n + typicalOf(graph.size, s.size), 0) > worthCopying(typicalOf(graph.size, y.size)))
    return null;
  const src = a.src.map((s, i) => {
    const axis = along[i]!;
    const parts = [s, b.src[i]!].flatMap((t) => (isPlanOp(t, 'concat') && t.attr.axis === axis ? t.src : [t]));
    const shape = s.shape.map((n, k) => (k === axis ? n + b.src[i]!.shape[k]! : n));
    return graph.make('concat', { axis }, parts, shape, s.dtype);
  });
  return graph.make('dotGeneral', a.attr, src, x.shape, x.dtype);
}

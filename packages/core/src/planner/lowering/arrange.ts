/**
 * In which order the axes of a temporary lie in memory: that of what it is computed from.
 *
 * Images with their channels last are computed on as [N, C, ...spatial] views. A temporary stored in the order of its axes would be written
 * and read across the direction in which everything around it runs. What must be row-major (outputs, operands of programs) is.
 */
import type { Range } from '../../ir/expr.ts';
import type { FreeRanges } from '../../ir/free-ranges.ts';
import type { KNode } from '../../ir/ir.ts';
import { linearOf } from '../../ir/simplify/linear.ts';
import { rowMajorStrides, type Shape } from '../../shape/view.ts';
import type { Index } from './index-map.ts';

/** Fewer axes have no order of their own that many kernels share. */
const leastRank = 3;

/** Strides of a temporary of this shape whose element at `at` is `value`; row-major where nothing speaks for another order. */
export function stridesFor(shape: Shape, at: Index, value: KNode, free: FreeRanges): readonly number[] {
  const usual = rowMajorStrides(shape);
  const axes = shape.flatMap((n, axis) => (n === 1 ? [] : [axis]));
  if (axes.length < leastRank) return usual;
  const loops = axes.map((axis) => at[axis]!);
  if (!loops.every((x): x is Range => x.op === 'RANGE')) return usual;
  const reads = loadsOf(value).map((load) => stepsOf(load.src[1], loops, free));
  const whole = reads.filter((steps) => steps.every((step) => step > 0));
  if (whole.length === 0) return usual;
  const orders = whole.map((steps) =>
    axes
      .map((axis, i) => ({ axis, step: steps[i]! }))
      .sort((x, y) => y.step - x.step || x.axis - y.axis)
      .map((x) => x.axis),
  );
  const [order] = orders as [number[]];
  // Sources that disagree: somebody is read across in any order.
  if (orders.some((other) => other.join() !== order.join())) return usual;
  const strides = [...usual];
  let step = 1;
  for (const axis of [...order].reverse()) {
    strides[axis] = step;
    step *= shape[axis]!;
  }
  return strides;
}

/** How far apart in memory neighbours along each loop are, about; 0 where the index does not depend on it. */
function stepsOf(index: KNode, loops: readonly Range[], free: FreeRanges): number[] {
  const { terms, coefs } = linearOf(index);
  return loops.map((loop) =>
    terms.reduce((most, t, i) => (free.has(t, loop) ? Math.max(most, Math.abs(coefs[i]!)) : most), 0),
  );
}

function loadsOf(value: KNode): KNode[] {
  const found: KNode[] = [];
  const seen = new Set<KNode>();
  const stack: KNode[] = [value];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'LOAD' && n.src[0]?.op === 'PARAM') found.push(n);
    stack.push(...n.src);
  }
  return found;
}

/**
 * Numbers of a plan for a class of sizes at given sizes. Apart from what else families do (families/bound.ts): plans that are read need it, in pages too that
 * bring theirs.
 */
import type { SizedBytes } from './capture/plan-graph.ts';

/** A number of a plan with sizes in place of capacities. */
export function atSizes(n: number, capacities: readonly number[], sizes: readonly number[]): number {
  let value = n;
  for (let i = 0; i < capacities.length; i++) {
    const capacity = capacities[i]!;
    for (let left = n; left !== 0 && left % capacity === 0; left /= capacity) value = (value / capacity) * sizes[i]!;
  }
  return value;
}

/** The bytes at these sizes. */
export function bytesAt(
  { unit, shape, strides, more, fixed }: SizedBytes,
  capacities: readonly number[],
  sizes: readonly number[],
): number {
  if (strides === null) {
    let bytes = unit;
    for (let axis = 0; axis < shape.length; axis++) bytes *= atSizes(shape[axis]!, capacities, sizes);
    return bytes + more;
  }
  let reach = 0;
  for (let axis = 0; axis < shape.length; axis++)
    reach +=
      Math.abs(fixed === true ? strides[axis]! : atSizes(strides[axis]!, capacities, sizes)) *
      (atSizes(shape[axis]!, capacities, sizes) - 1);
  return reach * unit + more;
}

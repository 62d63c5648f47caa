/**
 * Which nodes one plan computes for every size of a class: those of which an element does not depend on how long the sized axes are.
 *
 * In a plan for several sizes a sized axis has the length of the greatest of them, its capacity; loops over it end at the size. So whatever counts
 * over a sized axis in steps would count wrong: a flip, a joint, a reshape that has a sized axis inside. Slices and paddings that begin as many
 * elements before the end for every size are told where that is (`startAt`).
 */
import { definitionOf } from '../../graph/definition.ts';
import type { Attrs, PrimitiveName } from '../../graph/node.ts';
import type { Shape } from '../../shape/view.ts';
import { type PlanNode, SizesRefused } from '../capture/plan-graph.ts';
import { reshapeGroups } from '../lowering/index-map.ts';

/** A node as far as sizes go: its shape at capacity, and the factors of its axes (sizes.ts). */
export interface SizedShape {
  readonly shape: Shape;
  readonly axes: readonly number[] | null;
}

const isSized = ({ axes }: SizedShape, axis: number): boolean => axes !== null && axes[axis]! > 0;

/** The sized axis comes first among some, but for axes of one element. */
function comesFirst(x: SizedShape, among: readonly number[]): boolean {
  const longer = among.filter((axis) => x.shape[axis] !== 1);
  return longer.every((axis, i) => i === 0 || !isSized(x, axis));
}

const all = ({ shape }: SizedShape): number[] => shape.map((_, axis) => axis);

/** True if elements follow from elements of the sources whatever the size is. `ends`: where it counts from the end (sizes.ts). */
export function isUniform(
  op: PrimitiveName,
  attr: unknown,
  node: SizedShape,
  src: readonly SizedShape[],
  ends: readonly number[] = [],
): boolean {
  if (node.axes === null && src.every(({ axes }) => axes === null)) return true;
  const [x] = src;
  const rule = rules[op] as Rule<PrimitiveName> | undefined;
  if (rule !== undefined) return rule(attr as never, node, x!, src, ends);
  const { role } = definitionOf(op);
  return role === 'elementwise' || role === 'pass' || role === 'materialize';
}

type Rule<P extends PrimitiveName> = (
  attr: Attrs[P],
  node: SizedShape,
  x: SizedShape,
  src: readonly SizedShape[],
  ends: readonly number[],
) => boolean;

const yes = (): boolean => true;

const rules: { readonly [P in PrimitiveName]?: Rule<P> } = {
  constant: yes,
  scalar: yes,
  iota: yes,
  randomBits: (_, node) => comesFirst(node, all(node)),
  permute: yes,
  expand: yes,
  // Stretches are looked into beside (addStretches).
  reshape: yes,
  slice: ({ start, step }, node, x, _, ends) =>
    all(x).every((axis) => {
      if (!isSized(x, axis)) return true;
      return step[axis] === 1 && isSized(node, axis) ? start[axis] === 0 : (ends[axis] ?? 0) > 0;
    }),
  pad: ({ low, high }, node, x, _, ends) =>
    all(x).every((axis) => {
      if (isSized(x, axis)) return low[axis] === 0 && high[axis] === 0;
      return !isSized(node, axis) || (ends[axis] ?? 0) > 0;
    }),
  concat: ({ axis }, node, _, src) => !isSized(node, axis) && src.every((s) => !isSized(s, axis)),
  reduce: yes,
  argReduce: ({ axes }, _, x) => comesFirst(x, axes),
  gather: yes,
  // Updates beyond the size are filled up where a program adds them (bound.ts).
  scatterAdd: yes,
  window: ({ size }, _, x) => outside(x, size.length),
  fold: ({ size }, _, x) => outside(x, 2 * size.length),
  dotGeneral: yes,
  // The batch, or channels that are summed over, as the batch is in the gradient by the kernel.
  conv: ({ groups, batchGroups }, node, _, src) =>
    groups === 1 &&
    batchGroups === 1 &&
    [node, ...src].every((s) => s.shape.every((_, axis) => axis < 2 || !isSized(s, axis))),
};

/** No sized axis is among the last ones. */
const outside = (x: SizedShape, last: number): boolean =>
  all(x).every((axis) => !isSized(x, axis) || axis < x.shape.length - last);

/**
 * Adds what a reshape makes of sized axes: [4, n, 3] as [4 n, 3] is one axis of four stretches, [n, 4] as [4 n] is one of one. By factor, as all
 * axes of one extent must be alike. False where an axis would not be whole stretches, or two would not be alike.
 */
export function addStretches(stretches: Map<number, number>, x: SizedShape, y: SizedShape): boolean {
  // Nothing is computed of what has no elements.
  if (y.shape.includes(0)) return true;
  for (const { first, at, start, axis } of reshapeGroups(x.shape, y.shape)) {
    const before = sizedIn(x, first, at);
    const after = sizedIn(y, start, axis);
    if (before === null && after === null) continue;
    if (before === null || after === null || before.more || after.more) return false;
    // What was one axis from the beginning is as many stretches as it is taken apart into.
    const whole = stretches.get(before.factor) ?? (before.outer < after.outer ? after.outer / before.outer : 1);
    const count = (before.outer * whole) / after.outer;
    if (!isPart(whole, before.factor) || !isPart(count, after.factor)) return false;
    if ((stretches.get(after.factor) ?? count) !== count) return false;
    stretches.set(before.factor, whole);
    if ((stretches.get(after.factor) ?? count) !== count) return false;
    stretches.set(after.factor, count);
  }
  return true;
}

const isPart = (count: number, factor: number): boolean => Number.isInteger(count) && factor % count === 0;

/** The sized axis among some, with how many elements the axes before it have; null if there is none. */
function sizedIn(
  x: SizedShape,
  from: number,
  to: number,
): { readonly factor: number; readonly outer: number; readonly more: boolean } | null {
  const sizedAxes = all(x).filter((axis) => axis >= from && axis < to && isSized(x, axis));
  const [axis] = sizedAxes;
  if (axis === undefined) return null;
  const outer = x.shape.slice(from, axis).reduce((a, b) => a * b, 1);
  return { factor: x.axes![axis]!, outer, more: sizedAxes.length > 1 };
}

// Extents that the planner makes, in a graph at a capacity: one that a sum made a multiple of it is no size. The numbers of a cone are
// none (families.ts), but nodes that take the place of others have shapes of their own: joints, padding, windows.

/** Throws for a node with sized axes other than those of its sources, in places where a sum is not. */
export function checkExtents(
  capacity: number,
  op: PrimitiveName,
  attr: unknown,
  src: readonly PlanNode[],
  shape: Shape,
): void {
  if (op === 'reshape' || op === 'expand' || src.length === 0) return;
  shape.forEach((n, axis) => {
    if (n === 0 || n % capacity !== 0) return;
    if (!src.some((s) => s.shape.includes(n)) || isSum(op, attr, src[0]!.shape, shape, axis))
      throw new SizesRefused(`${op} of shape [${shape}]`);
  });
}

/** True if the length of an axis is a sum, or begins with one. */
function isSum(op: PrimitiveName, attr: unknown, from: Shape, shape: Shape, axis: number): boolean {
  switch (op) {
    case 'concat':
      return axis === (attr as Attrs['concat']).axis;
    case 'pad':
      return from[axis] !== shape[axis];
    case 'slice':
      return from[axis]! % shape[axis]! !== 0;
    case 'conv':
      return axis > 1;
    case 'window':
      return axis >= from.length - (attr as Attrs['window']).size.length;
    case 'fold':
      return axis >= shape.length - (attr as Attrs['fold']).size.length;
    default:
      return false;
  }
}

/**
 * Which nodes one plan can compute for every size of a class ("uniform" nodes): their elements do not depend on the length of sized axes.
 *
 * In such a plan a sized axis has the length of the greatest size, its capacity, and loops over it end at the bound size. So an operation that
 * counts along a sized axis in steps would go wrong: a flip, a reshape with a sized axis inside. Concatenations, slices and paddings count along it
 * too: they are told the bound size, and where they begin (`startAt`).
 */
import { definitionOf } from '../../graph/definition.ts';
import type { Attrs, PrimitiveName } from '../../graph/node.ts';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { type PlanNode, SizesRefused } from '../capture/plan-graph.ts';
import { reshapeGroups } from '../lowering/index-map.ts';

/** The shape of a node at capacity, and which axes are sizes; null where none is. */
export interface SizedShape {
  readonly shape: Shape;
  readonly axes: readonly boolean[] | null;
}

const isSized = ({ axes }: SizedShape, axis: number): boolean => axes !== null && axes[axis]!;

/** True if the sized axis is the first of some axes, apart from axes of one element. */
function comesFirst(x: SizedShape, among: readonly number[]): boolean {
  const longer = among.filter((axis) => x.shape[axis] !== 1);
  return longer.every((axis, i) => i === 0 || !isSized(x, axis));
}

const all = ({ shape }: SizedShape): number[] => shape.map((_, axis) => axis);

/** True if elements follow from elements of the sources whatever the size is. */
export function isUniform(op: PrimitiveName, attr: unknown, node: SizedShape, src: readonly SizedShape[]): boolean {
  if (node.axes === null && src.every(({ axes }) => axes === null)) return true;
  const [x] = src;
  const rule = rules[op] as Rule<PrimitiveName> | undefined;
  if (rule !== undefined) return rule(attr as never, node, x!, src);
  const { role } = definitionOf(op);
  return role === 'elementwise' || role === 'pass' || role === 'materialize';
}

type Rule<P extends PrimitiveName> = (
  attr: Attrs[P],
  node: SizedShape,
  x: SizedShape,
  src: readonly SizedShape[],
) => boolean;

const yes = (): boolean => true;

const rules: { readonly [P in PrimitiveName]?: Rule<P> } = {
  constant: yes,
  scalar: yes,
  iota: yes,
  randomBits: yes,
  permute: yes,
  expand: yes,
  // Reshapes are checked separately (stretchesOf).
  reshape: yes,
  slice: ({ step }, node, x) => all(x).every((axis) => step[axis] === 1 || !isSized(x, axis) || !isSized(node, axis)),
  pad: yes,
  concat: yes,
  reduce: yes,
  argReduce: ({ axes }, _, x) => comesFirst(x, axes),
  gather: yes,
  // Programs pad updates beyond the size (bound.ts).
  scatterAdd: yes,
  scatter: (_, node) => all(node).every((axis) => !isSized(node, axis)),
  window: ({ size }, _, x) => outside(x, size.length),
  fold: ({ size }, _, x) => outside(x, 2 * size.length),
  dotGeneral: yes,
  // The length of a head is fixed.
  attention: (_, node, _x, src) => [node, ...src.slice(0, 3)].every((s) => !isSized(s, s.shape.length - 1)),
  attentionGradient: (_, node, _x, src) => [node, ...src.slice(0, 5)].every((s) => !isSized(s, s.shape.length - 1)),
  // Sized: the batch, or channels that are summed over, as the batch is in the gradient of the kernel.
  conv: ({ groups, batchGroups }, node, _, src) =>
    groups === 1 &&
    batchGroups === 1 &&
    [node, ...src].every((s) => s.shape.every((_, axis) => axis < 2 || !isSized(s, axis))),
};

/** Axes along which an operation counts: those of its sources and of its result must have one stretch there. */
export function countedAxes(op: PrimitiveName, attr: unknown, shape: Shape, src: readonly Shape[]): readonly number[] {
  if (op === 'argReduce') return (attr as Attrs['argReduce']).axes;
  if (op === 'concat') return [(attr as Attrs['concat']).axis];
  if (op !== 'slice' && op !== 'pad') return [];
  // Along an axis that stays whole nothing is counted.
  return shape.flatMap((n, axis) => (n === src[0]![axis] ? [] : [axis]));
}

/** True if none of the last axes is sized. */
const outside = (x: SizedShape, last: number): boolean =>
  all(x).every((axis) => !isSized(x, axis) || axis < x.shape.length - last);

/**
 * What reshapes make of sized axes: [4, n, 3] as [4 n, 3] has one axis of four stretches, [n, 4] as [4 n] one of one stretch. By extent, because
 * all axes of one extent must agree. Null where a reshape does not keep stretches whole.
 */
export function stretchesOf(
  isSize: (n: number) => boolean,
  reshapes: readonly (readonly [from: Shape, to: Shape])[],
): ReadonlyMap<number, readonly number[]> | null {
  // For each extent, the number of elements behind each of its cuts.
  const cuts = new Map<number, ReadonlySet<number>>();
  for (let isNew = true; isNew; ) {
    isNew = false;
    for (const [from, to] of reshapes) {
      // Empty nodes are not computed.
      if (to.includes(0)) continue;
      if (sizeOf(from) !== sizeOf(to)) return null;
      for (const { first, at, start, axis } of reshapeGroups(from, to)) {
        const sides = [from.slice(first, at), to.slice(start, axis)];
        if (!sides.some((side) => side.some(isSize))) continue;
        const all = new Set(sides.flatMap((side) => cutsOf(side, cuts)));
        const ordered = [...all].sort((a, b) => a - b);
        if (ordered.some((cut, i) => cut % (ordered[i - 1] ?? 1) !== 0)) return null;
        // A cut of fixed length has its elements next to each other.
        const needed = ordered.filter((cut, i) => isSize(cut / (ordered[i - 1] ?? 1)));
        for (const side of sides)
          eachAxis(side, (n, behind) => {
            const known = cuts.get(n) ?? new Set();
            const own = needed.filter((cut) => cut > behind && cut < behind * n).map((cut) => cut / behind);
            if (own.every((cut) => known.has(cut))) return;
            cuts.set(n, new Set([...known, ...own]));
            isNew = true;
          });
      }
    }
  }
  return new Map(
    [...cuts].map(([n, known]) => {
      const ordered = [n, ...[...known].sort((a, b) => b - a), 1];
      return [n, ordered.slice(1).map((cut, i) => ordered[i]! / cut)];
    }),
  );
}

/** Visits axes from the last to the first, with the number of elements behind them. */
function eachAxis(shape: Shape, visit: (n: number, behind: number) => void): void {
  let behind = 1;
  for (const n of [...shape].reverse()) {
    visit(n, behind);
    behind *= n;
  }
}

/** The number of elements behind each cut, between axes and within them. */
function cutsOf(shape: Shape, cuts: ReadonlyMap<number, ReadonlySet<number>>): number[] {
  const all: number[] = [];
  eachAxis(shape, (n, behind) => {
    all.push(behind);
    for (const cut of cuts.get(n) ?? []) all.push(cut * behind);
  });
  return all;
}

// Extents that the planner itself makes, at capacity. An extent that is a multiple of it only because it is a sum is no size. The
// numbers of a captured graph are checked in families.ts; nodes that the planner puts in place of others bring new shapes: concatenation, padding, windows.

/** Throws for a node with sized axes that its sources lack, except where the extent is a sum. */
export function checkExtents(
  isSize: (n: number) => boolean,
  op: PrimitiveName,
  attr: unknown,
  src: readonly PlanNode[],
  shape: Shape,
): void {
  if (op === 'reshape' || op === 'expand' || src.length === 0) return;
  shape.forEach((n, axis) => {
    if (!isSize(n)) return;
    if (!src.some((s) => s.shape.includes(n)) || isSum(op, attr, src[0]!.shape, shape, axis))
      throw new SizesRefused(`${op} of shape [${shape}]`);
  });
}

/** True if the length of an axis is, or begins with, a sum. */
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

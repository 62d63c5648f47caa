/**
 * Index arithmetic of movements: which element of the source an element of the result is.
 *
 * Everything is an int32 expression from the plan's factory, which simplifies it; axes of size 1 always have
 * the constant 0 as index. A gate says where the source element exists.
 */
import type { Exprs } from '@polygrad/compiler/ir/expr';
import type { KNode } from '@polygrad/compiler/ir/ir';
import type { Shape } from '@polygrad/compiler/shape/view';

export type Index = readonly KNode[];

/** Position in row-major order, or with the strides given, in elements. */
export function flatten(e: Exprs, shape: Shape, index: Index, strides?: readonly number[], offset = 0): KNode {
  let flat: KNode = e.i32(offset);
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const n = shape[axis]!;
    const stride = strides === undefined ? step : strides[axis]!;
    if (n !== 1 && stride !== 0) flat = e.add(flat, e.mul(index[axis]!, stride));
    step *= n;
  }
  return flat;
}

/** The inverse: index of the element at a row-major position. */
export function unflatten(e: Exprs, shape: Shape, flat: KNode): KNode[] {
  const index = new Array<KNode>(shape.length);
  let rest = flat;
  let outermost = shape.findIndex((n) => n !== 1);
  if (outermost < 0) outermost = 0;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const n = shape[axis]!;
    if (n === 1) index[axis] = e.i32(0);
    else if (axis === outermost) index[axis] = rest;
    else {
      index[axis] = e.irem(rest, n);
      rest = e.idiv(rest, n);
    }
  }
  return index;
}

/** Axes of two shapes with equal products: [first, at) of the one, [start, axis) of the other. */
export interface ReshapeGroup {
  readonly first: number;
  readonly at: number;
  readonly start: number;
  readonly axis: number;
}

/** The groups of axes that a reshape matches. Both shapes have the same number of elements, at least one. */
export function reshapeGroups(from: Shape, to: Shape): ReshapeGroup[] {
  const groups: ReshapeGroup[] = [];
  let at = 0;
  let axis = 0;
  while (axis < to.length) {
    const start = axis;
    const first = at;
    let want = to[axis++]!;
    let have = 1;
    while (have !== want) {
      if (have < want) have *= from[at++]!;
      else want *= to[axis++]!;
    }
    groups.push({ first, at, start, axis });
  }
  return groups;
}

/** Index into `to` of the element at `index` in `from`; axes are matched in groups of equal products. */
export function reshapeIndex(e: Exprs, from: Shape, to: Shape, index: Index): KNode[] {
  return reshapeGroups(from, to).flatMap(({ first, at, start, axis }) => {
    const flat = flatten(e, from.slice(first, at), index.slice(first, at));
    return unflatten(e, to.slice(start, axis), flat);
  });
}

/** Index into a source of an elementwise node: leading axes that it lacks are dropped, axes of size 1 stay at 0. */
export function broadcastIndex(e: Exprs, source: Shape, rank: number, index: Index): KNode[] {
  const missing = rank - source.length;
  return source.map((n, axis) => (n === 1 ? e.i32(0) : index[axis + missing]!));
}

/** `low <= x < high`, without the comparisons that bounds already prove (the factory folds them). */
export function within(e: Exprs, x: KNode, low: number, high: number): KNode {
  return e.and(e.le(e.i32(low), x), e.lt(x, e.i32(high)));
}

/** The conjunction of two gates; null is always true. */
export function bothGates(e: Exprs, a: KNode | null, b: KNode | null): KNode | null {
  if (a === null || isTrue(a)) return b === null || isTrue(b) ? null : b;
  return b === null || isTrue(b) ? a : e.and(a, b);
}

export function isTrue(gate: KNode): boolean {
  return gate.op === 'CONST' && gate.arg.value !== 0;
}

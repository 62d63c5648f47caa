/** Parts of a tensor by position: slices, single indices, equal parts, reversed and rolled axes. Tensors in memory give views without a copy. */
import * as p from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { beginOp } from '../../graph/scope.ts';
import { checkCount, checkList, mostParts, normalizeAxes, normalizeAxis } from '../../shape/axes.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { say } from '../../shape/shown.ts';
import { resolveSlices, type SliceSpec } from '../../shape/slices.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { Tensor } from '../../tensor/types.ts';
import { axisOf, type JoinAxis } from './joining.ts';

/** The slice of a node. */
function sliced(op: string, node: Node, specs: readonly SliceSpec[]): Node {
  const { start, length, step, kept } = resolveSlices(op, node.shape, specs);
  return p.reshape(p.slice(node, start, length, step), kept);
}

/**
 * A part of a tensor, one specification per axis (missing ones mean the whole axis). Source: Python's slicing, Array API indexing.
 *
 * @param specs per axis: a range with start, stop and step, a position that removes the axis, or null
 * @throws ShapeError for positions outside and too many specifications
 *
 * @example
 * slice(arange(10), [{ start: 1, stop: -1, step: 3 }]); // [1, 4, 7]
 * slice(zeros([4, 5]), [0, { stop: 2 }]).shape; // [2]
 */
export function slice(x: Tensor, specs: readonly SliceSpec[]): Tensor {
  beginOp('slice');
  return wrap(sliced('slice', nodeOf(x), specs));
}

/**
 * The same as slice, with the specifications as arguments.
 *
 * @example
 * at(tensor([[1, 2], [3, 4]]), 1, 0); // 3
 */
export function at(x: Tensor, ...specs: SliceSpec[]): Tensor {
  beginOp('at');
  return wrap(sliced('at', nodeOf(x), specs));
}

/**
 * `length` elements of an axis from `start`. Source: PyTorch `narrow`.
 *
 * @throws ShapeError if the part does not lie inside
 *
 * @example
 * narrow(arange(10), 0, 2, 3); // [2, 3, 4]
 */
export function narrow(x: Tensor, axis: number, start: number, length: number): Tensor {
  beginOp('narrow');
  const node = nodeOf(x);
  const { shape } = node;
  const which = normalizeAxis('narrow', axis, shape.length);
  const n = shape[which]!;
  const from = Number.isInteger(start) && start < 0 ? start + n : start;
  if (!Number.isInteger(from) || !Number.isInteger(length) || from < 0 || length < 0 || from + length > n) {
    throw new ShapeError(
      'narrow',
      say`part out of range: ${length} elements from ${start} of axis ${which} in shape ${showShape(shape)}; must lie within 0 .. ${n}`,
      [shape],
    );
  }
  return wrap(
    sliced(
      'narrow',
      node,
      shape.map((_, i) => (i === which ? { start: from, stop: from + length } : null)),
    ),
  );
}

/**
 * One position of an axis; the axis disappears. Source: PyTorch `select`.
 *
 * @throws ShapeError if the position lies outside
 *
 * @example
 * select(tensor([[1, 2], [3, 4]]), 1, 0); // [1, 3]
 */
export function select(x: Tensor, axis: number, index: number): Tensor {
  beginOp('select');
  const node = nodeOf(x);
  const which = normalizeAxis('select', axis, node.shape.length);
  return wrap(
    sliced(
      'select',
      node,
      node.shape.map((_, i) => (i === which ? index : null)),
    ),
  );
}

/**
 * The order along axes reversed; along all if none are named. Source: Array API `flip`.
 *
 * @example
 * flip(tensor([1, 2, 3])); // [3, 2, 1]
 */
export function flip(x: Tensor, axis?: number | readonly number[]): Tensor {
  beginOp('flip');
  const node = nodeOf(x);
  return wrap(p.flip(node, normalizeAxes('flip', axis, node.shape.length)));
}

/**
 * Elements moved along axes; what leaves at one end comes in at the other. Source: Array API `roll`.
 *
 * @param shift places, per axis where several are named
 * @param axis one or several; without it the tensor is rolled as one row
 *
 * @example
 * roll(tensor([1, 2, 3]), 1); // [3, 1, 2]
 */
export function roll(x: Tensor, shift: number | readonly number[], axis?: number | readonly number[]): Tensor {
  beginOp('roll');
  let node = nodeOf(x);
  const { shape } = node;
  if (axis === undefined) node = p.reshape(node, [shape.reduce((a, b) => a * b, 1)]);
  if (typeof shift !== 'number') checkList('roll', 'shift', shift, '[1, 2]');
  const named = axis === undefined ? [] : typeof axis === 'number' ? [axis] : axis;
  checkList('roll', 'axes', named, '[0, 1]');
  const axes = axis === undefined ? [0] : named.map((a) => normalizeAxis('roll', a, shape.length));
  const shifts = typeof shift === 'number' ? axes.map(() => shift) : shift;
  if (shifts.length !== axes.length)
    throw new ArgumentError(
      'roll',
      say`numbers differ: ${shifts.length} shifts for ${axes.length} axes; give one per axis`,
    );
  const broken = shifts.find((by) => !Number.isInteger(by));
  if (broken !== undefined) throw new ArgumentError('roll', say`bad shift: ${broken}; must be an integer`);
  axes.forEach((which, i) => {
    const n = node.shape[which]!;
    if (n === 0) return;
    const by = ((shifts[i]! % n) + n) % n;
    if (by === 0) return;
    const part = (start: number, stop: number): Node =>
      sliced(
        'roll',
        node,
        node.shape.map((_, a) => (a === which ? { start, stop } : null)),
      );
    node = p.concat([part(n - by, n), part(0, n - by)], which);
  });
  return wrap(p.reshape(node, shape));
}

// Tensors taken apart along an axis.

/** Sizes of the parts of an axis of n in parts of `size`, the last one smaller. */
function evenSizes(op: string, n: number, size: number): number[] {
  checkCount(op, 'number of parts', Math.ceil(n / size), 0, mostParts);
  const sizes: number[] = [];
  for (let from = 0; from < n; from += size) sizes.push(Math.min(size, n - from));
  return n === 0 ? [0] : sizes;
}

function cutAt(op: string, x: Tensor, axis: number, sizes: (n: number) => number[]): Tensor[] {
  beginOp(op);
  const node = nodeOf(x);
  const which = normalizeAxis(op, axis, node.shape.length);
  const step = node.shape.map(() => 1);
  let from = 0;
  return sizes(node.shape[which]!).map((size) => {
    const start = node.shape.map((_, i) => (i === which && size > 0 ? from : 0));
    from += size;
    return wrap(
      p.slice(
        node,
        start,
        node.shape.map((n, i) => (i === which ? size : n)),
        step,
      ),
    );
  });
}

/**
 * A tensor cut along an axis, in parts of `size` (the last may be smaller) or of the sizes listed. Source: PyTorch `split`.
 *
 * @param axis one axis, or { axis }; 0
 * @throws ShapeError if listed sizes do not add up
 *
 * @example
 * split(arange(5), 2); // [0, 1], [2, 3], [4]
 */
export function split(x: Tensor, size: number | readonly number[], axis?: JoinAxis): Tensor[] {
  return cutAt('split', x, axisOf('split', axis), (n) => {
    if (typeof size !== 'number') {
      checkList('split', 'sizes', size, '[2, 3]');
      const total = size.reduce((sum, part) => sum + checkCount('split', 'size', part), 0);
      if (total !== n)
        throw new ShapeError(
          'split',
          say`sizes do not add up: ${showShape(size)} makes ${total}, the axis has ${n}; make them equal`,
        );
      return [...size];
    }
    return evenSizes('split', n, checkCount('split', 'size', size, 1, Number.MAX_SAFE_INTEGER));
  });
}

/**
 * A tensor cut along an axis in at most `count` parts of equal size (the last may be smaller). Source: PyTorch `chunk`.
 *
 * @param axis one axis, or { axis }; 0
 *
 * @example
 * chunk(arange(5), 2); // [0, 1, 2], [3, 4]
 */
export function chunk(x: Tensor, count: number, axis?: JoinAxis): Tensor[] {
  return cutAt('chunk', x, axisOf('chunk', axis), (n) => {
    checkCount('chunk', 'count', count, 1, Number.MAX_SAFE_INTEGER);
    return evenSizes('chunk', n, Math.max(1, Math.ceil(n / count)));
  });
}

/**
 * The slices of a tensor along an axis, which disappears. Source: PyTorch `unbind`.
 *
 * @param axis one axis, or { axis }; 0
 *
 * @example
 * unbind(tensor([[1, 2], [3, 4]])); // [1, 2], [3, 4]
 */
export function unbind(x: Tensor, axis?: JoinAxis): Tensor[] {
  beginOp('unbind');
  const node = nodeOf(x);
  const which = normalizeAxis('unbind', axisOf('unbind', axis), node.shape.length);
  checkCount('unbind', 'number of parts', node.shape[which]!, 0, mostParts);
  const step = node.shape.map(() => 1);
  const rest = node.shape.filter((_, i) => i !== which);
  return Array.from({ length: node.shape[which]! }, (_, index) => {
    const start = node.shape.map((_n, i) => (i === which ? index : 0));
    return wrap(
      p.reshape(
        p.slice(
          node,
          start,
          node.shape.map((n, i) => (i === which ? 1 : n)),
          step,
        ),
        rest,
      ),
    );
  });
}

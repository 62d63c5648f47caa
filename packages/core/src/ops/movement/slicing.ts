/** Parts of a tensor by position: slices, single indices, reversed and rolled axes. Tensors in memory give views without a copy. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { beginOp } from '../../graph/scope.ts';
import { checkList, normalizeAxes, normalizeAxis } from '../../shape/axes.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { resolveSlices, type SliceSpec } from '../../shape/slices.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { say } from '../../shape/shown.ts';
import type { Tensor } from '../../tensor/types.ts';

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

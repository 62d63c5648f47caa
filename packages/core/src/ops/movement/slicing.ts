/**
 * Parts of a tensor by position, and tensors with elements put around them. Parts are slices, single indices, equal parts, reversed and rolled
 * axes; tensors in memory give views without a copy.
 */
import * as p from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import {
  checkCount,
  checkList,
  checkShape,
  givenAxes,
  mostParts,
  normalizeAxes,
  normalizeAxis,
  resolveSlices,
  type SliceSpec,
} from '@polygrad/compiler/shape/axes';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { checkWeak } from '@polygrad/compiler/shape/promotion';
import { say } from '@polygrad/compiler/shape/shown';
import type { Shape } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { AxesArgument, Tensor } from '../../tensor/types.ts';
import { extended, type FilledFrom, partOf } from '../images/image.ts';
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
 * @returns an axis less for each position, the dtype of x
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
 * @returns an axis less for each position, the dtype of x
 * @throws ShapeError for positions outside and too many specifications
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
 * @returns the shape of x with `length` at the axis, the dtype of x
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
 * @returns one axis less, the dtype of x
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
 * @param axis one axis or several, or { axis }
 * @returns the shape and dtype of x
 * @throws ShapeError for axes outside the shape
 *
 * @example
 * flip(tensor([1, 2, 3])); // [3, 2, 1]
 */
export function flip(x: Tensor, axis?: AxesArgument): Tensor {
  beginOp('flip');
  const node = nodeOf(x);
  return wrap(p.flip(node, normalizeAxes('flip', givenAxes('flip', axis), node.shape.length)));
}

/**
 * Elements moved along axes; what leaves at one end comes in at the other. Source: Array API `roll`.
 *
 * @param shift places, per axis where several are named
 * @param axis one axis or several, or { axis }; without it the tensor is rolled as one row
 * @returns the shape and dtype of x
 * @throws ShapeError for axes outside the shape, ArgumentError for shifts that are no integers or not one per axis
 *
 * @example
 * roll(tensor([1, 2, 3]), 1); // [3, 1, 2]
 */
export function roll(x: Tensor, shift: number | readonly number[], axis?: AxesArgument): Tensor {
  beginOp('roll');
  const chosen = givenAxes('roll', axis);
  let node = nodeOf(x);
  const { shape } = node;
  if (chosen === undefined) node = p.reshape(node, [shape.reduce((a, b) => a * b, 1)]);
  if (typeof shift !== 'number') checkList('roll', 'shift', shift, '[1, 2]');
  const named = chosen === undefined ? [] : typeof chosen === 'number' ? [chosen] : chosen;
  checkList('roll', 'axes', named, '[0, 1]');
  const axes = chosen === undefined ? [0] : named.map((a) => normalizeAxis('roll', a, shape.length));
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

// Tensors split along an axis.

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
 * @returns parts that differ from x in one size, of the dtype of x
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
 * @returns parts that differ from x in one size, of the dtype of x
 * @throws ArgumentError for counts that are no positive integers
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
 * @returns tensors of one axis less, of the dtype of x
 * @throws ShapeError for an axis outside the shape
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

// pad: elements put around a tensor, constant or taken from the tensor itself.

/** Widths of pad: one number, one pair for all axes, or a pair per axis. */
export type PadWidths = number | readonly [number, number] | readonly (readonly [number, number])[];

/** Options of `pad`. */
export interface PadOptions {
  /** What the new elements are: `value`, the mirrored inside without or (symmetric) with the edge, the edge, the other end. Default 'constant'. */
  readonly mode?: 'constant' | FilledFrom;
  /** For mode 'constant'. Default 0. */
  readonly value?: number;
}

const modes: readonly string[] = ['constant', 'reflect', 'symmetric', 'replicate', 'circular'];

/**
 * Elements put around a tensor; negative widths cut instead, and mode 'circular' takes from what is left. Source: NumPy `pad`, PyTorch `pad` for
 * negative widths.
 *
 * @param widths before and after each axis: a number for all, a pair for all axes, or one pair per axis
 * @param options mode 'constant' (value 0), 'reflect', 'symmetric', 'replicate' or 'circular'
 * @returns the shape of x with its sizes changed by the widths, the dtype of x
 * @throws ShapeError where a mode has too few elements to take from
 *
 * @example
 * pad(tensor([1, 2]), [[1, 2]], { value: 9 }); // [9, 1, 2, 9, 9]
 */
export function pad(x: Tensor, widths: PadWidths, options: PadOptions = {}): Tensor {
  checkNames('pad', options, 'mode value');
  return compose('pad', () => {
    const node = nodeOf(x);
    const { shape } = node;
    const pairs = readWidths(widths, shape);
    const low = pairs.map(([before]) => before);
    const high = pairs.map(([, after]) => after);
    const mode = options.mode ?? 'constant';
    if (!modes.includes(mode))
      throw new ArgumentError('pad', say`unknown mode: ${shown(mode)}; must be one of ${modes.join(', ')}`);
    const { value = 0 } = options;
    // 0 and 1 mean false and true.
    if (node.dtype !== 'bool' || typeof value !== 'number') checkWeak('pad', value, node.dtype);
    if (mode === 'constant') return wrap(padded(node, low, high, value));
    let result = node;
    pairs.forEach(([before, after], axis) => {
      if (before !== 0 || after !== 0) result = filled(result, axis, before, after, mode);
    });
    return wrap(result);
  });
}

/**
 * `extended`. Where one end cuts more than the axis has, it also cuts what is put at the other end; but nothing is left that could go
 * around.
 */
function filled(node: Node, axis: number, before: number, after: number, mode: FilledFrom): Node {
  const n = node.shape[axis]!;
  const put = (low: number, high: number): Node => extended('pad', node, axis, low, high, mode);
  if (mode === 'circular') return put(before, after);
  if (-before > n) return partOf(put(0, after), axis, -before, n + after);
  if (-after > n) return partOf(put(before, 0), axis, 0, n + after + before);
  return put(before, after);
}

function readWidths(widths: PadWidths, shape: Shape): (readonly [number, number])[] {
  let pairs: (readonly [number, number])[];
  if (typeof widths !== 'number') checkList('pad', 'widths', widths, '[[1, 1], [0, 2]]');
  if (typeof widths === 'number') pairs = shape.map(() => [widths, widths]);
  else if (widths.length === 2 && typeof widths[0] === 'number')
    pairs = shape.map(() => widths as readonly [number, number]);
  else pairs = [...(widths as readonly (readonly [number, number])[])];
  if (pairs.length !== shape.length)
    throw new ShapeError(
      'pad',
      say`wrong number of widths: ${pairs.length} for shape ${showShape(shape)}; give one pair per axis`,
      [shape],
    );
  pairs.forEach((pair, axis) => {
    checkList('pad', `widths of axis ${axis}`, pair, '[1, 1]');
    const [before, after] = pair;
    if (
      pair.length !== 2 ||
      !Number.isInteger(before) ||
      !Number.isInteger(after) ||
      before + after + shape[axis]! < 0
    ) {
      throw new ArgumentError(
        'pad',
        say`bad widths: ${showShape(pair)} for axis ${axis} of shape ${showShape(shape)}; must be two integers that leave no negative size`,
      );
    }
  });
  checkShape(
    'pad',
    pairs.map(([before, after], axis) => shape[axis]! + before + after),
  );
  return pairs;
}

/** Constant padding where negative widths cut. */
function padded(node: Node, low: readonly number[], high: readonly number[], value: number): Node {
  const cut = low.some((n) => n < 0) || high.some((n) => n < 0);
  let inner = node;
  if (cut) {
    const start = low.map((n) => Math.max(0, -n));
    const length = node.shape.map((n, i) => Math.max(0, n - start[i]! - Math.max(0, -high[i]!)));
    inner = p.slice(
      node,
      length.includes(0) ? start.map(() => 0) : start,
      length,
      start.map(() => 1),
    );
  }
  // One end may cut more than the axis has: then that much less is padded at the other end.
  const put = (widths: readonly number[]): number[] =>
    widths.map((n, i) => Math.max(0, Math.min(n, node.shape[i]! + low[i]! + high[i]!)));
  return p.pad(inner, put(low), put(high), value);
}

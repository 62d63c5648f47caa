/** Parts of a tensor by position: slices, single indices, reversed and padded axes. Tensors in memory give views without a copy. */
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { beginOp, compose } from '../graph/scope.ts';
import { normalizeAxes, normalizeAxis } from '../shape/axes.ts';
import { ArgumentError, ShapeError, showShape } from '../shape/errors.ts';
import type { Shape } from '../shape/view.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';

/** Part of one axis, with Python's meaning: negative positions count from the end, `stop` is not included, out of range is cut. */
export interface SliceRange {
  readonly start?: number | null;
  readonly stop?: number | null;
  /** Not zero; negative steps go backwards. Default 1. */
  readonly step?: number;
}

/** A slice per axis: a range, a position (the axis disappears), or null for the whole axis. */
export type SliceSpec = SliceRange | number | null;

function sliceRange(op: string, range: SliceRange, n: number): { start: number; length: number; step: number } {
  const step = range.step ?? 1;
  if (!Number.isInteger(step) || step === 0) throw new ArgumentError(op, `bad step: ${step}; must be an integer other than 0`);
  const place = (value: number | null | undefined, low: number, high: number, fallback: number): number => {
    if (value === null || value === undefined) return fallback;
    if (!Number.isInteger(value)) throw new ArgumentError(op, `bad position: ${value}; must be an integer`);
    return Math.min(Math.max(value < 0 ? value + n : value, low), high);
  };
  const [low, high] = step > 0 ? [0, n] : [-1, n - 1];
  const start = place(range.start, low, high, step > 0 ? 0 : n - 1);
  const stop = place(range.stop, low, high, step > 0 ? n : -1);
  const length = Math.max(0, Math.ceil((stop - start) / step));
  return { start: length === 0 ? 0 : start, length, step };
}

/** Position 0 .. n-1 of an index that may be negative. */
function position(op: string, index: number, axis: number, shape: Shape): number {
  const n = shape[axis] as number;
  if (!Number.isInteger(index) || index < -n || index >= n) {
    throw new ShapeError(op, `index out of range: ${index} for axis ${axis} of shape ${showShape(shape)}; must be an integer from ${-n} to ${n - 1}`, [shape]);
  }
  return index < 0 ? index + n : index;
}

function sliced(op: string, node: Node, specs: readonly SliceSpec[]): Node {
  const { shape } = node;
  if (specs.length > shape.length) {
    throw new ShapeError(op, `too many slices: ${specs.length} for shape ${showShape(shape)}; give at most one per axis`, [shape]);
  }
  const start: number[] = [];
  const length: number[] = [];
  const step: number[] = [];
  const kept: number[] = [];
  shape.forEach((n, axis) => {
    const spec = specs[axis] ?? null;
    if (typeof spec === 'number') {
      start.push(position(op, spec, axis, shape));
      length.push(1);
      step.push(1);
      return;
    }
    const range = sliceRange(op, spec ?? {}, n);
    start.push(range.start);
    length.push(range.length);
    step.push(range.step);
    kept.push(range.length);
  });
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
  const n = shape[which] as number;
  const from = start < 0 ? start + n : start;
  if (!Number.isInteger(from) || !Number.isInteger(length) || from < 0 || length < 0 || from + length > n) {
    throw new ShapeError('narrow', `part out of range: ${length} elements from ${start} of axis ${which} in shape ${showShape(shape)}; must lie within 0 .. ${n}`, [shape]);
  }
  return wrap(sliced('narrow', node, shape.map((_, i) => (i === which ? { start: from, stop: from + length } : null))));
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
  return wrap(sliced('select', node, node.shape.map((_, i) => (i === which ? index : null))));
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
  const axes = axis === undefined ? [0] : (typeof axis === 'number' ? [axis] : axis).map((a) => normalizeAxis('roll', a, shape.length));
  const shifts = typeof shift === 'number' ? axes.map(() => shift) : shift;
  if (shifts.length !== axes.length) throw new ArgumentError('roll', `numbers differ: ${shifts.length} shifts for ${axes.length} axes; give one per axis`);
  axes.forEach((which, i) => {
    const n = node.shape[which] as number;
    if (n === 0) return;
    const by = (((shifts[i] as number) % n) + n) % n;
    if (by === 0) return;
    const part = (start: number, stop: number): Node => sliced('roll', node, node.shape.map((_, a) => (a === which ? { start, stop } : null)));
    node = p.concat([part(n - by, n), part(0, n - by)], which);
  });
  return wrap(p.reshape(node, shape));
}

/** Widths of pad: one number, one pair for all axes, or a pair per axis. */
export type PadWidths = number | readonly [number, number] | readonly (readonly [number, number])[];

export interface PadOptions {
  /** What the new elements are: `value`, the mirrored inside without or (symmetric) with the edge, the edge, the other end. Default 'constant'. */
  readonly mode?: 'constant' | 'reflect' | 'symmetric' | 'replicate' | 'circular';
  /** For mode 'constant'. Default 0. */
  readonly value?: number;
}

/**
 * Elements put around a tensor; negative widths cut instead. Source: NumPy `pad`.
 *
 * @param widths before and after each axis: a number for all, a pair for all axes, or one pair per axis
 * @param options mode 'constant' (value 0), 'reflect', 'symmetric', 'replicate' or 'circular'
 * @throws ShapeError where a mode has too few elements to take from
 *
 * @example
 * pad(tensor([1, 2]), [[1, 2]], { value: 9 }); // [9, 1, 2, 9, 9]
 */
export function pad(x: Tensor, widths: PadWidths, options: PadOptions = {}): Tensor {
  return compose('pad', () => {
    const node = nodeOf(x);
    const { shape } = node;
    const pairs = readWidths(widths, shape);
    const low = pairs.map(([before]) => before);
    const high = pairs.map(([, after]) => after);
    const mode = options.mode ?? 'constant';
    if (mode === 'constant') return wrap(padded(node, low, high, options.value ?? 0));
    let result = node;
    shape.forEach((n, axis) => {
      const [before, after] = pairs[axis] as readonly [number, number];
      if (before === 0 && after === 0) return;
      result = extended(result, axis, n, before, after, mode);
    });
    return wrap(result);
  });
}

function readWidths(widths: PadWidths, shape: Shape): (readonly [number, number])[] {
  let pairs: (readonly [number, number])[];
  if (typeof widths === 'number') pairs = shape.map(() => [widths, widths]);
  else if (widths.length === 2 && typeof widths[0] === 'number') pairs = shape.map(() => widths as readonly [number, number]);
  else pairs = [...(widths as readonly (readonly [number, number])[])];
  if (pairs.length !== shape.length) throw new ShapeError('pad', `wrong number of widths: ${pairs.length} for shape ${showShape(shape)}; give one pair per axis`, [shape]);
  pairs.forEach((pair, axis) => {
    const [before, after] = pair;
    if (!Number.isInteger(before) || !Number.isInteger(after) || before + after + (shape[axis] as number) < 0) {
      throw new ArgumentError('pad', `bad widths: [${before}, ${after}] for axis ${axis} of shape ${showShape(shape)}; must be integers that leave no negative size`);
    }
  });
  return pairs;
}

/** Constant padding where negative widths cut. */
export function padded(node: Node, low: readonly number[], high: readonly number[], value: number): Node {
  const cut = low.some((n) => n < 0) || high.some((n) => n < 0);
  let inner = node;
  if (cut) {
    const start = low.map((n) => Math.max(0, -n));
    const length = node.shape.map((n, i) => Math.max(0, n - (start[i] as number) - Math.max(0, -(high[i] as number))));
    inner = p.slice(node, length.includes(0) ? start.map(() => 0) : start, length, start.map(() => 1));
  }
  return p.pad(inner, low.map((n) => Math.max(0, n)), high.map((n) => Math.max(0, n)), value);
}

function extended(node: Node, axis: number, n: number, before: number, after: number, mode: 'reflect' | 'symmetric' | 'replicate' | 'circular'): Node {
  const most = mode === 'reflect' ? n - 1 : mode === 'replicate' ? (n > 0 ? Number.POSITIVE_INFINITY : 0) : n;
  if (Math.max(before, after) > most) {
    throw new ShapeError('pad', `width too large for mode '${mode}': [${before}, ${after}] for axis ${axis} of size ${n}; at most ${most}`, [node.shape]);
  }
  const part = (range: SliceRange): Node => sliced('pad', node, node.shape.map((_, i) => (i === axis ? range : null)));
  const edge = (index: number, count: number): Node => {
    const one = part({ start: index, stop: index + 1 });
    return p.expand(one, one.shape.map((size, i) => (i === axis ? count : size)));
  };
  const pieces: Node[] = [];
  const inside = part({ start: Math.max(0, -before), stop: n - Math.max(0, -after) });
  if (before > 0) {
    if (mode === 'replicate') pieces.push(edge(0, before));
    else if (mode === 'circular') pieces.push(part({ start: n - before }));
    else pieces.push(p.flip(part(mode === 'reflect' ? { start: 1, stop: before + 1 } : { stop: before }), [axis]));
  }
  pieces.push(inside);
  if (after > 0) {
    if (mode === 'replicate') pieces.push(edge(n - 1, after));
    else if (mode === 'circular') pieces.push(part({ stop: after }));
    else pieces.push(p.flip(part(mode === 'reflect' ? { start: n - 1 - after, stop: n - 1 } : { start: n - after }), [axis]));
  }
  return p.concat(pieces, axis);
}

/** Axis and slice arguments: negative axes, lists of axes, the shapes they leave, and parts of axes. */
import { ArgumentError, ShapeError, showShape } from './errors.ts';
import { checkNames, type OptionNames } from './options.ts';
import { isList, isPlain, say, shown, shownList } from './shown.ts';
import { type Shape, sizeOf, whole } from './view.ts';

/** Most axes a user's shape has, and most levels nested data has. */
export const mostAxes = 64;
/** Most entries in a list of arguments (not of data), and most tensors or keys that a call makes. */
export const mostParts: number = 2 ** 20;
/** Most elements that are worked out one by one on the host. */
export const mostOnHost: number = 2 ** 27;
/** Most elements of a tensor. */
export const mostElements: number = 2 ** 31 - 1;

/**
 * Throws unless an argument is a list without gaps; TypeScript says so as well, but not to programs in JavaScript. Its entries are the
 * caller's to check.
 */
export function checkList(op: string, what: string, value: unknown, example: string, most: number = mostParts): void {
  if (!isList(value))
    throw new ArgumentError(op, say`bad ${what}: ${shown(value)}; must be an array, such as ${example}`);
  if (value.length > most)
    throw new ArgumentError(op, say`too many entries in ${what}: ${value.length}; the limit is ${most}`);
  for (let i = 0; i < value.length; i++)
    if (!(i in value))
      throw new ArgumentError(op, say`bad ${what}: nothing at position ${i} of ${value.length}; fill it`);
}

/** Throws unless a number of things is a whole number from `least` to `most`: before any loop over it. Returns it. */
export function checkCount(
  op: string,
  what: string,
  count: number,
  least: number = 0,
  most: number = mostElements,
): number {
  if (!Number.isInteger(count) || count < least)
    throw new ArgumentError(op, say`bad ${what}: ${shown(count)}; must be an integer of at least ${least}`);
  if (count > most) throw new ArgumentError(op, say`bad ${what}: ${count} is too large; the limit is ${most}`);
  return whole(count);
}

/** Throws unless options that are needed are there. */
export function checkOptions(op: string, options: unknown, example: string): void {
  if (!isPlain(options))
    throw new ArgumentError(op, say`bad options: ${shown(options)}; must be an object, such as ${example}`);
}

/** Axis in 0 .. rank-1 for an axis in -rank .. rank-1. Throws ShapeError in the name of `op`. */
export function normalizeAxis(op: string, axis: number, rank: number): number {
  if (!Number.isInteger(axis) || axis < -rank || axis >= rank) {
    const range = rank === 0 ? 'a scalar has no axes' : `must be an integer from ${-rank} to ${rank - 1}`;
    throw new ShapeError(op, say`axis out of range: ${shown(axis)} for ${rank} axes; ${range}`);
  }
  return axis < 0 ? axis + rank : axis;
}

/** Sorted distinct axes; all axes if `axis` is undefined. Throws in the name of `op` for repeated axes. */
export function normalizeAxes(op: string, axis: number | readonly number[] | undefined, rank: number): number[] {
  if (axis === undefined) return Array.from({ length: rank }, (_, i) => i);
  if (typeof axis === 'number') return [normalizeAxis(op, axis, rank)];
  checkList(op, 'axes', axis, '[0, 1]', mostAxes);
  const axes = axis.map((a) => normalizeAxis(op, a, rank));
  // Mostly they are: sorting makes lists of its own.
  if (axes.some((a, i) => a < axes[i - 1]!)) axes.sort((a, b) => a - b);
  for (let i = 1; i < axes.length; i++) {
    if (axes[i] === axes[i - 1]) {
      throw new ShapeError(op, say`axis named twice: ${axes[i]} in ${showShape(axis)}; name each axis once`);
    }
  }
  return axes;
}

/** Axes and `keepDims` as options give them. */
interface AxesOptions {
  readonly axis?: number | readonly number[] | undefined;
  readonly keepDims?: boolean | undefined;
}

/** The axes of a reduction. */
export interface Axes {
  /** Sorted, distinct, non-negative. */
  readonly axes: number[];
  readonly keepDims: boolean;
}

/** Reads an axis argument for a tensor of `rank` axes; `names` are those of all options. Throws ShapeError in the name of `op`. */
export function readAxes<Options extends AxesOptions, const Text extends string>(
  op: string,
  argument: number | readonly number[] | Options | undefined,
  rank: number,
  names?: OptionNames<Options, Text>,
): Axes {
  if (typeof argument === 'object' && argument !== null && !isList(argument)) {
    checkNames<unknown, string>(op, argument, names ?? 'axis keepDims?');
    const { axis, keepDims } = argument as { axis?: number | readonly number[]; keepDims?: boolean };
    return { axes: normalizeAxes(op, axis, rank), keepDims: keepDims ?? false };
  }
  return { axes: normalizeAxes(op, argument as number | readonly number[] | undefined, rank), keepDims: false };
}

/** Options, where a number by itself is their axis. */
export function optionsOf<Options extends { readonly axis?: number | undefined }>(argument: number | Options): Options {
  return typeof argument === 'number' ? ({ axis: argument } as Options) : argument;
}

/** The axes of an argument, by themselves or as `{ axis }`, as they are given. */
export function givenAxes(
  op: string,
  argument: number | readonly number[] | Pick<AxesOptions, 'axis'> | undefined,
): number | readonly number[] | undefined {
  if (typeof argument !== 'object' || argument === null || isList(argument)) return argument;
  checkNames<unknown, string>(op, argument, 'axis');
  return (argument as Pick<AxesOptions, 'axis'>).axis;
}

/** Reads an argument that names one axis, by itself or as `{ axis }`; `names` are those of all options. */
export function readAxis<Options extends { readonly axis?: number | undefined }, const Text extends string>(
  op: string,
  argument: number | Options | undefined,
  fallback: number,
  rank: number,
  names?: OptionNames<Options, Text>,
): number {
  if (typeof argument !== 'number') checkNames<unknown, string>(op, argument, names ?? 'axis');
  const axis = typeof argument === 'number' ? argument : (argument?.axis ?? fallback);
  // A scalar counts as one element along one axis.
  if (rank === 0 && (axis === 0 || axis === -1)) return 0;
  return normalizeAxis(op, axis, rank);
}

/** The shape without `axes` (sorted). */
export function dropAxes(shape: Shape, axes: readonly number[]): number[] {
  const kept: number[] = [];
  let next = 0;
  for (let i = 0; i < shape.length; i++) {
    if (axes[next] === i) next++;
    else kept.push(shape[i]!);
  }
  return kept;
}

/** The shape with `axes` (sorted) set to 1. */
export function keepAxes(shape: Shape, axes: readonly number[]): number[] {
  const kept = [...shape];
  for (let i = 0; i < axes.length; i++) kept[axes[i]!] = 1;
  return kept;
}

/** A copy of a shape. Throws unless every size is a non-negative integer and the number of elements fits 31 bits. */
export function checkShape(op: string, shape: Shape): number[] {
  checkList(op, 'shape', shape, '[2, 3]', mostAxes);
  const checked: number[] = [];
  let size = 1;
  for (const n of shape) {
    if (!Number.isInteger(n) || n < 0) {
      throw new ArgumentError(
        op,
        say`bad size in shape ${showShape(shape)}: ${shown(n)}; sizes are non-negative integers`,
      );
    }
    size *= n;
    checked.push(whole(n));
  }
  if (size > mostElements) {
    throw new ShapeError(
      op,
      say`too many elements: shape ${showShape(shape)} has ${size}; the limit is ${mostElements}`,
    );
  }
  return checked;
}

/** Replaces one -1 by the size that makes the number of elements right. */
export function resolveShape(op: string, from: Shape, to: Shape): number[] {
  checkList(op, 'shape', to, '[2, -1]', mostAxes);
  for (const n of to) if (typeof n !== 'number') checkShape(op, to);
  const shape = [...to];
  const open = shape.indexOf(-1);
  if (open >= 0) {
    if (shape.indexOf(-1, open + 1) >= 0)
      throw new ArgumentError(op, say`two sizes are -1: ${showShape(to)}; only one can be worked out`);
    const rest = shape.reduce((n, size, i) => (i === open ? n : n * size), 1);
    const total = sizeOf(from);
    if (rest === 0 || total % rest !== 0) {
      throw new ShapeError(
        op,
        say`-1 cannot be worked out: ${total} elements in ${showShape(from)} for ${showShape(to)}; ${rest} must divide ${total}`,
        [from],
      );
    }
    shape[open] = total / rest;
  }
  return checkShape(op, shape);
}

/** Expands a number to one entry per spatial axis. */
export function perAxis(
  op: string,
  name: string,
  value: number | readonly number[],
  rank: number,
  least: number,
): number[] {
  if (typeof value !== 'number') checkList(op, name, value, '[1, 1]', mostAxes);
  const list = typeof value === 'number' ? new Array<number>(rank).fill(value) : [...value];
  if (list.length !== rank) {
    throw new ArgumentError(
      op,
      say`wrong number of entries in ${name}: ${list.length} for ${rank} axes; give a number or one entry per axis`,
    );
  }
  for (const n of list) {
    if (!Number.isInteger(n) || n < least) {
      throw new ArgumentError(op, say`bad ${name}: ${shown(n)}; must be an integer of at least ${least}`);
    }
  }
  return list;
}

/** Extent of an axis of n elements with `dilation - 1` holes between neighbours. */
export function dilated(n: number, dilation: number): number {
  return n === 0 ? 0 : (n - 1) * dilation + 1;
}

// Slice arguments: ranges with Python's meaning and positions, as start, length and step of every axis.

/** Part of one axis, with Python's meaning: negative positions count from the end, `stop` is not included, out of range is cut. */
export interface SliceRange {
  readonly start?: number | null;
  readonly stop?: number | null;
  /** Not zero; negative steps go backwards. Default 1. */
  readonly step?: number;
}

/** A slice per axis: a range, a position (the axis disappears), or null for the whole axis. */
export type SliceSpec = SliceRange | number | null;

const rangeKeys: readonly string[] = ['start', 'stop', 'step'];

/** Anything else, such as a pair of numbers, would read as a range without limits. */
function requireRange(op: string, spec: SliceRange, axis: number): void {
  if (isPlain(spec) && Object.keys(spec).every((key) => rangeKeys.includes(key))) return;
  throw new ArgumentError(
    op,
    say`bad slice of axis ${axis}: ${isList(spec) ? shownList(spec) : isPlain(spec) ? say`an object of ${Object.keys(spec).slice(0, 9).join(', ')}` : spec}; must be a position, null, or a range as { start: 0, stop: 2, step: 1 }`,
  );
}

function sliceRange(op: string, range: SliceRange, n: number): { start: number; length: number; step: number } {
  const step = range.step ?? 1;
  if (!Number.isInteger(step) || step === 0)
    throw new ArgumentError(op, say`bad step: ${step}; must be an integer other than 0`);
  const place = (value: number | null | undefined, low: number, high: number, fallback: number): number => {
    if (value === null || value === undefined) return fallback;
    if (!Number.isInteger(value)) throw new ArgumentError(op, say`bad position: ${value}; must be an integer`);
    return Math.min(Math.max(value < 0 ? value + n : value, low), high);
  };
  const [low, high] = step > 0 ? [0, n] : [-1, n - 1];
  const start = place(range.start, low, high, step > 0 ? 0 : n - 1);
  const stop = place(range.stop, low, high, step > 0 ? n : -1);
  const length = whole(Math.max(0, Math.ceil((stop - start) / step)));
  return { start: length === 0 ? 0 : start, length, step };
}

/** Position 0 .. n-1 of an index that may be negative. */
function position(op: string, index: number, axis: number, shape: Shape): number {
  const n = shape[axis]!;
  if (!Number.isInteger(index) || index < -n || index >= n) {
    throw new ShapeError(
      op,
      say`index out of range: ${index} for axis ${axis} of shape ${showShape(shape)}; must be an integer from ${-n} to ${n - 1}`,
      [shape],
    );
  }
  return index < 0 ? index + n : index;
}

/** Slices worked out for a shape; `kept` are the sizes of the axes that stay. */
export interface ResolvedSlices {
  readonly start: number[];
  readonly length: number[];
  readonly step: number[];
  readonly kept: number[];
}

/** Works out one specification per axis; missing ones mean the whole axis. Throws in the name of `op`. */
export function resolveSlices(op: string, shape: Shape, specs: readonly SliceSpec[]): ResolvedSlices {
  checkList(op, 'slices', specs, '[0, { start: 1 }]');
  if (specs.length > shape.length) {
    throw new ShapeError(
      op,
      say`too many slices: ${specs.length} for shape ${showShape(shape)}; give at most one per axis`,
      [shape],
    );
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
    if (spec !== null) requireRange(op, spec, axis);
    const range = sliceRange(op, spec ?? {}, n);
    start.push(range.start);
    length.push(range.length);
    step.push(range.step);
    kept.push(range.length);
  });
  return { start, length, step, kept };
}

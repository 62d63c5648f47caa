/** Slice arguments: ranges with Python's meaning and positions, as start, length and step of every axis. */
import { checkList } from './axes.ts';
import { ArgumentError, ShapeError, showShape } from './errors.ts';
import { isList, isPlain, say, shownList } from './shown.ts';
import type { Shape } from './view.ts';

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
  const length = Math.max(0, Math.ceil((stop - start) / step));
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

/** Tensors as text: nested arrays, and rows aligned as NumPy prints them. */
import { type DType, isFloat, type TypedArray } from '../shape/dtype.ts';
import { getElement } from '../shape/host.ts';
import { type Shape, sizeOf } from '../shape/view.ts';
import type { NestedValues } from './types.ts';

/** Elements as nested arrays; the element itself for shape []. */
export function nest(data: TypedArray, shape: Shape, dtype: DType): NestedValues {
  let at = 0;
  const build = (axis: number): NestedValues => {
    if (axis === shape.length) return getElement(data, dtype, at++);
    return Array.from({ length: shape[axis] as number }, () => build(axis + 1));
  };
  return build(0);
}

/** Elements shown at each end of a long axis. */
const edge = 3;
/** Tensors with more elements are shortened. */
const threshold = 1000;

/** Formats a column of values to one width. Floats get up to `precision` digits after the point, as many as they need. */
function formatter(
  values: readonly (number | boolean | bigint)[],
  dtype: DType,
): (value: number | boolean | bigint) => string {
  if (!isFloat(dtype)) {
    const width = values.reduce<number>((w, value) => Math.max(w, String(value).length), 0);
    return (value) => String(value).padStart(width);
  }
  const numbers = values.map(Number);
  const finite = numbers.filter((value) => Number.isFinite(value) && value !== 0).map(Math.abs);
  const largest = Math.max(0, ...finite);
  const smallest = Math.min(Number.POSITIVE_INFINITY, ...finite);
  const exponential =
    largest >= 1e8 || (finite.length > 0 && (smallest < 1e-4 || largest / smallest > 1000) && smallest < 1e-4);
  const precision = 8;
  const trimmed = (value: number): string => {
    const text = exponential ? value.toExponential(precision) : value.toFixed(precision);
    return text.replace(/\.?0+(?=e|$)/, (zeros) => (zeros.startsWith('.') ? '.' : ''));
  };
  const text = (value: number): string => {
    if (Number.isNaN(value)) return 'nan';
    if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
    const short = dtype === 'float64' ? value : Number(value.toPrecision(dtype === 'float32' ? 8 : 4));
    const raw = trimmed(short);
    return raw.includes('.') ? raw : `${raw}.`;
  };
  const fraction = Math.max(
    0,
    ...numbers
      .map((value) => text(value))
      .map((t) => (t.includes('.') && !t.includes('e') ? t.length - t.indexOf('.') - 1 : 0)),
  );
  const padded = (value: number): string => {
    const t = text(value);
    return t.includes('.') && !t.includes('e') ? t + ' '.repeat(fraction - (t.length - t.indexOf('.') - 1)) : t;
  };
  const width = Math.max(0, ...numbers.map((value) => padded(value).length));
  return (value) => padded(Number(value)).padStart(width);
}

/** Positions of an axis that are shown; -1 stands for those left out. */
function shown(n: number, shorten: boolean): number[] {
  const all = Array.from({ length: n }, (_, i) => i);
  return shorten && n > 2 * edge ? [...all.slice(0, edge), -1, ...all.slice(n - edge)] : all;
}

/**
 * Elements as text, like NumPy's `print`: rows aligned, long axes shortened.
 *
 * @example
 * formatArray(new Float32Array([1, 2.5]), [2], 'float32'); // '[1.  2.5]'
 */
export function formatArray(data: TypedArray, shape: Shape, dtype: DType): string {
  const shorten = sizeOf(shape) > threshold;
  const strides = shape.map((_, i) => sizeOf(shape.slice(i + 1)));
  const values: (number | boolean | bigint)[] = [];
  const visit = (axis: number, from: number): void => {
    if (axis === shape.length) values.push(getElement(data, dtype, from));
    else
      for (const i of shown(shape[axis] as number, shorten))
        if (i >= 0) visit(axis + 1, from + i * (strides[axis] as number));
  };
  if (sizeOf(shape) > 0) visit(0, 0);
  const format = formatter(values, dtype);
  const write = (axis: number, from: number): string => {
    if (axis === shape.length) return format(getElement(data, dtype, from));
    if (shape[axis] === 0) return '[]';
    const last = axis === shape.length - 1;
    const parts = shown(shape[axis] as number, shorten).map((i) =>
      i < 0 ? '...' : write(axis + 1, from + i * (strides[axis] as number)),
    );
    return `[${parts.join(last ? ' ' : `${'\n'.repeat(shape.length - axis - 1)}${' '.repeat(axis + 1)}`)}]`;
  };
  return write(0, 0);
}

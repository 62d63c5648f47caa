/** Values of scatters, scans and sorts by definition, for graph-values.ts: plain loops over the lines of an axis. */
import type { Attrs } from '../graph/attrs.ts';
import { type Shape, sizeOf } from '../shape/view.ts';

interface Values {
  readonly shape: Shape;
  readonly values: Float64Array;
}

/** Elements before, along and after an axis: element (i, j, k) lies at (i * n + j) * inner + k. */
function around(shape: Shape, axis: number): { outer: number; n: number; inner: number } {
  return { outer: sizeOf(shape.slice(0, axis)), n: shape[axis]!, inner: sizeOf(shape.slice(axis + 1)) };
}

/** The larger, or with sign -1 the smaller, of two; NaN wins. */
function extreme(a: number, b: number, sign: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.NaN;
  return sign * a >= sign * b ? a : b;
}

function combined(op: 'set' | 'sum' | 'prod' | 'max' | 'min', before: number, value: number): number {
  if (op === 'set') return value;
  if (op === 'sum') return before + value;
  if (op === 'prod') return before * value;
  return extreme(before, value, op === 'max' ? 1 : -1);
}

export function scatterValues(base: Values, index: Values, updates: Values, attr: Attrs['scatter']): Float64Array {
  const { outer, n, inner } = around(base.shape, attr.axis);
  const count = index.values.length;
  const out = Float64Array.from(base.values);
  for (let i = 0; i < outer; i++) {
    for (let u = 0; u < count; u++) {
      for (let k = 0; k < inner; k++) {
        const to = (i * n + index.values[u]!) * inner + k;
        out[to] = combined(attr.op, out[to]!, updates.values[(i * count + u) * inner + k]!);
      }
    }
  }
  return out;
}

export function scanValues(x: Values, factor: Values | undefined, attr: Attrs['scan']): Float64Array {
  const { outer, n, inner } = around(x.shape, attr.axis);
  const out = new Float64Array(x.values.length);
  for (let i = 0; i < outer; i++) {
    for (let k = 0; k < inner; k++) {
      let before: number | null = null;
      for (let step = 0; step < n; step++) {
        const at = (i * n + (attr.reverse ? n - 1 - step : step)) * inner + k;
        const value = x.values[at]!;
        if (attr.op === 'linear') before = factor?.values[at]! * (before ?? 0) + value;
        else before = before === null ? value : combined(attr.op, before, value);
        out[at] = before;
      }
    }
  }
  return out;
}

export function argSortValues(x: Values, attr: Attrs['argSort']): Float64Array {
  const { outer, n, inner } = around(x.shape, attr.axis);
  const out = new Float64Array(outer * attr.count * inner);
  const sign = attr.descending ? -1 : 1;
  const order = (a: number, b: number): number => {
    if (Number.isNaN(a) || Number.isNaN(b)) return sign * (Number(Number.isNaN(a)) - Number(Number.isNaN(b)));
    return sign * (a < b ? -1 : a > b ? 1 : 0);
  };
  for (let i = 0; i < outer; i++) {
    for (let k = 0; k < inner; k++) {
      const line = Array.from({ length: n }, (_, j) => x.values[(i * n + j) * inner + k]!);
      const positions = line.map((_, j) => j).sort((a, b) => order(line[a]!, line[b]!) || a - b);
      for (let j = 0; j < attr.count; j++) out[(i * attr.count + j) * inner + k] = positions[j]!;
    }
  }
  return out;
}

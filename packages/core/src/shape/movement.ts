/**
 * Movement of strided views: what reshape, permute, expand and slice do to strides and offset.
 *
 * Used to give a realised tensor another shape without a kernel. A null answer means: strides cannot express it.
 */
import { type Shape, type View, sizeOf } from './view.ts';

/** View of the same elements in row-major order under another shape, or null. */
export function reshapeView(from: Shape, view: View, to: Shape): View | null {
  if (sizeOf(from) === 0) return { strides: new Array<number>(to.length).fill(0), offset: view.offset };
  // Axes of size 1 do not matter; the others are matched in groups of equal products.
  const sizes: number[] = [];
  const steps: number[] = [];
  for (let i = 0; i < from.length; i++) {
    if (from[i] === 1) continue;
    sizes.push(from[i]!);
    steps.push(view.strides[i]!);
  }
  const strides = new Array<number>(to.length).fill(0);
  let low = 0;
  let axis = 0;
  while (low < sizes.length) {
    let high = low + 1;
    let have = sizes[low]!;
    const start = axis;
    let want = 1;
    while (want !== have) {
      if (want < have) want *= to[axis++]!;
      else have *= sizes[high++]!;
    }
    for (let i = low; i + 1 < high; i++) {
      if (steps[i] !== steps[i + 1]! * sizes[i + 1]!) return null;
    }
    let step = steps[high - 1]!;
    for (let i = axis - 1; i >= start; i--) {
      strides[i] = step;
      step *= to[i]!;
    }
    low = high;
  }
  return { strides, offset: view.offset };
}

/** View with reordered axes: result axis i is source axis axes[i]. */
export function permuteView(view: View, axes: readonly number[]): View {
  return { strides: axes.map((axis) => view.strides[axis]!), offset: view.offset };
}

/** View with axes of size 1 stretched to `to` (same rank). */
export function expandView(from: Shape, view: View, to: Shape): View {
  return { strides: view.strides.map((step, i) => (from[i] === to[i] ? step : 0)), offset: view.offset };
}

/** View of start, start + step, ... along every axis. */
export function sliceView(view: View, start: readonly number[], step: readonly number[]): View {
  let offset = view.offset;
  for (let i = 0; i < start.length; i++) offset += start[i]! * view.strides[i]!;
  return { strides: view.strides.map((s, i) => s * step[i]!), offset };
}

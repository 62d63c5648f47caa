/** Grids as text: rows aligned, long axes shortened, as tensors are printed. */
import { type Shape, sizeOf } from '../shape/view.ts';
import { elements, type Grid } from './grid.ts';

/** Elements shown at each end of a long axis, and the size from which axes are shortened. */
const edge = 3;
const threshold = 1000;

export function formatGrid<T>(x: Grid<T>, toText: (value: T) => string): string {
  const { shape } = x;
  const texts = elements(x).map(toText);
  const shorten = sizeOf(shape) > threshold;
  const width = texts.reduce((most, text) => Math.max(most, text.length), 0);
  const write = (axis: number, from: number): string => {
    if (axis === shape.length) return (texts[from] as string).padStart(width);
    const n = shape[axis] as number;
    const step = sizeOf(shape.slice(axis + 1));
    const parts = positions(n, shorten).map((i) => (i < 0 ? '...' : write(axis + 1, from + i * step)));
    const last = axis === shape.length - 1;
    return `[${parts.join(last ? ' ' : lineBreak(shape, axis))}]`;
  };
  return write(0, 0);
}

function lineBreak(shape: Shape, axis: number): string {
  return `${'\n'.repeat(shape.length - axis - 1)}${' '.repeat(axis + 1)}`;
}

/** Positions of an axis that are shown; -1 stands for those left out. */
function positions(n: number, shorten: boolean): number[] {
  const all = Array.from({ length: n }, (_, i) => i);
  return shorten && n > 2 * edge ? [...all.slice(0, edge), -1, ...all.slice(n - edge)] : all;
}

/** Elements as rows of text, laid out as NumPy does: brackets for axes, long axes shortened, long rows broken. Knows nothing of numbers. */
import { rowMajorStrides, type Shape, sizeOf } from './view.ts';

/** Elements shown at each end of a shortened axis. */
const edge = 3;
/** Axes are shortened where there are more elements in all. */
const threshold = 1000;
/** Rows are broken before they get longer. */
const lineWidth = 75;

/** Positions of an axis that are shown; -1 stands for those left out. */
function positions(n: number, shorten: boolean): number[] {
  const left = shorten && n > 2 * edge ? n - 2 * edge : 0;
  const all = Array.from({ length: n - left }, (_, i) => (left > 0 && i >= edge ? i + left : i));
  if (left > 0) all.splice(edge, 0, -1);
  return all;
}

/** Row-major positions of the elements that formatRows shows. */
export function shownElements(shape: Shape): number[] {
  let at = [0];
  if (sizeOf(shape) === 0) return [];
  const strides = rowMajorStrides(shape);
  shape.forEach((n, axis) => {
    const steps = positions(n, sizeOf(shape) > threshold).filter((i) => i >= 0);
    at = at.flatMap((from) => steps.map((i) => from + i * strides[axis]!));
  });
  return at;
}

/** The elements of a shape in brackets. `text` gives one by its row-major position; all should be equally long. */
export function formatRows(shape: Shape, text: (at: number) => string): string {
  if (sizeOf(shape) === 0) return '[]';
  const shorten = sizeOf(shape) > threshold;
  const strides = rowMajorStrides(shape);
  const write = (axis: number, from: number): string => {
    if (axis === shape.length) return text(from);
    const parts = positions(shape[axis]!, shorten).map((i) =>
      i < 0 ? '...' : write(axis + 1, from + i * strides[axis]!),
    );
    const indent = ' '.repeat(axis + 1);
    if (axis < shape.length - 1) return `[${parts.join('\n'.repeat(shape.length - axis - 1) + indent)}]`;
    // One place is kept for every bracket that closes behind the row.
    const width = lineWidth - shape.length;
    const lines: string[] = [];
    let line = '';
    for (const part of parts) {
      if (line !== '' && indent.length + line.length + part.length > width) {
        lines.push(line.trimEnd());
        line = '';
      }
      line += `${part} `;
    }
    return `[${[...lines, line.slice(0, -1)].join(`\n${indent}`)}]`;
  };
  return write(0, 0);
}

/** Grids as text: rows aligned, long axes shortened, as tensors are printed. */
import { formatRows, shownElements } from '@polygrad/core/internals';
import { elements, type Grid } from './grid.ts';

export function formatGrid<T>(x: Grid<T>, toText: (value: T) => string): string {
  const values = elements(x);
  const texts = new Map(shownElements(x.shape).map((at) => [at, toText(values[at] as T)]));
  const width = [...texts.values()].reduce((most, text) => Math.max(most, text.length), 0);
  return formatRows(x.shape, (at) => texts.get(at)!.padStart(width));
}

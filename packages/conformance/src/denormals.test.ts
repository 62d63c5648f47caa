/** Which elements of a result a denormal operand goes into. */
import { expect, it } from 'vitest';
import { touchedByDenormals } from './denormals.ts';

const small = 1e-40;

it('finds the elements by broadcasting', () => {
  const column = { shape: [3, 1], values: [1, small, Number.NaN] };
  const row = { shape: [2], values: [0, -small] };
  expect(touchedByDenormals([column, row], 'float32', [3, 2])).toEqual([false, true, true, true, false, true]);
  expect(touchedByDenormals([row], 'float32', [2])).toEqual([false, true]);
  expect(touchedByDenormals([row], 'float64', [2])).toEqual([false, false]);
  expect(touchedByDenormals([column, row], 'float32', [6])).toBeNull();
  expect(touchedByDenormals([], 'float32', [])).toEqual([false]);
});

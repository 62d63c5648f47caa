/** Which elements of a result a denormal operand goes into, and engines that keep such numbers. */
import { setEngine } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { expect, it } from 'vitest';
import { flushesDenormals, touchedByDenormals } from './denormals.ts';

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

it('the interpreter keeps them', async () => {
  await setEngine(createReferenceEngine());
  expect([await flushesDenormals('float32'), await flushesDenormals('float64')]).toEqual([false, false]);
});

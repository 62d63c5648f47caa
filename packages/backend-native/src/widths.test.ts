/** Widths of vectors for short and long rows. */
import { expect, it } from 'vitest';
import { fittingBytes } from '@polygrad/core/engine/processors';

it.each([
  [1024, 64],
  [100, 64],
  [28, 64],
  [14, 32],
  [10, 32],
  [7, 16],
  [3, 64],
])('%i elements of four bytes: %i bytes', (run, bytes) => {
  expect(fittingBytes(64)(run, 4)).toBe(bytes);
});

it('counts lanes of four bytes at least, and of eight', () => {
  expect(fittingBytes(64)(28, 1)).toBe(64);
  expect(fittingBytes(64)(14, 8)).toBe(64);
  expect(fittingBytes(32)(6, 4)).toBe(16);
});

/** Widths of vectors for short and long rows. */
import { expect, it } from 'vitest';
import { fittingBytes } from './widths.ts';

it.each([
  [1024, 64],
  [100, 64],
  [28, 32],
  [14, 16],
  [10, 32],
  [3, 64],
])('%i elements of four bytes: %i bytes', (run, bytes) => {
  expect(fittingBytes(64)(run, 4)).toBe(bytes);
});

it('counts lanes of four bytes at least, and of eight', () => {
  expect(fittingBytes(64)(28, 1)).toBe(32);
  expect(fittingBytes(64)(14, 8)).toBe(32);
  expect(fittingBytes(32)(6, 4)).toBe(16);
});

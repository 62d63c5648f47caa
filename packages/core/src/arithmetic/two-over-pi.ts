/** The binary digits of 2/pi, for exact reduction of large angles (decompose/angle.ts). Computed with 1500-bit arithmetic. */

// biome-ignore format: one number
const digits = BigInt(
  '0xa2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484' +
  'e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b' +
  '3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d',
);
const length = 1280;

/**
 * The digits number first .. first + count - 1 after the point, as an integer. Digits before the point are zero, so `first`
 * may be negative.
 */
export function twoOverPiDigits(first: number, count: number): number {
  const last = first + count - 1;
  return Number((digits >> BigInt(length - last)) & ((1n << BigInt(count)) - 1n));
}

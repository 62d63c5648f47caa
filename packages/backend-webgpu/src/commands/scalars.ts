/** Numbers as a kernel's uniform block holds them: little endian words. */
import type { PrintedScalar } from '@polygrad/emit-c';

/** Writes a number at `base` plus its place; says if all its bits are zero. */
export function writeScalar(
  view: DataView,
  base: number,
  { dtype, at }: PrintedScalar,
  value: number | bigint,
): boolean {
  const number = Number(value);
  const place = base + at;
  switch (dtype) {
    case 'float32':
    case 'float16':
      view.setFloat32(place, number, true);
      break;
    case 'bool':
      view.setUint32(place, number === 0 ? 0 : 1, true);
      break;
    default:
      // Numbers outside the range wrap, as everywhere; DataView does so for finite ones.
      view.setInt32(place, number, true);
  }
  return view.getUint32(place, true) === 0;
}

/** The same bits as another dtype: BITCAST of the reference interpreter. */
import type { DType } from '../shape/dtype.ts';
import { getElement, hostArrays, setElement } from '../shape/host.ts';

/** `x` of dtype `from`, its bits read as dtype `to` of the same size. */
export function reinterpret(from: DType, to: DType, x: number | bigint): number | bigint {
  const bytes = new ArrayBuffer(8);
  setElement(new hostArrays[from](bytes, 0, 1), from, 0, x);
  const read = getElement(new hostArrays[to](bytes, 0, 1), to, 0);
  return typeof read === 'boolean' ? Number(read) : read;
}

/** The same bits as another dtype: BITCAST of the reference interpreter. */
import type { DType } from '../shape/dtype.ts';
import { getElement, hostArrays, setElement } from '../shape/host.ts';

/** The function from an `x` of dtype `from` to its bits read as dtype `to` of the same size. */
export function reinterpretFunction(from: DType, to: DType): (x: number | bigint) => number | bigint {
  const bytes = new ArrayBuffer(8);
  const written = new hostArrays[from](bytes, 0, 1);
  const seen = new hostArrays[to](bytes, 0, 1);
  return (x) => {
    setElement(written, from, 0, x);
    const read = getElement(seen, to, 0);
    return typeof read === 'boolean' ? Number(read) : read;
  };
}

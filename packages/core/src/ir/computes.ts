/** Which dtypes an engine computes in, of those that it holds. */
import type { TargetCaps } from './target.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';

/**
 * True if the engine computes in the dtype: it says so, or elements have four bytes or more.
 *
 * @example
 * computesIn(createReferenceEngine().caps, 'float32'); // true
 */
export function computesIn(caps: Pick<TargetCaps, 'computes'>, dtype: DType): boolean {
  return caps.computes?.has(dtype) ?? (dtype === 'bool' || dtypeInfo[dtype].bytes >= 4);
}

/** Which dtypes an engine computes in, of those that it holds. */
import type { EngineCaps } from '../engine/engine.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';

/**
 * True if the engine computes in the dtype: it says so, or elements have four bytes or more.
 *
 * @example
 * computesIn(createReferenceEngine().caps, 'float32'); // true
 */
export function computesIn(caps: Pick<EngineCaps, 'computes'>, dtype: DType): boolean {
  return caps.computes?.has(dtype) ?? (dtype === 'bool' || dtypeInfo[dtype].bytes >= 4);
}

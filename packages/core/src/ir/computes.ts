/** Which dtypes an engine computes in, of those that it holds. */
import type { KNode, Program } from './ir.ts';
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

/**
 * True if the engine computes in all dtypes of a program, so that nothing is left to legalize.
 *
 * @example
 * const { program } = randomProgram(1);
 * computesAll(createReferenceEngine().caps, program); // true
 */
export function computesAll(caps: Pick<TargetCaps, 'computes'>, { body, params }: Program): boolean {
  const fits = ({ dtype }: KNode): boolean => dtype === 'void' || computesIn(caps, dtype);
  return body.every(fits) && params.every(fits);
}

/** What is known of the numbers that operands are. */
import { highOf, type KNode, lowOf } from '@polygrad/core/kernel';

/** The number that a source is, where it fits into 32 bits. */
export function constantOf(n: KNode | undefined): number | null {
  if (n?.op !== 'CONST') return null;
  const value = BigInt(n.arg.value);
  if (n.dtype === 'uint32') return Number(BigInt.asIntN(32, value));
  return value >= -0x80000000n && value <= 0x7fffffffn ? Number(value) : null;
}

/** True for a value from 0 to below 2^31. */
export function isSmall(n: KNode): boolean {
  return lowOf(n) >= 0 && highOf(n) <= 0x7fffffff;
}

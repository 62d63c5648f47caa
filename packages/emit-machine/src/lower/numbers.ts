/** Facts about the numbers that operands are. */
import { highOf, type KNode, lowOf } from '@polygrad/core/kernel';

/** The value of a constant source, if it fits into 32 bits. */
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

/** A division by a constant above zero and below 2^31, as a shift or a product. */
export interface Reciprocal {
  readonly divisor: number;
  /** log2 of the divisor, or -1. */
  readonly power: number;
  /** x / divisor is x * factor >> shift where `small`. */
  readonly factor: bigint;
  readonly shift: number;
  /** True if the dividend is known to be from 0 to below 2^31. */
  readonly small: boolean;
}

/** How to divide by the second source if that is a constant, or null. */
export function reciprocalOf(n: KNode): Reciprocal | null {
  const by = n.src[1]!;
  const divisor = by.op === 'CONST' && (n.dtype === 'int32' || n.dtype === 'uint32') ? Number(by.arg.value) : 0;
  if (divisor <= 0 || divisor > 0x7fffffff) return null;
  const bits = Math.ceil(Math.log2(divisor));
  // ceil(2^p / d) for p = 31 + ceil(log2 d) is exact enough for x below 2^31.
  const shift = 31 + bits;
  return {
    divisor,
    power: divisor === 2 ** bits ? bits : -1,
    factor: (2n ** BigInt(shift) + BigInt(divisor - 1)) / BigInt(divisor),
    shift,
    small: isSmall(n.src[0]!),
  };
}

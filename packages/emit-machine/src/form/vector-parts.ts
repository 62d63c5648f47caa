/** Vectors in parts as wide as the machine's registers. */
import { refuse } from '../target.ts';
import type { Lowered, Reg } from './code.ts';
import type { Context } from './machine.ts';

/** Number of parts for this many lanes. */
export function partCount({ target }: Context, lanes: number, width: number): number {
  if ((lanes & (lanes - 1)) !== 0) refuse(`vectors must have a power of two lanes: got ${lanes}`);
  return Math.max(1, (lanes * width) / target.vectorBytes);
}

/** Bytes in use in each part. */
export function usedBytes({ target }: Context, lanes: number, width: number): number {
  return Math.min(target.vectorBytes, lanes * width);
}

/** Bytes of the registers of the parts: at least 16. */
export function partBytes({ target }: Context, lanes: number, width: number): number {
  return Math.max(16, Math.min(target.vectorBytes, lanes * width));
}

export function makeParts(ctx: Context, lanes: number, width: 4 | 8, make: (part: number) => Reg): Lowered {
  const count = partCount(ctx, lanes, width);
  // Most vectors have one part.
  const parts = [make(0)];
  for (let p = 1; p < count; p++) parts.push(make(p));
  return { parts, width };
}

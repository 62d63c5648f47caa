/** Shared state of the lowering functions: values lowered so far, and vectors in parts as wide as the machine's. */
import type { KNode } from '@polygrad/core/kernel';
import type { Builder } from './builder.ts';
import type { Reg } from './code.ts';
import type { Machine } from './machine.ts';
import { type MachineTarget, refuse } from '../target.ts';
import type { Masks } from './masks.ts';

/**
 * A lowered value: one register for a scalar, otherwise the parts of a vector, all as wide as `vectorBytes` of the target if there is more than one.
 * `width` is the size of a lane. Masks have one register where there are mask registers, and parts of either width elsewhere.
 */
export interface Lowered {
  readonly parts: readonly Reg[];
  readonly width: 4 | 8;
}

export interface Context {
  readonly b: Builder;
  readonly machine: Machine;
  readonly target: MachineTarget;
  readonly masks: Masks;
  /** The lowered form of a source that comes earlier in the body. */
  get(node: KNode): Lowered;
  /** Number of live users of a node. */
  uses(node: KNode): number;
}

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
export function partBytes(ctx: Context, lanes: number, width: number): number {
  return Math.max(16, usedBytes(ctx, lanes, width));
}

export function makeParts(ctx: Context, lanes: number, width: 4 | 8, make: (part: number) => Reg): Lowered {
  const count = partCount(ctx, lanes, width);
  // Most vectors have one part.
  const parts = [make(0)];
  for (let p = 1; p < count; p++) parts.push(make(p));
  return { parts, width };
}

/**
 * Functions as arithmetic, for engines that have none: those that programs bring along.
 *
 * decompose/decompose.ts holds what nearly every program needs. Others take much code and come with whoever records them (primitives/), or all
 * at once (entries/all-functions.ts).
 */
import type { FloatMath } from './float-math.ts';
import type { KNode, ValueOp } from '../ir/ir.ts';

/** The arithmetic of an operation; `y` and `z` are there for operations of two and of three operands. */
export type FloatFunction = (m: FloatMath, x: KNode, y: KNode, z: KNode) => KNode;

/** Arithmetic by operation. */
export type FloatFunctions = Readonly<Partial<Record<ValueOp, FloatFunction>>>;

const brought: Partial<Record<string, FloatFunction>> = {};

/** From now on kernels may hold these operations. */
export function bringFunctions(functions: FloatFunctions): void {
  Object.assign(brought, functions);
}

/** The arithmetic of an operation, if somebody brought it. */
export function functionOf(op: string): FloatFunction | undefined {
  return brought[op];
}

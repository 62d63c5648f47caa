/**
 * Functions whose arithmetic somebody brought. Each takes much code, so it comes with whoever records it (primitives/), or all at once
 * (entries/kernel.ts). Those that nearly every program has stand in decompose.ts, which pages may load later.
 */
import type { KNode, ValueOp } from '../../ir/ir.ts';
import type { FloatMath } from '../float-math.ts';

/** The arithmetic of an operation; `y` and `z` are there for operations of two and of three operands. */
export type FloatFunction = (m: FloatMath, x: KNode, y: KNode, z: KNode) => KNode;

/** Arithmetic by operation. */
export type FloatFunctions = Readonly<Partial<Record<ValueOp, FloatFunction>>>;

export const brought: Partial<Record<ValueOp, FloatFunction>> = {};

/** From now on kernels may hold these operations. */
export function bringFunctions(functions: FloatFunctions): void {
  Object.assign(brought, functions);
}

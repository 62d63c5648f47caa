/**
 * Operations that kernels may contain because their arithmetic was registered. They have much code, and come with the primitives that use them (primitives/),
 * or all at once (entries/kernel.ts). Those that nearly every program has are in decompose.ts, which pages may load later.
 */
import type { KNode } from '../../ir/ir.ts';
import type { ValueOp } from '../../ir/operations.ts';
import type { FloatMath } from '../float-math.ts';

/** The arithmetic of an operation; `y` and `z` exist for operations of two and of three operands. */
export type FloatFunction = (m: FloatMath, x: KNode, y: KNode, z: KNode) => KNode;

/** Arithmetic by operation. */
export type FloatFunctions = Readonly<Partial<Record<ValueOp, FloatFunction>>>;

export const registered: Partial<Record<ValueOp, FloatFunction>> = {};

/** Registers the arithmetic of operations. */
export function registerFunctions(functions: FloatFunctions): void {
  Object.assign(registered, functions);
}

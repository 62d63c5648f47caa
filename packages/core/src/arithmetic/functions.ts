/**
 * Functions as arithmetic, for engines that have none: those that programs bring along.
 *
 * decompose/decompose.ts holds what nearly every program needs. Others take much code and come with whoever records them (primitives/), or all
 * at once (all-functions.ts).
 */
import type { FloatMath } from './float-math.ts';
import type { BinaryOp, KNode, TernaryOp, UnaryOp } from '../ir/ir.ts';

/** The arithmetic of an operation; `y` and `z` are there for operations of two and of three operands. */
export type FloatFunction = (m: FloatMath, x: KNode, y: KNode, z: KNode) => KNode;

/** Operations on floats that kernels may hold only after somebody brought their arithmetic. */
// biome-ignore format: a table of operations reads better grouped
export type BroughtOp =
  | Extract<UnaryOp,
    | 'CEIL' | 'TRUNC' | 'ROUND' | 'EXP2' | 'EXPM1' | 'LOG2' | 'LOG10' | 'LOG1P'
    | 'SIN' | 'COS' | 'TAN' | 'ASIN' | 'ACOS' | 'ATAN' | 'SINH' | 'COSH' | 'TANH' | 'ERF'>
  | Extract<BinaryOp, 'POW' | 'ATAN2' | 'FREM' | 'MULHI'> | Extract<TernaryOp, 'FMA'>;

/** Arithmetic by operation. */
export type FloatFunctions = Readonly<Partial<Record<BroughtOp, FloatFunction>>>;

const brought: Partial<Record<string, FloatFunction>> = {};

/** From now on kernels may hold these operations. */
export function bringFunctions(functions: FloatFunctions): void {
  Object.assign(brought, functions);
}

/** The arithmetic of an operation, if somebody brought it. */
export function functionOf(op: string): FloatFunction | undefined {
  return brought[op];
}

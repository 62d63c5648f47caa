/** What the rules ask of the factory of nodes that applies them (`Exprs` in expr.ts): nodes, simplified when they are made. */
import type { DType } from '../../shape/dtype.ts';
import type { Literal } from '../../shape/host.ts';
import type { KNode, KNodeOf } from '../ir.ts';
import type { BinaryOp, UnaryOp } from '../operations.ts';

type Operand = KNode | Literal;

export interface Factory {
  /** The node exactly as asked, without simplification. */
  intern(op: BinaryOp | UnaryOp, dtype: DType | 'void', lanes: number, src: readonly KNode[]): KNode;
  constant(dtype: DType, value: Literal, lanes?: number): KNodeOf<'CONST'>;
  i32(value: number): KNodeOf<'CONST'>;
  bool(value: boolean, lanes?: number): KNodeOf<'CONST'>;
  splat(x: KNode, lanes: number): KNode;
  /** `keep`: not simplified. */
  unary(op: UnaryOp, x: KNode, keep?: boolean): KNode;
  binary(op: BinaryOp, a: Operand, b: Operand): KNode;
  add(a: Operand, b: Operand): KNode;
  mul(a: Operand, b: Operand): KNode;
  idiv(a: Operand, b: Operand): KNode;
  irem(a: Operand, b: Operand): KNode;
  and(a: Operand, b: Operand): KNode;
  or(a: Operand, b: Operand): KNode;
  lt(a: Operand, b: Operand): KNode;
  le(a: Operand, b: Operand): KNode;
  not(x: KNode): KNode;
  where(condition: KNode, a: Operand, b: Operand): KNode;
}

/** Which dtypes primitives take, and the errors where they do not. */
import { type DType, isFloat, isInteger } from '../shape/dtype.ts';
import { DTypeError } from '../shape/errors.ts';
import type { PrimitiveName } from './attrs.ts';
import type { Node } from './node.ts';
import { opName } from './scope.ts';

/** Families of dtypes. */
export type Accepts = 'float' | 'number' | 'integer' | 'bits' | 'any';

function accepted(kind: Accepts, dtype: DType): boolean {
  switch (kind) {
    case 'float':
      return isFloat(dtype);
    case 'number':
      return dtype !== 'bool';
    case 'integer':
      return isInteger(dtype);
    case 'bits':
      return !isFloat(dtype);
    case 'any':
      return true;
    default:
      return kind satisfies never;
  }
}

const wanted: Readonly<Record<Accepts, string>> = {
  float: 'a floating-point dtype',
  number: 'numbers, not bool',
  integer: 'an integer dtype',
  bits: 'integers or bool',
  any: 'any dtype',
};

/** Throws DTypeError unless the primitive takes the dtype. */
export function checkDType(kind: Accepts, primitive: PrimitiveName, dtype: DType): void {
  if (!accepted(kind, dtype)) {
    throw new DTypeError(
      opName(primitive),
      `dtype not accepted: ${dtype}; needs ${wanted[kind]}; convert with cast()`,
      [dtype],
    );
  }
}

/** Dtype shared by both operands. */
export function common(primitive: PrimitiveName, kind: Accepts, a: Node, b: Node): DType {
  if (a.dtype !== b.dtype) {
    throw new DTypeError(opName(primitive), `dtypes differ: ${a.dtype} and ${b.dtype}; convert one with cast()`, [
      a.dtype,
      b.dtype,
    ]);
  }
  checkDType(kind, primitive, a.dtype);
  return a.dtype;
}

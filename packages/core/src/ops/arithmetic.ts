/** Arithmetic of one, two and three operands. Operands broadcast; numbers take the dtype of the tensor they meet. */
import type { BinaryPrimitive } from '../graph/attrs.ts';
import { makeNode } from '../graph/build.ts';
import { beginOp } from '../graph/scope.ts';
import { wrap } from '../tensor/handle.ts';
import { operands } from '../tensor/operand.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

function pairwise(op: string, primitive: BinaryPrimitive, a: TensorLike, b: TensorLike): Tensor {
  beginOp(op);
  return wrap(makeNode(primitive, operands(a, b), null));
}

export function add(a: TensorLike, b: TensorLike): Tensor {
  return pairwise('add', 'add', a, b);
}
export function mul(a: TensorLike, b: TensorLike): Tensor {
  return pairwise('mul', 'mul', a, b);
}

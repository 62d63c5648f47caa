/** The choice between two tensors by a condition. The gradient goes to the side taken. */
import { constant, eq, not, where as whereNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { beginOp } from '../../graph/scope.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { operands, weak } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';

/** bool: true where the element is not 0. */
function truth(node: Node): Node {
  return node.dtype === 'bool' ? node : not(eq(node, constant(0, node.dtype)));
}

/** Node of an operand as bool. */
export function truthOf(value: TensorLike): Node {
  return typeof value === 'object' ? truth(nodeOf(value)) : weak(value !== 0 && value !== false, 'bool');
}

/**
 * Elements of a where the condition is true, else of b. Source: Array API `where`. The side not taken leaves no trace, NaN and
 * infinite gradients included.
 *
 * @param condition bool (numbers count as true unless they are 0); broadcasts with a and b
 * @returns the broadcast shape, the common dtype of a and b
 *
 * @example
 * where(tensor([true, false]), tensor([1, 2]), 0); // [1, 0]
 */
export function where(condition: TensorLike, a: TensorLike, b: TensorLike): Tensor {
  beginOp('where');
  const [x, y] = operands(a, b);
  return wrap(whereNode(truthOf(condition), x, y));
}

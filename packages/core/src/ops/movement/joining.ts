/** Tensors put together along an axis. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { beginOp } from '../../graph/scope.ts';
import { checkList, normalizeAxis } from '@polygrad/compiler/shape/axes';
import { sameShape } from '@polygrad/compiler/shape/view';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { promoteTypes } from '@polygrad/compiler/shape/promotion';
import { checkNames } from '@polygrad/compiler/shape/options';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { say } from '@polygrad/compiler/shape/shown';
import type { Tensor } from '../../tensor/types.ts';

/** One axis, by itself or in options. */
export type JoinAxis = number | { readonly axis?: number };

/** The axis as it is given, 0 if none is. */
export function axisOf(op: string, argument: JoinAxis | undefined): number {
  if (typeof argument === 'number') return argument;
  checkNames(op, argument, 'axis');
  return argument?.axis ?? 0;
}

/** The nodes of a list of tensors in their common dtype. */
function parts(op: string, tensors: readonly Tensor[]): Node[] {
  checkList(op, 'tensors', tensors, '[a, b]');
  if (tensors.length === 0) throw new ArgumentError(op, 'no tensors: the list is empty; give at least one');
  const nodes = tensors.map((t) => nodeOf(t));
  const dtype = nodes.reduce<DType>((common, node) => promoteTypes(op, common, node.dtype), nodes[0]!.dtype);
  return nodes.map((node) => p.cast(node, dtype));
}

/**
 * Tensors one after the other along an axis; all other sizes are equal. Source: Array API `concat`.
 *
 * @param axis one axis, or { axis }; 0
 * @returns the sizes along the axis added up, the common dtype
 * @throws ShapeError where other sizes differ, DTypeError without a common dtype
 *
 * @example
 * concat([tensor([1, 2]), tensor([3])]); // [1, 2, 3]
 */
export function concat(tensors: readonly Tensor[], axis?: JoinAxis): Tensor {
  beginOp('concat');
  const nodes = parts('concat', tensors);
  return wrap(p.concat(nodes, normalizeAxis('concat', axisOf('concat', axis), nodes[0]!.shape.length)));
}

/**
 * Tensors of one shape side by side along a new axis. Source: Array API `stack`.
 *
 * @param axis position of the new axis, or { axis }; 0
 * @returns one axis more, the common dtype
 * @throws ShapeError where shapes differ, DTypeError without a common dtype
 *
 * @example
 * stack([tensor([1, 2]), tensor([3, 4])]); // [[1, 2], [3, 4]]
 */
export function stack(tensors: readonly Tensor[], axis?: JoinAxis): Tensor {
  beginOp('stack');
  const nodes = parts('stack', tensors);
  const { shape } = nodes[0]!;
  for (const node of nodes) {
    if (!sameShape(node.shape, shape))
      throw new ShapeError(
        'stack',
        say`shapes differ: ${showShape(shape)} and ${showShape(node.shape)}; all must be equal`,
        [shape, node.shape],
      );
  }
  const at = normalizeAxis('stack', axisOf('stack', axis), shape.length + 1);
  return wrap(
    p.concat(
      nodes.map((node) => p.insertAxes(node, [at])),
      at,
    ),
  );
}

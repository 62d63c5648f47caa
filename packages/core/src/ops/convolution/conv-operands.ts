/** What convolutions and transposed ones have in common: checks of ranks and groups, and the bias. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import type { DType } from '../../shape/dtype.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { promoteTypes } from '../../shape/promotion.ts';
import { say } from '../../shape/shown.ts';
import { wrap } from '../../tensor/handle.ts';
import { operands } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { checkImage } from '../images/image.ts';
import { widened } from '../elementwise/recording.ts';

/** Throws unless input and kernel both have `rank` spatial axes. */
export function checkRank(op: string, x: Node, kernel: Node, rank: number): void {
  checkImage(op, x, rank);
  if (kernel.shape.length === rank + 2) return;
  throw new ShapeError(
    op,
    say`kernel ${showShape(kernel.shape)} has ${kernel.shape.length} axes: needs ${rank + 2}, features, channels and ${rank} spatial, for input ${showShape(x.shape)}`,
    [x.shape, kernel.shape],
  );
}

/** Groups of an option. */
export function readGroups(op: string, groups: number | undefined): number {
  if (groups === undefined) return 1;
  if (!Number.isInteger(groups) || groups < 1)
    throw new ArgumentError(op, say`bad groups: ${groups}; must be an integer of at least 1`);
  return groups;
}

/** The operands of a convolution: 16-bit floats in float32 where a bias follows, so that only the sum of both is rounded. */
export function beforeBias(operand: Node, bias: Tensor | null | undefined): Node {
  return bias === null || bias === undefined ? operand : widened(operand);
}

/**
 * The result [N, O, ...spatial] with one number per feature added, in the dtype that bias and `dtype`, that of the convolution's
 * operands, meet in.
 */
export function withBias(op: string, result: Node, bias: Tensor | null | undefined, dtype: DType): Node {
  if (bias === null || bias === undefined) return result;
  const [sum, node] = operands(wrap(result), bias);
  if (node.shape.length !== 1 || node.shape[0] !== result.shape[1]) {
    throw new ShapeError(
      op,
      say`bias has shape ${showShape(node.shape)}: needs [${result.shape[1]}], one per output feature`,
      [node.shape],
    );
  }
  const added = p.add(sum, p.reshape(node, [node.shape[0]!, ...result.shape.slice(2).map(() => 1)]));
  return p.cast(added, promoteTypes(op, dtype, bias.dtype));
}

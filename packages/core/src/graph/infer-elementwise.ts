/** Shape and dtype rules of elementwise primitives. */
import { broadcastShapes } from '../shape/broadcast.ts';
import type { DType } from '../shape/dtype.ts';
import type { BinaryPrimitive, UnaryPrimitive } from './attrs.ts';
import { type Accepts, checkDType, common, type InferRule } from './infer-checks.ts';
import type { Node } from './node.ts';
import { opName } from './scope.ts';

const first = (src: readonly Node[]): Node => src[0]!;
const second = (src: readonly Node[]): Node => src[1]!;

/** One source; `result`: the dtype of the result, if it is another. */
export function unaryInfer<P extends UnaryPrimitive>(op: P, kind: Accepts, result?: DType): InferRule<P> {
  return {
    shape: (src) => first(src).shape,
    dtype: (src) => {
      const { dtype } = first(src);
      checkDType(kind, op, dtype);
      return result ?? dtype;
    },
  };
}

/** Two sources of one dtype that broadcast. */
export function binaryInfer<P extends BinaryPrimitive>(op: P, kind: Accepts, result?: DType): InferRule<P> {
  return {
    shape: (src) => broadcastShapes(opName(op), first(src).shape, second(src).shape),
    dtype: (src) => {
      const dtype = common(op, kind, first(src), second(src));
      return result ?? dtype;
    },
  };
}

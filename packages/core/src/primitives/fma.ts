/** a * b + c, rounded once. */
import { elementwiseBatch } from './batch/rule.ts';
import { common } from '../graph/infer-checks.ts';
import type { Node } from '../graph/node.ts';
import { mul } from '../graph/primitives.ts';
import { opName } from '../graph/scope.ts';
import { fma } from '../arithmetic/decompose/basic.ts';
import { broadcastShapes } from '../shape/broadcast.ts';
import type { Definition } from '../graph/definition.ts';

export const fmaPrimitive: Definition<'fma'> = {
  op: 'fma',
  infer: {
    shape: (src) => {
      const op = opName('fma');
      const [a, b, c] = src as [Node, Node, Node];
      return broadcastShapes(op, broadcastShapes(op, a.shape, b.shape), c.shape);
    },
    dtype: (src) => {
      const [a, b, c] = src as [Node, Node, Node];
      common('fma', 'float', a, b);
      return common('fma', 'float', a, c);
    },
  },
  gradient: ({ grad, src, needs }) => [
    needs[0] ? mul(grad, src[1] as Node) : null,
    needs[1] ? mul(grad, src[0] as Node) : null,
    grad,
  ],
  batch: elementwiseBatch,
  elementwise: true,
  functions: { FMA: fma },
};

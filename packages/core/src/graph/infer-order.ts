/** Shape and dtype rules of what works along an axis in order, and of scatters. */
import { dtypeInfo } from '../shape/dtype.ts';
import { DTypeError, showShape } from '../shape/errors.ts';
import type { Shape } from '../shape/view.ts';
import { checkDType, checkIndex, common, fail, type InferRule, spliced } from './infer-checks.ts';
import type { Node } from './node.ts';
import { opName } from './scope.ts';

const first = (src: readonly Node[]): Node => src[0] as Node;

function checkAxis(op: 'scan' | 'argSort' | 'scatter', axis: number, shape: Shape): void {
  if (axis < 0 || axis >= shape.length) fail(op, `no axis ${axis} in shape ${showShape(shape)}`, shape);
}

function equalShapes(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((n, i) => n === b[i]);
}

export const orderRules: {
  readonly scan: InferRule<'scan'>;
  readonly argSort: InferRule<'argSort'>;
  readonly scatter: InferRule<'scatter'>;
} = {
  scan: {
    shape: (src, attr) => {
      const { shape } = first(src);
      checkAxis('scan', attr.axis, shape);
      if (src.length !== (attr.op === 'linear' ? 2 : 1)) fail('scan', `wrong number of sources: ${src.length}`, shape);
      for (const other of src.slice(1))
        if (!equalShapes(shape, other.shape))
          fail('scan', `shapes differ: ${showShape(shape)} and ${showShape(other.shape)}`, shape, other.shape);
      return shape;
    },
    dtype: (src) => {
      checkDType('number', 'scan', first(src).dtype);
      return common('scan', 'number', first(src), src[src.length - 1] as Node);
    },
  },
  argSort: {
    shape: (src, attr) => {
      const { shape } = first(src);
      checkAxis('argSort', attr.axis, shape);
      const n = shape[attr.axis] as number;
      if (!Number.isInteger(attr.count) || attr.count < 0 || attr.count > n)
        fail('argSort', `cannot give ${attr.count} of ${n} positions; must be from 0 to ${n}`, shape);
      return shape.map((size, axis) => (axis === attr.axis ? attr.count : size));
    },
    dtype: () => 'int32',
  },
  scatter: {
    shape: (src, attr) => {
      const [base, index, updates] = src as [Node, Node, Node];
      checkAxis('scatter', attr.axis, base.shape);
      const expected = spliced(base.shape, attr.axis, index.shape);
      if (!equalShapes(updates.shape, expected))
        fail(
          'scatter',
          `updates have shape ${showShape(updates.shape)}: needs ${showShape(expected)} for base ${showShape(base.shape)} and index ${showShape(index.shape)}`,
          updates.shape,
          expected,
        );
      return base.shape;
    },
    dtype: (src, attr) => {
      const [base, index, updates] = src as [Node, Node, Node];
      checkIndex('scatter', index);
      if (attr.op !== 'set' && dtypeInfo[base.dtype].kind === 'bool')
        throw new DTypeError(opName('scatter'), 'dtype not accepted: bool; needs numbers; convert with cast()', [
          'bool',
        ]);
      return common('scatter', 'any', base, updates);
    },
  },
};

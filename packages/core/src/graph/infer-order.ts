/** Shape and dtype rules of what works along an axis in order. */
import { sameShape } from '../shape/broadcast.ts';
import { showShape } from '../shape/errors.ts';
import { checkAxis, checkDType, common, fail, type InferRule } from './infer-checks.ts';
import { say } from '../shape/shown.ts';
import type { Node } from './node.ts';

const first = (src: readonly Node[]): Node => src[0]!;

export const scanInfer: InferRule<'scan'> = {
  shape: (src, attr) => {
    const { shape } = first(src);
    checkAxis('scan', attr.axis, shape);
    if (src.length !== (attr.op === 'linear' ? 2 : 1)) fail('scan', say`wrong number of sources: ${src.length}`, shape);
    for (const other of src.slice(1))
      if (!sameShape(shape, other.shape))
        fail('scan', say`shapes differ: ${showShape(shape)} and ${showShape(other.shape)}`, shape, other.shape);
    return shape;
  },
  dtype: (src) => {
    checkDType('number', 'scan', first(src).dtype);
    return common('scan', 'number', first(src), src[src.length - 1]!);
  },
};

export const argSortInfer: InferRule<'argSort'> = {
  shape: (src, attr) => {
    const { shape } = first(src);
    checkAxis('argSort', attr.axis, shape);
    const n = shape[attr.axis]!;
    if (!Number.isInteger(attr.count) || attr.count < 0 || attr.count > n)
      fail('argSort', say`cannot give ${attr.count} of ${n} positions; must be from 0 to ${n}`, shape);
    return shape.map((size, axis) => (axis === attr.axis ? attr.count : size));
  },
  dtype: () => 'int32',
};

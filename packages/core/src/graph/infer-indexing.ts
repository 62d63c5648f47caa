/** Shape and dtype rules of indexing: what is picked, and what is put. */
import { sameShape } from '../shape/broadcast.ts';
import { dtypeInfo } from '../shape/dtype.ts';
import { DTypeError, showShape } from '../shape/errors.ts';
import { checkAxis, checkIndex, common, fail, type InferRule, spliced } from './infer-checks.ts';
import type { Node } from './node.ts';
import { opName } from './scope.ts';
import { say } from '../shape/shown.ts';

const first = (src: readonly Node[]): Node => src[0]!;
const second = (src: readonly Node[]): Node => src[1]!;

export const gatherInfer: InferRule<'gather'> = {
  shape: (src, attr) => {
    const { shape } = first(src);
    if (attr.axis < 0 || attr.axis >= shape.length)
      fail('gather', say`no axis ${attr.axis} in shape ${showShape(shape)}`, shape);
    return spliced(shape, attr.axis, second(src).shape);
  },
  dtype: (src) => {
    checkIndex('gather', second(src));
    return first(src).dtype;
  },
};

export const scatterAddInfer: InferRule<'scatterAdd'> = {
  shape: (src, attr) => {
    const [base, index, updates] = [first(src).shape, second(src).shape, src[2]!.shape];
    const expected = spliced(base, attr.axis, index);
    if (updates.length !== expected.length || updates.some((n, i) => n !== expected[i])) {
      fail(
        'scatterAdd',
        say`updates have shape ${showShape(updates)}: needs ${showShape(expected)} for base ${showShape(base)} and index ${showShape(index)}`,
        updates,
        expected,
      );
    }
    return base;
  },
  dtype: (src) => {
    checkIndex('scatterAdd', second(src));
    return common('scatterAdd', 'number', first(src), src[2]!);
  },
};

export const scatterInfer: InferRule<'scatter'> = {
  shape: (src, attr) => {
    const [base, index, updates] = src as [Node, Node, Node];
    checkAxis('scatter', attr.axis, base.shape);
    const expected = spliced(base.shape, attr.axis, index.shape);
    if (!sameShape(updates.shape, expected))
      fail(
        'scatter',
        say`updates have shape ${showShape(updates.shape)}: needs ${showShape(expected)} for base ${showShape(base.shape)} and index ${showShape(index.shape)}`,
        updates.shape,
        expected,
      );
    return base.shape;
  },
  dtype: (src, attr) => {
    const [base, index, updates] = src as [Node, Node, Node];
    checkIndex('scatter', index);
    if (attr.op !== 'set' && dtypeInfo[base.dtype].kind === 'bool')
      throw new DTypeError(opName('scatter'), 'dtype not accepted: bool; needs numbers; convert with cast()', ['bool']);
    return common('scatter', 'any', base, updates);
  },
};

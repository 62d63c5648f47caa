/** Shape and dtype rules of movements. */
import { showShape } from '../shape/errors.ts';
import { sizeOf } from '../shape/view.ts';
import { checkRank, common, fail, type InferRule, sortedDistinct, spliced } from './infer-checks.ts';
import { say } from '../shape/shown.ts';
import type { Node } from './node.ts';

const first = (src: readonly Node[]): Node => src[0]!;
const dtypeOfFirst = (src: readonly Node[]): Node['dtype'] => first(src).dtype;

type Movement = 'reshape' | 'permute' | 'expand' | 'slice' | 'pad' | 'concat';

export const movementRules: { readonly [P in Movement]: InferRule<P> } = {
  reshape: {
    shape: (src, attr) => {
      const { shape } = first(src);
      if (sizeOf(shape) !== sizeOf(attr.shape)) {
        fail(
          'reshape',
          say`number of elements differs: ${sizeOf(shape)} in ${showShape(shape)} and ${sizeOf(attr.shape)} in ${showShape(attr.shape)}; they must be equal`,
          shape,
          attr.shape,
        );
      }
      return attr.shape;
    },
    dtype: dtypeOfFirst,
  },
  permute: {
    shape: (src, attr) => {
      const { shape } = first(src);
      checkRank('permute', 'axes', attr.axes, shape);
      sortedDistinct(
        'permute',
        [...attr.axes].sort((a, b) => a - b),
        shape,
      );
      return attr.axes.map((axis) => shape[axis]!);
    },
    dtype: dtypeOfFirst,
  },
  expand: {
    shape: (src, attr) => {
      const { shape } = first(src);
      if (shape.length !== attr.shape.length || shape.some((n, i) => n !== 1 && n !== attr.shape[i])) {
        fail(
          'expand',
          say`cannot stretch ${showShape(shape)} to ${showShape(attr.shape)}; only axes of size 1 stretch`,
          shape,
          attr.shape,
        );
      }
      return attr.shape;
    },
    dtype: dtypeOfFirst,
  },
  slice: {
    shape: (src, attr) => {
      const { shape } = first(src);
      checkRank('slice', 'ranges', attr.length, shape);
      for (let i = 0; i < shape.length; i++) {
        const n = attr.length[i]!;
        const start = attr.start[i]!;
        const last = start + (n - 1) * attr.step[i]!;
        const inside = (at: number): boolean => at >= 0 && at < shape[i]!;
        if (n < 0 || (n > 0 && !(inside(start) && inside(last)))) {
          fail(
            'slice',
            say`range ${start} .. ${last} lies outside axis ${i} of shape ${showShape(shape)}; stay within 0 .. ${shape[i]! - 1}`,
            shape,
          );
        }
      }
      return attr.length;
    },
    dtype: dtypeOfFirst,
  },
  pad: {
    shape: (src, attr) => {
      const { shape } = first(src);
      checkRank('pad', 'pad widths', attr.low, shape);
      checkRank('pad', 'pad widths', attr.high, shape);
      const result = shape.map((n, i) => n + attr.low[i]! + attr.high[i]!);
      if (attr.low.some((n) => n < 0) || attr.high.some((n) => n < 0))
        fail('pad', say`negative width: low ${showShape(attr.low)}, high ${showShape(attr.high)}`, shape);
      return result;
    },
    dtype: dtypeOfFirst,
  },
  concat: {
    shape: (src, attr) => {
      const { shape } = first(src);
      let total = 0;
      for (const part of src) {
        if (part.shape.length !== shape.length || part.shape.some((n, i) => i !== attr.axis && n !== shape[i])) {
          fail(
            'concat',
            say`shapes differ besides axis ${attr.axis}: ${showShape(shape)} and ${showShape(part.shape)}; make the other sizes equal`,
            shape,
            part.shape,
          );
        }
        total += part.shape[attr.axis]!;
      }
      return spliced(shape, attr.axis, [total]);
    },
    dtype: (src) => {
      for (const part of src) common('concat', 'any', first(src), part);
      return first(src).dtype;
    },
  },
};

/** Values of all other primitives by definition, for graph-values.ts: loops over the result. */
import type { PrimitiveName } from '../graph/attrs.ts';
import { rowMajorStrides, sizeOf } from '../shape/view.ts';
import { at, build, type Rule, spread, type Tensor } from './graph-values-arrays.ts';
import { bothNaN } from './graph-values-elementwise.ts';
import { argSortValues, scanValues, scatterValues } from './graph-values-order.ts';

/** Elements of `t` over the reduced axes, for one index of the result. */
function reduced(t: Tensor, axes: readonly number[], index: readonly number[]): number[] {
  const extents = axes.map((axis) => t.shape[axis]!);
  const found: number[] = [];
  build(extents, (own) => {
    let kept = 0;
    found.push(
      at(
        t,
        t.shape.map((_, axis) => (axes.includes(axis) ? own[axes.indexOf(axis)]! : index[kept++]!)),
      ),
    );
    return 0;
  });
  return found;
}

const combine = {
  sum: (a: number, b: number) => a + b,
  prod: (a: number, b: number) => a * b,
  max: bothNaN(Math.max),
  min: bothNaN(Math.min),
} as const;
const start = { sum: 0, prod: 1, max: Number.NEGATIVE_INFINITY, min: Number.POSITIVE_INFINITY } as const;

export const structured: { readonly [P in PrimitiveName]?: Rule<P> } = {
  iota: (_, __, shape) => build(shape, (index) => index[0]!),
  constant: (_, attr, shape) => build(shape, () => Number(attr.value)),
  stopGradient: ([x]) => x!.values,
  after: ([x]) => x!.values,
  contiguous: ([x]) => x!.values,
  reshape: ([x]) => x!.values,
  reduce: ([x], attr, shape) =>
    build(shape, (index) => reduced(x!, attr.axes, index).reduce(combine[attr.op], start[attr.op])),
  argReduce: ([x], attr, shape) =>
    build(shape, (index) => {
      const all = reduced(x!, attr.axes, index);
      const nan = all.findIndex(Number.isNaN);
      if (nan >= 0) return nan;
      const best = all.reduce(combine[attr.op], start[attr.op]);
      return all.indexOf(best);
    }),
  permute: ([x], attr, shape) =>
    build(shape, (index) => {
      const from = index.map(() => 0);
      attr.axes.forEach((axis, i) => {
        from[axis] = index[i]!;
      });
      return at(x!, from);
    }),
  expand: ([x], _, shape) => build(shape, (index) => spread(x!, index)),
  slice: ([x], attr, shape) =>
    build(shape, (index) =>
      at(
        x!,
        index.map((i, axis) => attr.start[axis]! + i * attr.step[axis]!),
      ),
    ),
  pad: ([x], attr, shape) =>
    build(shape, (index) => {
      const from = index.map((i, axis) => i - attr.low[axis]!);
      const inside = from.every((i, axis) => i >= 0 && i < x!.shape[axis]!);
      return inside ? at(x!, from) : Number(attr.value);
    }),
  concat: (src, attr, shape) =>
    build(shape, (index) => {
      let i = index[attr.axis]!;
      for (const part of src) {
        const n = part.shape[attr.axis]!;
        if (i < n)
          return at(
            part,
            index.map((v, axis) => (axis === attr.axis ? i : v)),
          );
        i -= n;
      }
      return Number.NaN;
    }),
  window: ([x], attr, shape) =>
    build(shape, (index) => {
      const rank = attr.size.length;
      const lead = shape.length - 2 * rank;
      const from = index.slice(0, lead);
      for (let i = 0; i < rank; i++) {
        from.push(index[lead + i]! * attr.stride[i]! + index[lead + rank + i]! * attr.dilation[i]!);
      }
      return at(x!, from);
    }),
  fold: ([x], attr, shape) => {
    const t = x!;
    const out = new Float64Array(sizeOf(shape));
    const strides = rowMajorStrides(shape);
    const rank = attr.size.length;
    const lead = shape.length - rank;
    build(t.shape, (index) => {
      let flat = 0;
      for (let axis = 0; axis < lead; axis++) flat += index[axis]! * strides[axis]!;
      for (let i = 0; i < rank; i++) {
        const to = index[lead + i]! * attr.stride[i]! + index[lead + rank + i]! * attr.dilation[i]!;
        flat += to * strides[lead + i]!;
      }
      out[flat] = out[flat]! + at(t, index);
      return 0;
    });
    return out;
  },
  dotGeneral: ([lhs, rhs], attr, shape) => {
    const [a, b] = [lhs!, rhs!];
    const free = (t: Tensor, used: readonly number[]): number[] =>
      t.shape.map((_, axis) => axis).filter((axis) => !used.includes(axis));
    const aFree = free(a, [...attr.lhsBatch, ...attr.lhsContract]);
    const bFree = free(b, [...attr.rhsBatch, ...attr.rhsContract]);
    const extents = attr.lhsContract.map((axis) => a.shape[axis]!);
    return build(shape, (index) => {
      const ia = a.shape.map(() => 0);
      const ib = b.shape.map(() => 0);
      attr.lhsBatch.forEach((axis, i) => {
        ia[axis] = index[i]!;
        ib[attr.rhsBatch[i]!] = index[i]!;
      });
      aFree.forEach((axis, i) => {
        ia[axis] = index[attr.lhsBatch.length + i]!;
      });
      bFree.forEach((axis, i) => {
        ib[axis] = index[attr.lhsBatch.length + aFree.length + i]!;
      });
      let sum = 0;
      build(extents, (own) => {
        own.forEach((k, i) => {
          ia[attr.lhsContract[i]!] = k;
          ib[attr.rhsContract[i]!] = k;
        });
        sum += at(a, ia) * at(b, ib);
        return 0;
      });
      return sum;
    });
  },
  conv: ([lhs, rhs], attr, shape) => {
    const [x, w] = [lhs!, rhs!];
    const [features, depth] = [w.shape[0]!, w.shape[1]!];
    return build(shape, (index) => {
      const [n, o] = [index[0]!, index[1]!];
      const group = Math.floor(o / (features / attr.groups));
      const image = n + Math.floor(o / (features / attr.batchGroups)) * shape[0]!;
      let sum = 0;
      build(w.shape.slice(1), (own) => {
        const from = [image, group * depth + own[0]!];
        for (let i = 0; i < attr.stride.length; i++) {
          const p = index[i + 2]! * attr.stride[i]! - attr.padLow[i]! + own[i + 1]! * attr.rhsDilation[i]!;
          const hole = attr.lhsDilation[i]!;
          from.push(p % hole === 0 ? p / hole : -1);
        }
        sum += at(x, from) * at(w, [o, ...own]);
        return 0;
      });
      return sum;
    });
  },
  gather: ([x, which], attr, shape) =>
    build(shape, (index) => {
      const rank = which!.shape.length;
      const i = at(which!, index.slice(attr.axis, attr.axis + rank));
      return at(x!, [...index.slice(0, attr.axis), i, ...index.slice(attr.axis + rank)]);
    }),
  scatterAdd: ([base, which, updates], attr, shape) => {
    const out = Float64Array.from(base!.values);
    const strides = rowMajorStrides(shape);
    const rank = which!.shape.length;
    build(updates!.shape, (index) => {
      const i = at(which!, index.slice(attr.axis, attr.axis + rank));
      const to = [...index.slice(0, attr.axis), i, ...index.slice(attr.axis + rank)];
      const flat = to.reduce((sum, v, axis) => sum + v * strides[axis]!, 0);
      out[flat] = out[flat]! + at(updates!, index);
      return 0;
    });
    return out;
  },
  scatter: ([base, which, updates], attr) => scatterValues(base!, which!, updates!, attr),
  scan: ([x, factor], attr) => scanValues(x!, factor, attr),
  argSort: ([x], attr) => argSortValues(x!, attr),
};

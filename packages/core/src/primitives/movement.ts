/**
 * Movements: each element of the result is an element of a source, or padding (`reshape`, `permute`, `expand`, `slice`, `pad`, `concat`). They are
 * index maps, so kernels compute nothing for them. Also sliding windows (`window`) and their sums (`fold`), which are each other's transpose.
 */
import * as p from '../graph/primitives.ts';
import type { Attrs, Node } from '../graph/node.ts';
import { lengthOf, startAt } from '../planner/fusion/draft.ts';
import { makeAgain, makeNode } from '../graph/primitives.ts';
import {
  type Batches,
  checkRank,
  common,
  fail,
  type Family,
  type Gradients,
  sortedDistinct,
  spliced,
  type Tangents,
} from '../graph/definition.ts';
import type { KNode } from '@polygrad/compiler/ir/ir';
import { bothGates, broadcastIndex, reshapeIndex, within } from '../planner/lowering/index-map.ts';
import { gated, part, ranges, sum, widened } from '../planner/lowering/rules.ts';
import { dilated } from '@polygrad/compiler/shape/axes';
import { showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { again, behind, dtypeOfFirst, everySource, linear } from './elementwise.ts';

const first = (src: readonly Node[]): Node => src[0]!;

type Movement = 'reshape' | 'permute' | 'expand' | 'slice' | 'pad' | 'concat';

export const movements: Family<Movement> = {
  reshape: {
    infer: {
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
    role: 'movement',
    work: 0,
    encode: (a, out) => out.list(a.shape),
    move: (e, node, index) => reshapeIndex(e, node.shape, node.src[0]!.shape, index),
  },
  permute: {
    infer: {
      shape: (src, attr) => {
        const { shape } = first(src);
        const { axes } = attr;
        checkRank('permute', 'axes', axes, shape);
        // Axes that are wrong are wrong in any order, so this throws.
        if (axes.some((axis, i) => shape[axis] === undefined || axes.indexOf(axis) !== i))
          sortedDistinct(
            'permute',
            [...axes].sort((a, b) => a - b),
            shape,
          );
        return axes.map((axis) => shape[axis]!);
      },
      dtype: dtypeOfFirst,
    },
    role: 'movement',
    work: 0,
    encode: (a, out) => out.list(a.axes),
    move: (_, { attr, shape }, index) => {
      const result = new Array<KNode>(shape.length);
      attr.axes.forEach((axis, i) => {
        result[axis] = index[i]!;
      });
      return result;
    },
  },
  expand: {
    infer: {
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
    role: 'movement',
    work: 0,
    encode: (a, out) => out.list(a.shape),
    move: (e, node, index) => broadcastIndex(e, node.src[0]!.shape, index.length, index),
  },
  slice: {
    infer: {
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
    role: 'movement',
    work: 0,
    encode: (a, out) => {
      out.list(a.start);
      out.list(a.length);
      out.list(a.step);
    },
    move: (e, { attr: { start, step }, src }, index, size) =>
      index.map((x, i) => e.add(e.mul(x, e.i32(step[i]!)), startAt({ e, size }, src[0]!.shape[i]!, start[i]!))),
  },
  pad: {
    infer: {
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
    role: 'movement',
    work: 1,
    encode: (a, out) => {
      out.list(a.low);
      out.list(a.high);
      out.number(a.value);
    },
    sources: (c, node, index) => {
      const { e } = c;
      const x = node.src[0]!;
      let gate: KNode | null = null;
      const inner = index.map((at, axis) => {
        const n = x.shape[axis]!;
        const whole = node.shape[axis]!;
        if (n === whole) return at;
        const { context } = c.demand.kernel;
        const moved = e.sub(at, startAt(context, whole, node.attr.low[axis]!));
        gate = bothGates(e, gate, e.and(e.le(e.i32(0), moved), e.lt(moved, lengthOf(context, n))));
        return n === 1 ? e.i32(0) : moved;
      });
      if (gate !== null) c.note(gate);
      c.need(x, inner, gate);
    },
    value: ({ e }, demand, node) => gated(e, demand.notes[0], demand.gate, part(demand), node.attr.value),
  },
  concat: {
    infer: {
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
    role: 'movement',
    work: 2,
    encode: (a, out) => out.push(a.axis),
    sources: (c, node, index) => {
      const { e } = c;
      const { axis } = node.attr;
      const at = index[axis]!;
      let start: KNode = e.i32(0);
      for (const part of node.src) {
        const n = part.shape[axis]!;
        const end = e.add(start, lengthOf(c.demand.kernel.context, n));
        const gate = e.and(e.le(start, at), e.lt(at, end));
        c.note(gate);
        const inner = index.slice();
        inner[axis] = n === 1 ? e.i32(0) : e.sub(at, start);
        c.need(part, inner, gate);
        start = end;
      }
    },
    value: ({ e }, demand) => {
      let value = part(demand, demand.parts.length - 1);
      for (let i = demand.parts.length - 2; i >= 0; i--) value = e.where(demand.notes[i]!, part(demand, i), value);
      return value;
    },
  },
};

/** Puts stride - 1 zeros between the elements of an axis: behind every element, then the last ones are cut off. */
function spread(g: Node, axis: number, stride: number): Node {
  const n = g.shape[axis]!;
  const lifted = p.insertAxes(g, [axis + 1]);
  const none = lifted.shape.map(() => 0);
  const padded = p.pad(
    lifted,
    none,
    none.map((_, i) => (i === axis + 1 ? stride - 1 : 0)),
  );
  const merged = p.reshape(
    padded,
    g.shape.map((size, i) => (i === axis ? size * stride : size)),
  );
  return p.slice(
    merged,
    g.shape.map(() => 0),
    g.shape.map((size, i) => (i === axis ? (n - 1) * stride + 1 : size)),
    g.shape.map(() => 1),
  );
}

export const movementGradients: Gradients<Movement> = {
  reshape: ({ grad, src }) => [p.reshape(grad, src[0]!.shape)],
  permute: ({ grad, attr }) => [
    p.permute(
      grad,
      attr.axes.map((_, i) => attr.axes.indexOf(i)),
    ),
  ],
  expand: ({ grad, src }) => [p.sumTo(grad, src[0]!.shape)],
  slice: ({ grad, src, attr }) => {
    const x = src[0]!;
    const backwards = attr.step.map((step, i) => step < 0 && attr.length[i]! > 1);
    let g = p.flip(
      grad,
      backwards.flatMap((is, i) => (is ? [i] : [])),
    );
    const low: number[] = [];
    const high: number[] = [];
    x.shape.forEach((n, axis) => {
      const length = attr.length[axis]!;
      const start = attr.start[axis]!;
      const step = length > 1 ? attr.step[axis]! : 1;
      const first = step < 0 ? start + (length - 1) * step : start;
      const stride = Math.abs(step);
      if (stride > 1) g = spread(g, axis, stride);
      const extent = length === 0 ? 0 : (length - 1) * stride + 1;
      low.push(length === 0 ? 0 : first);
      high.push(n - extent - (length === 0 ? 0 : first));
    });
    return [p.pad(g, low, high)];
  },
  pad: ({ grad, src, attr }) => {
    const { shape } = src[0]!;
    // An empty axis has no first element to start from.
    const start = attr.low.map((n, i) => (shape[i] === 0 ? 0 : n));
    return [
      p.slice(
        grad,
        start,
        shape,
        shape.map(() => 1),
      ),
    ];
  },
  concat: ({ grad, src, attr, needs }) => {
    let from = 0;
    return src.map((part, i) => {
      const n = part.shape[attr.axis]!;
      const start = part.shape.map((_, axis) => (axis === attr.axis && n > 0 ? from : 0));
      from += n;
      return needs[i]
        ? p.slice(
            grad,
            start,
            part.shape,
            part.shape.map(() => 1),
          )
        : null;
    });
  },
};

export const movementTangents: Tangents<Movement> = {
  reshape: linear,
  permute: linear,
  expand: linear,
  slice: linear,
  pad: ({ attr, tangents }) => p.pad(tangents[0]!, attr.low, attr.high),
  concat: ({ src, attr, tangents }) =>
    p.concat(
      tangents.map((tangent, i) => tangent ?? p.zerosLike(src[i]!)),
      attr.axis,
    ),
};

export const movementBatches: Batches<Movement> = {
  reshape: (c) => again(c, { shape: [c.size, ...c.attr.shape] }),
  permute: (c) => again(c, { axes: [0, ...behind(c.attr.axes)] }),
  expand: (c) => again(c, { shape: [c.size, ...c.attr.shape] }),
  slice: (c) => {
    const { start, length, step } = c.attr;
    return again(c, { start: [0, ...start], length: [c.size, ...length], step: [1, ...step] });
  },
  pad: (c) => again(c, { low: [0, ...c.attr.low], high: [0, ...c.attr.high], value: c.attr.value }),
  concat: (c) => makeAgain(c.node, everySource(c), { axis: c.attr.axis + 1 }),
};

// Sliding windows over the last axes, and sums of windows back to where they come from: each is the transpose of the other.

/** [..., H, W] to [..., outH, outW, kh, kw]. */
function windowShape(shape: Shape, attr: Attrs['window']): Shape {
  const rank = attr.size.length;
  const lead = shape.length - rank;
  if (lead < 0) fail('window', say`too few axes: ${showShape(shape)} for ${rank} window axes`, shape);
  const counts = attr.size.map((size, i) => {
    const n = shape[lead + i]!;
    const extent = dilated(size, attr.dilation[i]!);
    return n < extent ? 0 : Math.floor((n - extent) / attr.stride[i]!) + 1;
  });
  return [...shape.slice(0, lead), ...counts, ...attr.size];
}

/** [..., outH, outW, kh, kw] to [..., H, W]. */
function foldShape(shape: Shape, attr: Attrs['fold']): Shape {
  const lead = shape.length - 2 * attr.size.length;
  const expected = lead < 0 ? [] : windowShape([...shape.slice(0, lead), ...attr.spatial], attr);
  if (expected.length !== shape.length || expected.some((n, i) => n !== shape[i])) {
    fail(
      'fold',
      say`shape ${showShape(shape)} is not what windows over ${showShape(attr.spatial)} give: ${showShape(expected)}`,
      shape,
      expected,
    );
  }
  return [...shape.slice(0, lead), ...attr.spatial];
}

/** True if no two windows overlap: then `fold` is an index map. */
function isMovement(attr: Attrs['fold']): boolean {
  return attr.size.every((n, i) => n === 1 || (attr.dilation[i]! === 1 && n <= attr.stride[i]!));
}

type Windowed = 'window' | 'fold';

export const windows: Family<Windowed> = {
  window: {
    infer: { shape: (src, attr) => windowShape(src[0]!.shape, attr), dtype: dtypeOfFirst },
    role: 'movement',
    work: 0,
    encode: (a, out) => {
      out.list(a.size);
      out.list(a.stride);
      out.list(a.dilation);
    },
    sources: (c, node, index) => {
      const { e } = c;
      const { size, stride, dilation } = node.attr;
      const rank = size.length;
      const lead = index.length - 2 * rank;
      const inner = index.slice(0, lead);
      for (let i = 0; i < rank; i++) {
        const start = e.mul(index[lead + i]!, stride[i]!);
        inner.push(e.add(start, e.mul(index[lead + rank + i]!, dilation[i]!)));
      }
      c.need(node.src[0]!, inner);
    },
  },
  fold: {
    infer: { shape: (src, attr) => foldShape(src[0]!.shape, attr), dtype: dtypeOfFirst },
    role: 'reduce',
    roleOf: (attr) => (isMovement(attr) ? 'movement' : 'reduce'),
    work: 2,
    encode: (a, out) => {
      out.list(a.size);
      out.list(a.stride);
      out.list(a.dilation);
      out.list(a.spatial);
    },
    sources: (c, node, index) => {
      const { e } = c;
      const { size, stride, dilation } = node.attr;
      const x = node.src[0]!;
      const rank = size.length;
      const lead = node.shape.length - rank;
      const counts = size.map((n, i) => (dilation[i] === 1 || n === 1 ? Math.ceil(n / stride[i]!) : n));
      const own = c.loops(counts);
      let gate: KNode | null = null;
      const starts: KNode[] = [];
      const offsets: KNode[] = [];
      for (let i = 0; i < rank; i++) {
        const at = index[lead + i]!;
        const windows = x.shape[lead + i]!;
        const step = e.i32(stride[i]!);
        const k = own[i]!;
        if (dilation[i] === 1 || size[i] === 1) {
          // The k-th window back from the last one that starts at or before this element.
          const start = e.sub(e.idiv(at, step), k);
          const offset = e.add(e.irem(at, step), e.mul(k, step));
          gate = bothGates(e, gate, e.and(within(e, start, 0, windows), e.lt(offset, size[i]!)));
          starts.push(start);
          offsets.push(offset);
        } else {
          const from = e.sub(at, e.mul(k, dilation[i]!));
          const start = e.idiv(from, step);
          gate = bothGates(e, gate, e.and(within(e, from, 0, windows * stride[i]!), e.eq(e.irem(from, step), 0)));
          starts.push(start);
          offsets.push(k);
        }
      }
      if (gate !== null) c.note(gate);
      c.needInside(x, [...index.slice(0, lead), ...starts, ...offsets], gate, ranges(own), false);
    },
    value: ({ e }, demand, node) => {
      const wide = widened(node.dtype);
      const value = gated(e, demand.notes[0], demand.gate, part(demand), 0);
      return demand.ranges.length === 0 ? value : e.cast(sum(e, demand, e.cast(value, wide)), node.dtype);
    },
  },
};

export const windowGradients: Gradients<Windowed> = {
  window: ({ grad, src, attr }) => {
    const x = src[0]!;
    return [makeNode('fold', [grad], { ...attr, spatial: x.shape.slice(x.shape.length - attr.size.length) })];
  },
  fold: ({ grad, attr }) => {
    const { size, stride, dilation } = attr;
    return [makeNode('window', [grad], { size, stride, dilation })];
  },
};

export const windowTangents: Tangents<Windowed> = { window: linear, fold: linear };

export const windowBatches: Batches<Windowed> = { window: (c) => again(c), fold: (c) => again(c) };

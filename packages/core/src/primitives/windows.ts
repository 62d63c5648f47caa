/** Sliding windows over the last axes, and sums of windows back to where they come from: each is the transpose of the other. */
import type { Attrs } from '../graph/attrs.ts';
import { makeNode } from '../graph/build.ts';
import { type Batches, fail, type Family, type Gradients, type Tangents } from '../graph/definition.ts';
import type { KNode } from '../ir/ir.ts';
import { bothGates, within } from '../planner/lowering/index-map.ts';
import { gated, part, ranges, sum, widened } from '../planner/lowering/rules.ts';
import { dilated } from '../shape/axes.ts';
import { showShape } from '../shape/errors.ts';
import type { Shape } from '../shape/view.ts';
import { say } from '../shape/shown.ts';
import { again, dtypeOfFirst, linear } from './rules.ts';

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

/**
 * Contractions, sums of products of two sources: `dotGeneral` (matrix products over any axes) and `conv` (convolutions, with strides, padding,
 * dilation and groups). Their gradients and batches are contractions again, so all of them get the same fast kernels.
 */
import { told } from '#shown-as';
import type { ConvAttr, Node } from '../graph/node.ts';
import { makeAgain, makeNode } from '../graph/primitives.ts';
import {
  type Batches,
  common,
  fail,
  type Family,
  type Gradients,
  type TangentContext,
  type Tangents,
} from '../graph/definition.ts';
import type { KNode } from '@polygrad/compiler/ir/ir';
import type { Demand } from '../planner/fusion/draft.ts';
import type { PlanNode } from '../planner/capture/plan-graph.ts';
import { bothGates, within } from '../planner/lowering/index-map.ts';
import { gated, part, ranges, sum, type ValueContext, widened } from '../planner/lowering/rules.ts';
import { dilated } from '@polygrad/compiler/shape/axes';
import { fault, showShape } from '@polygrad/compiler/shape/errors';
import type { Shape } from '@polygrad/compiler/shape/view';
import { say } from '@polygrad/compiler/shape/shown';
import * as p from '../graph/primitives.ts';
import { behind, moved, toFront } from './elementwise.ts';

/** Throws unless axes that belong together have one size. */
function checkPaired(lhs: Shape, lhsAxes: readonly number[], rhs: Shape, rhsAxes: readonly number[]): void {
  const count = Math.max(lhsAxes.length, rhsAxes.length);
  for (let i = 0; i < count; i++) {
    const m = lhsAxes[i] ?? -1;
    const n = rhsAxes[i] ?? -1;
    if (lhs[m] === undefined || lhs[m] !== rhs[n]) {
      fail(
        'dotGeneral',
        say`sizes differ: axis ${m} of ${showShape(lhs)} and axis ${n} of ${showShape(rhs)}; paired axes must be equal`,
        lhs,
        rhs,
      );
    }
  }
}

/** Writes the sizes of the axes that are neither batch nor contracted from position `at` on; returns where it ended. */
function writeFree(
  to: number[],
  at: number,
  shape: Shape,
  batch: readonly number[],
  contract: readonly number[],
): number {
  let end = at;
  for (let axis = 0; axis < shape.length; axis++) {
    if (!has(batch, axis) && !has(contract, axis)) to[end++] = shape[axis]!;
  }
  return end;
}

/** `includes` for lists of a few numbers, without a call: products are recorded often. */
function has(list: readonly number[], value: number): boolean {
  for (let i = 0; i < list.length; i++) if (list[i] === value) return true;
  return false;
}

/** Result of the `conv` primitive: [N / batchGroups, O, ...spatial]. */
function convShape(lhs: Shape, rhs: Shape, attr: ConvAttr): Shape {
  const rank = lhs.length - 2;
  if (rank < 1 || rhs.length !== lhs.length || attr.stride.length !== rank) {
    // Operations have checked that.
    throw fault(
      'conv',
      told &&
        say`ranks do not fit: input ${showShape(lhs)}, kernel ${showShape(rhs)}, ${attr.stride.length} spatial axes; needs [N, C, ...] and [O, C / groups, ...]`,
    );
  }
  const [batch, channels] = [lhs[0]!, lhs[1]!];
  const [features, depth] = [rhs[0]!, rhs[1]!];
  const { groups, batchGroups } = attr;
  if (channels !== depth * groups) {
    fail(
      'conv',
      say`channels do not fit: input ${showShape(lhs)} has ${channels}, kernel ${showShape(rhs)} with ${groups} groups needs ${depth * groups}`,
      lhs,
      rhs,
    );
  }
  if (
    features % groups !== 0 ||
    features % batchGroups !== 0 ||
    batch % batchGroups !== 0 ||
    (groups > 1 && batchGroups > 1)
  ) {
    fail(
      'conv',
      say`groups do not divide: ${features} output features in ${groups * batchGroups} groups; choose a divisor`,
      lhs,
      rhs,
    );
  }
  const shape = [batch / batchGroups, features];
  for (let i = 0; i < rank; i++) {
    const size = dilated(lhs[i + 2]!, attr.lhsDilation[i]!) + attr.padLow[i]! + attr.padHigh[i]!;
    const extent = dilated(rhs[i + 2]!, attr.rhsDilation[i]!);
    if (extent === 0) fail('conv', say`empty kernel: ${showShape(rhs)}; spatial sizes must be at least 1`, rhs);
    shape.push(size < extent ? 0 : Math.floor((size - extent) / attr.stride[i]!) + 1);
  }
  return shape;
}

/** The element of either: the sum of products over its own loops, with zeros where the input is padded or dilated. */
function value({ e }: ValueContext, demand: Demand, node: PlanNode): KNode {
  const wide = widened(node.dtype);
  const lhs = e.cast(gated(e, demand.notes[0], demand.gate, part(demand, 0), 0), wide);
  const rhs = e.cast(part(demand, 1), wide);
  return e.cast(sum(e, demand, e.mul(lhs, rhs)), node.dtype);
}

type Contraction = 'dotGeneral' | 'conv';

export const contractions: Family<Contraction> = {
  dotGeneral: {
    infer: {
      shape: (src, attr) => {
        const { lhsBatch, rhsBatch, lhsContract, rhsContract } = attr;
        const lhs = src[0]!.shape;
        const rhs = src[1]!.shape;
        checkPaired(lhs, lhsBatch, rhs, rhsBatch);
        checkPaired(lhs, lhsContract, rhs, rhsContract);
        const batches = lhsBatch.length;
        const shape = new Array<number>(lhs.length + rhs.length - batches - 2 * lhsContract.length);
        for (let i = 0; i < batches; i++) shape[i] = lhs[lhsBatch[i]!]!;
        writeFree(shape, writeFree(shape, batches, lhs, lhsBatch, lhsContract), rhs, rhsBatch, rhsContract);
        return shape;
      },
      dtype: (src) => common('dotGeneral', 'number', src[0]!, src[1]!),
    },
    role: 'contraction',
    work: 2,
    encode: (a, out) => {
      out.list(a.lhsBatch);
      out.list(a.rhsBatch);
      out.list(a.lhsContract);
      out.list(a.rhsContract);
    },
    sources: (c, node, index) => {
      const [lhs, rhs] = node.src as [PlanNode, PlanNode];
      const { lhsBatch, rhsBatch, lhsContract, rhsContract } = node.attr;
      const own = c.ownLoops(lhsContract.map((axis) => lhs.shape[axis]!));
      let at = lhsBatch.length;
      const side = (shape: readonly number[], batch: readonly number[], contract: readonly number[]): KNode[] =>
        shape.map((_, axis) => {
          if (batch.includes(axis)) return index[batch.indexOf(axis)]!;
          if (contract.includes(axis)) return own[contract.indexOf(axis)]!;
          return index[at++]!;
        });
      const left = side(lhs.shape, lhsBatch, lhsContract);
      const right = side(rhs.shape, rhsBatch, rhsContract);
      c.needInside(lhs, left, null, ranges(own), true);
      c.needInside(rhs, right, null, ranges(own), true);
    },
    value,
  },
  conv: {
    infer: {
      shape: (src, attr) => convShape(src[0]!.shape, src[1]!.shape, attr),
      dtype: (src) => common('conv', 'number', src[0]!, src[1]!),
    },
    role: 'contraction',
    work: 2,
    encode: (a, out) => {
      out.list(a.stride);
      out.list(a.padLow);
      out.list(a.padHigh);
      out.list(a.lhsDilation);
      out.list(a.rhsDilation);
      out.push(a.groups);
      out.push(a.batchGroups);
    },
    sources: (c, node, index) => {
      const { e } = c;
      const { attr } = node;
      const [lhs, rhs] = node.src as [PlanNode, PlanNode];
      const depth = rhs.shape[1]!;
      const features = rhs.shape[0]!;
      const own = c.ownLoops([depth, ...rhs.shape.slice(2)]);
      const channel = own[0]!;
      const feature = index[1]!;
      let image = index[0]!;
      let from = channel;
      if (attr.groups > 1) from = e.add(e.mul(e.idiv(feature, features / attr.groups), depth), channel);
      if (attr.batchGroups > 1)
        image = e.add(e.mul(e.idiv(feature, features / attr.batchGroups), node.shape[0]!), image);
      let gate: KNode | null = null;
      const spatial = attr.stride.map((stride, i) => {
        const n = lhs.shape[i + 2]!;
        const hole = attr.lhsDilation[i]!;
        const k = own[i + 1]!;
        const start = e.sub(e.mul(index[i + 2]!, stride), attr.padLow[i]!);
        const at = e.add(start, e.mul(k, attr.rhsDilation[i]!));
        gate = bothGates(e, gate, within(e, at, 0, (n - 1) * hole + 1));
        if (hole === 1) return at;
        gate = bothGates(e, gate, e.eq(e.irem(at, hole), 0));
        return e.idiv(at, hole);
      });
      if (gate !== null) c.note(gate);
      const safe = spatial.map((at, i) => (lhs.shape[i + 2] === 1 ? e.i32(0) : at));
      c.needInside(lhs, [image, from, ...safe], gate, ranges(own), true);
      c.needInside(rhs, [feature, ...own], null, ranges(own), true);
    },
    value,
  },
};

function range(from: number, count: number): number[] {
  const list = new Array<number>(count);
  for (let i = 0; i < count; i++) list[i] = from + i;
  return list;
}

/** The axes of a node that are in neither list. */
function freeAxes({ shape }: Node, batch: readonly number[], contract: readonly number[]): number[] {
  return range(0, shape.length).filter((i) => !batch.includes(i) && !contract.includes(i));
}

/** Splits `groups` off axis `from` and merges them into axis `into`, in front. Axes are 0 and 1. */
function moveGroups(x: Node, groups: number, from: 0 | 1, into: 0 | 1): Node {
  if (groups === 1) return x;
  const [a, b, ...rest] = x.shape as [number, number, ...number[]];
  const tail = rest.map((_, i) => i + 3);
  if (from === 0 && into === 1) {
    const split = p.reshape(x, [groups, a / groups, b, ...rest]);
    return p.reshape(p.permute(split, [1, 0, 2, ...tail]), [a / groups, groups * b, ...rest]);
  }
  const split = p.reshape(x, [a, groups, b / groups, ...rest]);
  return p.reshape(p.permute(split, [1, 0, 2, ...tail]), [groups * a, b / groups, ...rest]);
}

const swapFirst = (x: Node): Node => p.permute(x, [1, 0, ...range(2, x.shape.length - 2)]);

/**
 * Products and convolutions again, so derivatives of every order stay fast.
 *
 * The rules for convolution follow from writing it as a sum over output and kernel positions, and solving for the other operand. JAX has the
 * same arithmetic (jax/_src/lax/convolution.py) and calls these widths "vjp padding".
 */
export const contractionGradients: Gradients<Contraction> = {
  dotGeneral: ({ grad, src, attr, needs }) => {
    const [lhs, rhs] = src as [Node, Node];
    const { lhsBatch, rhsBatch, lhsContract, rhsContract } = attr;
    const lhsFree = freeAxes(lhs, lhsBatch, lhsContract);
    const rhsFree = freeAxes(rhs, rhsBatch, rhsContract);
    const batch = range(0, lhsBatch.length);
    const lhsOfGrad = range(batch.length, lhsFree.length);
    const rhsOfGrad = range(batch.length + lhsFree.length, rhsFree.length);
    // The last axes of the products below are the other operand's contracted axes, in its own order: their partners in the same order.
    const pairedWith = (from: readonly number[], to: readonly number[]): readonly number[] =>
      from.length < 2 ? to : [...from].sort((a, b) => a - b).map((axis) => to[from.indexOf(axis)]!);
    const arrange = (node: Node, axes: readonly number[]): Node =>
      p.permute(
        node,
        axes.map((_, axis) => axes.indexOf(axis)),
      );
    let byLhs: Node | null = null;
    if (needs[0]) {
      const g = makeNode('dotGeneral', [grad, rhs], {
        lhsBatch: batch,
        rhsBatch,
        lhsContract: rhsOfGrad,
        rhsContract: rhsFree,
      });
      byLhs = arrange(g, [...lhsBatch, ...lhsFree, ...pairedWith(rhsContract, lhsContract)]);
    }
    let byRhs: Node | null = null;
    if (needs[1]) {
      const g = makeNode('dotGeneral', [lhs, grad], {
        lhsBatch,
        rhsBatch: batch,
        lhsContract: lhsFree,
        rhsContract: lhsOfGrad,
      });
      byRhs = arrange(g, [...rhsBatch, ...pairedWith(lhsContract, rhsContract), ...rhsFree]);
    }
    return [byLhs, byRhs];
  },
  conv: ({ grad, src, attr, needs }) => {
    const [lhs, rhs] = src as [Node, Node];
    const { stride, padLow, lhsDilation, rhsDilation, groups, batchGroups } = attr;
    const rank = stride.length;
    const spatial = range(2, rank);
    const lhsExtent = spatial.map((axis, i) => dilated(lhs.shape[axis]!, lhsDilation[i]!));
    const rhsExtent = spatial.map((axis, i) => dilated(rhs.shape[axis]!, rhsDilation[i]!));
    const outExtent = spatial.map((axis, i) => dilated(grad.shape[axis]!, stride[i]!));
    const empty = grad.shape.includes(0);
    let byLhs: Node | null = null;
    if (needs[0]) {
      // The gradient convolved with the flipped kernel: features take the place of channels, strides become dilation of the input.
      const features = groups > 1 ? groups : batchGroups;
      const kernel = p.flip(swapFirst(moveGroups(rhs, features, 0, 1)), spatial);
      const low = rhsExtent.map((n, i) => n - padLow[i]! - 1);
      const high = lhsExtent.map((n, i) => n + rhsExtent[i]! - 1 - outExtent[i]! - low[i]!);
      const g = empty
        ? p.zerosLike(lhs)
        : makeNode('conv', [grad, kernel], {
            stride: lhsDilation,
            padLow: low,
            padHigh: high,
            lhsDilation: stride,
            rhsDilation,
            groups: features,
            batchGroups: 1,
          });
      byLhs = empty ? g : moveGroups(g, batchGroups, 1, 0);
    }
    let byRhs: Node | null = null;
    if (needs[1]) {
      // The input correlated with the gradient: the batch takes the place of channels and is summed.
      const high = lhsExtent.map((n, i) => outExtent[i]! - n + rhsExtent[i]! - padLow[i]! - 1);
      const g = empty
        ? p.zerosLike(rhs)
        : makeNode('conv', [swapFirst(lhs), swapFirst(grad)], {
            stride: rhsDilation,
            padLow,
            padHigh: high,
            lhsDilation,
            rhsDilation: stride,
            groups: batchGroups,
            batchGroups: groups,
          });
      byRhs = empty ? g : swapFirst(g);
    }
    return [byLhs, byRhs];
  },
};

/** Linear in each of the two sources. */
function bilinear<P extends Contraction>({ node, src, attr, tangents }: TangentContext<P>): Node | null {
  const [a, b] = src as [Node, Node];
  const [da, db] = tangents as [Node | null, Node | null];
  const byA = da === null ? null : makeAgain(node, [da, b], attr);
  const byB = db === null ? null : makeAgain(node, [a, db], attr);
  return byA !== null && byB !== null ? p.add(byA, byB) : (byA ?? byB);
}

export const contractionTangents: Tangents<Contraction> = { dotGeneral: bilinear, conv: bilinear };

/** Axis 0 merged into axis `axis` (counted without axis 0), between its `groups` and what is inside a group. */
function mergeInto(x: Node, axis: number, groups: number): Node {
  const [size, ...shape] = x.shape as [number, ...number[]];
  const n = shape[axis]!;
  if (groups === 1) {
    const next = p.permute(x, moved(x.shape.length, 0, axis));
    return p.reshape(next, [...shape.slice(0, axis), size * n, ...shape.slice(axis + 1)]);
  }
  const split = p.reshape(x, [size, ...shape.slice(0, axis), groups, n / groups, ...shape.slice(axis + 1)]);
  const next = p.permute(split, moved(split.shape.length, 0, axis + 1));
  return p.reshape(next, [...shape.slice(0, axis), size * n, ...shape.slice(axis + 1)]);
}

/** The reverse of mergeInto: the batch of `size` out of an axis, as axis 0. */
function splitFrom(x: Node, axis: number, size: number, groups: number): Node {
  const n = x.shape[axis]! / size;
  const split = p.reshape(x, [...x.shape.slice(0, axis), groups, size, n / groups, ...x.shape.slice(axis + 1)]);
  const front = toFront(split, axis + 1);
  return p.reshape(front, [size, ...x.shape.slice(0, axis), n, ...x.shape.slice(axis + 1)]);
}

/**
 * A batch in both operands is one more batch axis of a product, or more groups of a convolution; a batch in one of them is one more free
 * axis, or more images or features.
 */
export const contractionBatches: Batches<Contraction> = {
  dotGeneral: ({ src, attr, sources }) => {
    const [lhs, rhs] = sources as [Node | null, Node | null];
    const { lhsBatch, rhsBatch, lhsContract, rhsContract } = attr;
    if (lhs !== null && rhs !== null) {
      return makeNode('dotGeneral', [lhs, rhs], {
        lhsBatch: [0, ...behind(lhsBatch)],
        rhsBatch: [0, ...behind(rhsBatch)],
        lhsContract: behind(lhsContract),
        rhsContract: behind(rhsContract),
      });
    }
    if (lhs !== null) {
      const product = makeNode('dotGeneral', [lhs, src[1]!], {
        lhsBatch: behind(lhsBatch),
        rhsBatch,
        lhsContract: behind(lhsContract),
        rhsContract,
      });
      return toFront(product, lhsBatch.length);
    }
    const product = makeNode('dotGeneral', [src[0]!, rhs!], {
      lhsBatch,
      rhsBatch: behind(rhsBatch),
      lhsContract,
      rhsContract: behind(rhsContract),
    });
    const lhsFree = src[0]!.shape.length - lhsBatch.length - lhsContract.length;
    return toFront(product, lhsBatch.length + lhsFree);
  },
  conv: (c) => {
    const { node, src, attr, sources, size } = c;
    const [lhs, rhs] = sources as [Node | null, Node | null];
    const { groups, batchGroups } = attr;
    if (size === 0) return p.constant(0, node.dtype, [0, ...node.shape]);
    if (lhs !== null && rhs !== null) {
      if (batchGroups > 1) {
        const result = makeNode('conv', [mergeInto(lhs, 0, 1), mergeInto(rhs, 0, 1)], {
          ...attr,
          batchGroups: batchGroups * size,
        });
        return splitFrom(result, 1, size, 1);
      }
      const result = makeNode('conv', [mergeInto(lhs, 1, 1), mergeInto(rhs, 0, 1)], { ...attr, groups: groups * size });
      return splitFrom(result, 1, size, 1);
    }
    if (lhs !== null) {
      // More images; those of one group of the batch stay together.
      const result = makeNode('conv', [mergeInto(lhs, 0, batchGroups), src[1]!], attr);
      return splitFrom(result, 0, size, 1);
    }
    // More features, inside each group.
    const parts = Math.max(groups, batchGroups);
    const result = makeNode('conv', [src[0]!, mergeInto(rhs!, 0, parts)], attr);
    return splitFrom(result, 1, size, parts);
  },
};

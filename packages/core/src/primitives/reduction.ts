/** Reductions, one result from many elements along axes: `reduce` (sum, product, maximum, minimum) and `argReduce` (positions of extremes). */
import type { Node, PrimitiveName } from '../graph/node.ts';
import {
  type Batches,
  checkDType,
  customRules,
  fail,
  type Family,
  type Gradients,
  sortedDistinct,
  spliced,
  type Tangents,
} from '../graph/definition.ts';
import type { KNode } from '@polygrad/compiler/ir/ir';
import type { PlanNode } from '../planner/capture/plan-graph.ts';
import type { Index } from '../planner/lowering/index-map.ts';
import { part, ranges, type SourceContext, widened } from '../planner/lowering/rules.ts';
import { dropAxes, keepAxes } from '@polygrad/compiler/shape/axes';
import { showShape } from '@polygrad/compiler/shape/errors';
import type { Shape } from '@polygrad/compiler/shape/view';
import { say } from '@polygrad/compiler/shape/shown';
import * as p from '../graph/primitives.ts';
import { again, behind, linear } from './elementwise.ts';

function checkNotEmpty(op: PrimitiveName, shape: Shape, axes: readonly number[]): void {
  for (const axis of axes) {
    if (shape[axis] === 0) {
      fail(
        op,
        say`reduction over nothing: axis ${axis} of ${showShape(shape)} is empty and this reduction has no value for it; check the size first`,
        shape,
      );
    }
  }
}

/** Index into a reduction's source: `own` at the reduced axes, the result's index elsewhere. */
function insertAxes(rank: number, axes: readonly number[], index: Index, own: readonly KNode[]): KNode[] {
  const result = new Array<KNode>(rank);
  let kept = 0;
  for (let axis = 0; axis < rank; axis++) {
    const at = axes.indexOf(axis);
    result[axis] = (at >= 0 ? own[at] : index[kept++])!;
  }
  return result;
}

function sources(c: SourceContext, node: PlanNode<'reduce'> | PlanNode<'argReduce'>, index: Index): void {
  const x = node.src[0]!;
  const own = c.loops(node.attr.axes.map((axis) => x.shape[axis]!));
  c.needInside(x, insertAxes(x.shape.length, node.attr.axes, index, own), null, ranges(own), false);
}

const reduceOps = { sum: 0, prod: 1, max: 2, min: 3 } as const;
const tieRules = { share: 0, first: 1 } as const;

type Reduction = 'reduce' | 'argReduce';

export const reductions: Family<Reduction> = {
  reduce: {
    infer: {
      shape: (src, attr) => {
        const { shape } = src[0]!;
        sortedDistinct('reduce', attr.axes, shape);
        if (attr.op === 'max' || attr.op === 'min') checkNotEmpty('reduce', shape, attr.axes);
        return dropAxes(shape, attr.axes);
      },
      dtype: (src) => {
        const { dtype } = src[0]!;
        checkDType('number', 'reduce', dtype);
        return dtype;
      },
    },
    role: 'reduce',
    work: 1,
    encode: (a, out) => {
      out.push(reduceOps[a.op] * 2 + tieRules[a.ties]);
      out.list(a.axes);
    },
    sources,
    value: ({ e }, demand, node) => {
      const wide = node.attr.op === 'sum' || node.attr.op === 'prod' ? widened(node.dtype) : node.dtype;
      return e.cast(e.reduce(node.attr.op, e.cast(part(demand), wide), demand.ranges), node.dtype);
    },
  },
  argReduce: {
    infer: {
      shape: (src, attr) => {
        const { shape } = src[0]!;
        sortedDistinct('argReduce', attr.axes, shape);
        checkNotEmpty('argReduce', shape, attr.axes);
        return dropAxes(shape, attr.axes);
      },
      dtype: (src) => {
        checkDType('number', 'argReduce', src[0]!.dtype);
        return 'int32';
      },
    },
    role: 'reduce',
    work: 3,
    encode: (a, out) => {
      out.push(reduceOps[a.op]);
      out.list(a.axes);
    },
    sources,
    value: ({ e }, demand, node) => e.reduce(node.attr.op === 'max' ? 'argmax' : 'argmin', part(demand), demand.ranges),
  },
};

/** True at the winner of each result, whose positions are those of `argReduce`. */
function isWinner(x: Node, winners: Node, axes: readonly number[]): Node {
  // Positions are computed axis by axis, not along a merged axis: for that the windows of a pooling would have to be copied.
  const winner = p.reshape(winners, keepAxes(x.shape, axes));
  let position: Node | null = null;
  let step = 1;
  for (let i = axes.length - 1; i >= 0; i--) {
    const axis = axes[i]!;
    const n = x.shape[axis]!;
    const along = p.reshape(
      p.iota(n),
      x.shape.map((_, at) => (at === axis ? n : 1)),
    );
    const scaled = step === 1 ? along : p.mul(along, p.constant(step, 'int32'));
    position = position === null ? scaled : p.add(position, scaled);
    step *= n;
  }
  return p.eq(position!, winner);
}

/**
 * The largest along axes, whose gradient goes to positions that `winners` finds among the elements, and not simply to the first of equals: for places that
 * hold the least value because they do not count.
 *
 * @param others what `winners` needs besides the elements
 */
export function largestAmong(
  x: Node,
  axes: readonly number[],
  others: readonly Node[],
  winners: (x: Node, ...others: Node[]) => Node,
): Node {
  const node = p.makeNode('stopGradient', [p.reduce(x, 'max', axes, 'first'), x, ...others], null);
  customRules.set(node, (grad, { src }) => {
    const [, all, ...rest] = src as [Node, Node, ...Node[]];
    const each = p.reshape(grad, keepAxes(all.shape, axes));
    const given = p.where(isWinner(all, winners(all, ...rest), axes), each, p.zerosLike(all));
    return [null, given, ...rest.map(() => null)];
  });
  return node;
}

/** For every element the product of all others along the axes. */
function productOfOthers(x: Node, axes: readonly number[]): Node {
  // All axes as one, where the first of them is: a single one stays in its place.
  const at = axes[0]!;
  const rest = x.shape.map((_, i) => i).filter((i) => !axes.includes(i));
  const order = [...rest.slice(0, at), ...axes, ...rest.slice(at)];
  const moved = p.permute(x, order);
  const { shape } = moved;
  const count = axes.reduce((n, axis) => n * x.shape[axis]!, 1);
  const flat = p.reshape(moved, [...shape.slice(0, at), count, ...shape.slice(at + axes.length)]);
  return p.permute(
    p.reshape(productAlong(flat, at), shape),
    order.map((_, i) => order.indexOf(i)),
  );
}

/**
 * The same along one axis. Its halves are multiplied with each other, then those of the product, down to one; on the way back each half gets
 * what belongs to the other. Halves, not neighbours, so that kernels read rows. Without division, so zeros are exact at every order of derivative.
 */
function productAlong(x: Node, at: number): Node {
  const { shape } = x;
  const n = shape[at]!;
  if (n < 2) return p.constant(1, x.dtype, shape);
  const none = shape.map(() => 0);
  // An odd element has a one beside it.
  const even = p.pad(x, none, spliced(none, at, [n % 2]), 1);
  const halves = p.reshape(even, spliced(shape, at, [2, Math.ceil(n / 2)]));
  const others = productAlong(p.reduce(halves, 'prod', [at]), at);
  const both = p.mul(p.flip(halves, [at]), p.insertAxes(others, [at]));
  return p.slice(
    p.reshape(both, even.shape),
    none,
    shape,
    shape.map(() => 1),
  );
}

export const reductionGradients: Gradients<Reduction> = {
  reduce: ({ grad, src, node, attr }) => {
    const x = src[0]!;
    const kept = keepAxes(x.shape, attr.axes);
    const g = p.reshape(grad, kept);
    switch (attr.op) {
      case 'sum':
        return [p.expand(g, x.shape)];
      case 'prod':
        return [p.mul(productOfOthers(x, attr.axes), g)];
      case 'max':
      case 'min': {
        if (attr.ties === 'first')
          return [p.where(isWinner(x, p.argReduce(x, attr.op, attr.axes), attr.axes), g, p.zerosLike(x))];
        const winners = p.eq(x, p.reshape(node, kept));
        const count = p.reshape(p.reduce(p.cast(winners, x.dtype), 'sum', attr.axes), kept);
        // Nothing equals NaN: then there is no winner, and no derivative. (As a factor, so that forward mode has it, too.)
        const nothing = p.eq(count, p.zerosLike(count));
        const share = p.div(g, p.where(nothing, p.like(count, Number.NaN), count));
        return [p.where(p.binary('or', winners, p.expand(nothing, x.shape)), share, p.zerosLike(x))];
      }
      default:
        return attr.op satisfies never;
    }
  },
  argReduce: () => [],
};

export const reductionTangents: Tangents<'reduce'> = { reduce: (c) => (c.attr.op === 'sum' ? linear(c) : undefined) };

export const reductionBatches: Batches<Reduction> = {
  reduce: (c) => again(c, { ...c.attr, axes: behind(c.attr.axes) }),
  argReduce: (c) => again(c, { ...c.attr, axes: behind(c.attr.axes) }),
};

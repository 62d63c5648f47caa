/** Gradient rules of reductions. */
import { makeNode } from '../../graph/build.ts';
import { isOp, type Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { keepAxes } from '../../shape/axes.ts';
import type { GradientRule } from '../../graph/rules.ts';

export const reduceRule: GradientRule<'reduce'> = ({ grad, src, node, attr }) => {
  const x = src[0] as Node;
  const kept = keepAxes(x.shape, attr.axes);
  const g = p.reshape(grad, kept);
  switch (attr.op) {
    case 'sum':
      return [p.expand(g, x.shape)];
    case 'prod':
      return [p.mul(productOfOthers(x, attr.axes), g)];
    case 'max':
    case 'min': {
      if (attr.ties === 'first') return [p.where(firstWinner(x, attr.op, attr.axes), g, p.zerosLike(x))];
      const winners = p.eq(x, p.reshape(node, kept));
      const count = p.reduce(p.cast(winners, x.dtype), 'sum', attr.axes);
      return [p.where(winners, p.div(g, p.reshape(count, kept)), p.zerosLike(x))];
    }
    default:
      return attr.op satisfies never;
  }
};

/** True at the first winner of each result. */
function firstWinner(x: Node, op: 'max' | 'min', axes: readonly number[]): Node {
  // The window of a pooling is compared as it lies: position in the window against the winner's position.
  const winner = p.reshape(p.argReduce(x, op, axes), keepAxes(x.shape, axes));
  let position: Node | null = null;
  let step = 1;
  for (let i = axes.length - 1; i >= 0; i--) {
    const axis = axes[i] as number;
    const n = x.shape[axis] as number;
    const along = p.reshape(
      p.iota(n),
      x.shape.map((_, at) => (at === axis ? n : 1)),
    );
    const scaled = step === 1 ? along : p.mul(along, p.constant(step, 'int32'));
    position = position === null ? scaled : p.add(position, scaled);
    step *= n;
  }
  return p.eq(position as Node, winner);
}

/**
 * For every element the product of all others along the axes, without division, so that zeros are exact at every order: the product of
 * those before it times that of those after it, each built up in log2(n) doubling steps.
 */
function productOfOthers(x: Node, axes: readonly number[]): Node {
  const rest = x.shape.map((_, i) => i).filter((i) => !axes.includes(i));
  const order = [...rest, ...axes];
  const moved = p.permute(x, order);
  const count = axes.reduce((n, axis) => n * (x.shape[axis] as number), 1);
  const flat = p.reshape(moved, [...rest.map((i) => x.shape[i] as number), count]);
  const others = p.mul(
    productBefore(flat, count),
    p.flip(productBefore(p.flip(flat, [rest.length]), count), [rest.length]),
  );
  const back = p.reshape(others, moved.shape);
  return p.permute(
    back,
    x.shape.map((_, i) => order.indexOf(i)),
  );
}

/** Product of all elements before each one along the last axis. */
function productBefore(x: Node, count: number): Node {
  const last = x.shape.length - 1;
  let result = shifted(x, 1, count);
  for (let step = 1; step < count; step *= 2) result = p.mul(result, shifted(result, step, count));
  return p.reshape(result, [...x.shape.slice(0, last), count]);
}

/** Moved towards the end of the last axis, ones coming in. */
function shifted(x: Node, by: number, count: number): Node {
  const rank = x.shape.length;
  const zeros = x.shape.map(() => 0);
  const keep = Math.max(0, count - by);
  const cut = p.slice(
    x,
    zeros,
    [...x.shape.slice(0, rank - 1), keep],
    x.shape.map(() => 1),
  );
  return p.pad(cut, [...zeros.slice(1), count - keep], zeros, 1);
}

export const windowRule: GradientRule<'window'> = ({ grad, src, attr }) => {
  const x = src[0] as Node;
  return [makeNode('fold', [grad], { ...attr, spatial: x.shape.slice(x.shape.length - attr.size.length) })];
};

export const foldRule: GradientRule<'fold'> = ({ grad, attr }) => {
  const { size, stride, dilation } = attr;
  return [makeNode('window', [grad], { size, stride, dilation })];
};

/** True if the node is a constant 0. */
export function isZero(node: Node): boolean {
  return isOp(node, 'constant') && node.attr.value === 0;
}

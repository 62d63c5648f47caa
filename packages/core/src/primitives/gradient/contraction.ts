/**
 * Gradient rules of contractions: products and convolutions again, so derivatives of every order stay fast.
 *
 * The rules for convolution follow from writing it as a sum over (output, kernel) positions and solving for the other operand; the same
 * arithmetic is in JAX (jax/_src/lax/convolution.py), from which the names "vjp padding" come.
 */
import { makeNode } from '../../graph/build.ts';
import { dilated } from '../../graph/infer-conv.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import type { GradientRule } from '../../graph/rules.ts';

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);
const freeAxes = (node: Node, ...used: (readonly number[])[]): number[] =>
  node.shape.map((_, i) => i).filter((i) => !used.some((list) => list.includes(i)));

export const dotGeneralRule: GradientRule<'dotGeneral'> = ({ grad, src, attr, needs }) => {
  const [lhs, rhs] = src as [Node, Node];
  const { lhsBatch, rhsBatch, lhsContract, rhsContract } = attr;
  const lhsFree = freeAxes(lhs, lhsBatch, lhsContract);
  const rhsFree = freeAxes(rhs, rhsBatch, rhsContract);
  const batch = range(0, lhsBatch.length);
  const lhsOfGrad = range(batch.length, lhsFree.length);
  const rhsOfGrad = range(batch.length + lhsFree.length, rhsFree.length);
  // What the products below leave over of the other operand: its contracted axes, in its own order.
  const pairedWith = (from: readonly number[], to: readonly number[]): number[] =>
    [...from].sort((a, b) => a - b).map((axis) => to[from.indexOf(axis)] as number);
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
};

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

export const convRule: GradientRule<'conv'> = ({ grad, src, attr, needs }) => {
  const [lhs, rhs] = src as [Node, Node];
  const { stride, padLow, lhsDilation, rhsDilation, groups, batchGroups } = attr;
  const rank = stride.length;
  const spatial = range(2, rank);
  const lhsExtent = spatial.map((axis, i) => dilated(lhs.shape[axis] as number, lhsDilation[i] as number));
  const rhsExtent = spatial.map((axis, i) => dilated(rhs.shape[axis] as number, rhsDilation[i] as number));
  const outExtent = spatial.map((axis, i) => dilated(grad.shape[axis] as number, stride[i] as number));
  const empty = grad.shape.includes(0);
  let byLhs: Node | null = null;
  if (needs[0]) {
    // Every input element meets the kernel turned around: features become channels, steps become holes.
    const features = groups > 1 ? groups : batchGroups;
    const kernel = p.flip(swapFirst(moveGroups(rhs, features, 0, 1)), spatial);
    const low = rhsExtent.map((n, i) => n - (padLow[i] as number) - 1);
    const high = lhsExtent.map(
      (n, i) => n + (rhsExtent[i] as number) - 1 - (outExtent[i] as number) - (low[i] as number),
    );
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
    // The input correlated with the gradient: the batch becomes the axis that is summed.
    const high = lhsExtent.map(
      (n, i) => (outExtent[i] as number) - n + (rhsExtent[i] as number) - (padLow[i] as number) - 1,
    );
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
};

/**
 * Graph convolution: every node's features become a weighted sum of its neighbours', times a matrix of weights.
 *
 * The adjacency is a dense matrix, or a list of edges; both forms compute the same numbers.
 */
import { makeNode } from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import * as p from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { gatherPrimitive, scatterAddPrimitive } from '../../primitives/indexing.ts';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { isTensor, nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, floatOperands } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { add, mul } from '../elementwise/arithmetic.ts';
import { checkKnownPositions, safeIndex } from '../indexing/index-argument.ts';
import { matmul } from './matmul.ts';
import { eye } from '../creation/patterns.ts';
import { say } from '@polygrad/compiler/shape/shown';

/** Edges from nodes `sources` to nodes `targets`, integers [E] each, with weights [E] (1 if left out). */
export interface EdgeList {
  readonly sources: Tensor;
  readonly targets: Tensor;
  readonly weights?: Tensor | null;
}

/** Options of `graphConv`. */
export interface GraphConvOptions {
  /** Added per output feature: [O]. */
  readonly bias?: Tensor | null;
  /** Give every node an edge to itself, of weight 1. Default false. */
  readonly selfLoops?: boolean;
  /** 'symmetric' divides each edge's weight by the roots of both its ends' degrees; nodes of degree 0 get 0. Default 'none'. */
  readonly normalize?: 'none' | 'symmetric';
}

/** 1 / sqrt(degree), and 0 where there is no degree to divide by; its gradient is 0 there too. */
function inverseRoot(degree: Node): Node {
  const zero = p.like(degree, 0);
  const some = p.lt(zero, degree);
  return p.where(some, p.unary('rsqrt', p.where(some, degree, p.like(degree, 1))), zero);
}

/**
 * A X W + b: features mixed along the edges of a graph, then by weights. With `selfLoops` and `normalize: 'symmetric'` this is the layer
 * of Kipf and Welling, "Semi-supervised classification with graph convolutional networks" (2017): A + I, divided by the roots of the degrees
 * (row sums) of both ends.
 *
 * @param x features of the nodes, shape [..., n, C]
 * @param adjacency shape [..., n, n], entry (i, j) for the edge from j to i; or a list of edges
 * @param weight shape [C, O]
 * @param options bias ([O]), selfLoops (false), normalize ('none')
 * @returns shape [..., n, O]
 * @throws ShapeError where sizes do not fit
 *
 * @example
 * const path = tensor([[0, 1], [1, 0]]);
 * graphConv(tensor([[1], [3]]), path, tensor([[10]])); // [[30], [10]]
 * graphConv(tensor([[1], [3]]), path, tensor([[10]]), { selfLoops: true, normalize: 'symmetric' }); // about [[20], [20]]
 */
export function graphConv(
  x: Tensor,
  adjacency: Tensor | EdgeList,
  weight: Tensor,
  options: GraphConvOptions = {},
): Tensor {
  checkNames('graphConv', options, 'bias@ selfLoops? normalize');
  return compose('graphConv', () => {
    const [features, w] = floatOperands(x, weight);
    const { normalize = 'none', selfLoops = false, bias } = options;
    if (normalize !== 'none' && normalize !== 'symmetric')
      throw new ArgumentError('graphConv', say`unknown normalize: ${shown(normalize)}; must be 'none' or 'symmetric'`);
    if (features.shape.length < 2 || w.shape.length !== 2 || features.shape[features.shape.length - 1] !== w.shape[0]) {
      throw new ShapeError(
        'graphConv',
        say`features do not fit: x ${showShape(features.shape)} and weight ${showShape(w.shape)}; need [..., n, C] and [C, O]`,
        [features.shape, w.shape],
      );
    }
    const spread: Spread = isTensor(adjacency)
      ? dense(features, adjacency, selfLoops, normalize)
      : listed(features, adjacency, selfLoops, normalize);
    // The smaller number of features travels along the edges.
    const narrowing = w.shape[1]! <= w.shape[0]!;
    const mixed = narrowing ? spread(matmul(wrap(features), wrap(w))) : matmul(spread(wrap(features)), wrap(w));
    if (!bias) return mixed;
    if (bias.ndim !== 1 || bias.shape[0] !== w.shape[1])
      throw new ShapeError('graphConv', say`bias has shape ${showShape(bias.shape)}: needs [${w.shape[1]}]`, [
        bias.shape,
      ]);
    return add(mixed, bias);
  });
}

/** Sums features over incoming edges. */
type Spread = (features: Tensor) => Tensor;

function dense(x: Node, adjacency: Tensor, selfLoops: boolean, normalize: 'none' | 'symmetric'): Spread {
  const n = x.shape[x.shape.length - 2]!;
  const [, given] = floatOperands(wrap(x), adjacency);
  const rank = given.shape.length;
  if (rank < 2 || given.shape[rank - 1] !== n || given.shape[rank - 2] !== n)
    throw new ShapeError(
      'graphConv',
      say`adjacency has shape ${showShape(given.shape)}: needs [..., ${n}, ${n}] for x ${showShape(x.shape)}`,
      [given.shape, x.shape],
    );
  let matrix = selfLoops ? p.add(given, nodeOf(eye(n, { dtype: given.dtype }))) : given;
  if (normalize === 'symmetric') {
    const root = inverseRoot(p.reduce(matrix, 'sum', [rank - 1]));
    matrix = p.mul(p.mul(matrix, p.insertAxes(root, [rank - 1])), p.insertAxes(root, [rank - 2]));
  }
  return (features) => matmul(wrap(matrix), features);
}

function listed(x: Node, edges: EdgeList, selfLoops: boolean, normalize: 'none' | 'symmetric'): Spread {
  const rank = x.shape.length;
  const n = x.shape[rank - 2]!;
  const ends = [edges?.sources, edges?.targets].map((end) => nodeOf(end));
  const [from, to] = ends as [Node, Node];
  const count = from.shape[0]!;
  if (from.shape.length !== 1 || to.shape.length !== 1 || to.shape[0] !== count)
    throw new ShapeError(
      'graphConv',
      say`edges do not fit: sources ${showShape(from.shape)} and targets ${showShape(to.shape)}; need the same number of each, [E]`,
      [from.shape, to.shape],
    );
  for (const end of [from, to]) checkKnownPositions('graphConv', end, n);
  const sources = safeIndex('graphConv', from, n);
  const targets = safeIndex('graphConv', to, n);
  let weights: Node;
  if (edges.weights) {
    weights = p.cast(floatOperand(edges.weights), x.dtype);
    if (weights.shape.length !== 1 || weights.shape[0] !== count)
      throw new ShapeError('graphConv', say`edge weights have shape ${showShape(weights.shape)}: needs [${count}]`, [
        weights.shape,
      ]);
  } else weights = p.constant(1, x.dtype, [count]);
  let own: Node = p.constant(selfLoops ? 1 : 0, x.dtype, [n]);
  if (normalize === 'symmetric') {
    const root = inverseRoot(makeNode(scatterAddPrimitive, [own, targets, weights], { axis: 0 }));
    const at = (index: Node): Node => makeNode(gatherPrimitive, [root, index], { axis: 0 });
    weights = p.mul(p.mul(weights, at(sources)), at(targets));
    own = p.mul(own, p.mul(root, root));
  }
  return (features) => {
    const node = nodeOf(features);
    const axis = rank - 2;
    const sent = p.mul(makeNode(gatherPrimitive, [node, sources], { axis }), p.insertAxes(weights, [1]));
    const kept = selfLoops ? mul(features, wrap(p.insertAxes(own, [1]))) : wrap(p.zerosLike(node));
    return wrap(makeNode(scatterAddPrimitive, [nodeOf(kept), targets, sent], { axis }));
  };
}

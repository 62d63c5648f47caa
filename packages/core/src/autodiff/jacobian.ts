/**
 * Whole matrices of derivatives: jacobian and hessian.
 *
 * One pass for all rows or all columns together: the directions are the batch of a graph that was recorded for one of them. Forward
 * if there are no more arguments than results, backward otherwise.
 */
import type { Node } from '../graph/node.ts';
import { placeholder } from '../graph/placeholder.ts';
import * as p from '../graph/primitives.ts';
import { holdFlushes } from '../graph/scope.ts';
import { type DType, isFloat } from '../shape/dtype.ts';
import { checkFunction } from '../shape/options.ts';
import { type Shape, sizeOf } from '../shape/view.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import { called } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';
import { batchedAll } from './vmap.ts';
import {
  type Argnums,
  checkGradOptions,
  checkPosition,
  differentiate,
  type GradientBy,
  type GradOptions,
  positionsOf,
} from './grad.ts';
import { pushForward } from './forward.ts';
import { leavesOf, mapTree, type TensorTree, type Trace, tracing } from './trace.ts';

/** Per tensor of the result, derivatives in the structure of the arguments. */
export type JacobianOf<R, G> = R extends Tensor ? G : { -readonly [K in keyof R]: JacobianOf<R[K], G> };

/**
 * The function that computes all derivatives of all result elements of `f`. Source: JAX `jacfwd` and `jacrev`, of which it takes the one with
 * fewer directions.
 *
 * @param f from tensors, or arrays and plain objects of them, to a tensor or such a structure
 * @param options argnums: by which argument (0), or by which several (an array then); createGraph
 * @returns a function of the same arguments. Its result has the structure of f's, with for each tensor the structure of the argument; each
 *   entry has shape [...result.shape, ...argument.shape], zeros where the result does not depend on the argument or is integer
 * @throws DTypeError for integer arguments
 *
 * @example
 * jacobian((x: Tensor) => x.mul(x))(tensor([1, 2])); // [[2, 0], [0, 4]]
 */
export function jacobian<A extends readonly unknown[], R extends TensorTree, const N extends Argnums = 0>(
  f: (...args: A) => R,
  options: GradOptions<N> = {},
): (...args: A) => JacobianOf<R, GradientBy<A, N>> {
  checkGradOptions('jacobian', options);
  checkFunction('jacobian', f);
  const positions = positionsOf('jacobian', options.argnums);
  return (...args) => matrices('jacobian', f, args, positions, options) as JacobianOf<R, GradientBy<A, N>>;
}

/**
 * The function that computes all second derivatives of `f`.
 *
 * @param f returns a tensor with one element
 * @param options argnums: by which argument (0), or by which several (an array of arrays then); createGraph
 * @returns a function of the same arguments; shape [...argument.shape, ...argument.shape], for structures one such for each pair of tensors
 * @throws ShapeError if f returns several elements, DTypeError for integer arguments
 *
 * @example
 * hessian((x: Tensor) => x.mul(x).mul(x).sum())(tensor([1, 2])); // [[6, 0], [0, 12]]
 */
export function hessian<A extends readonly unknown[], const N extends Argnums = 0>(
  f: (...args: A) => Tensor,
  options: GradOptions<N> = {},
): (...args: A) => JacobianOf<GradientBy<A, N>, GradientBy<A, N>> {
  checkGradOptions('hessian', options);
  checkFunction('hessian', f);
  const positions = positionsOf('hessian', options.argnums);
  const single = typeof options.argnums !== 'object';
  const slopes = (...args: A): unknown => {
    const { gradients } = differentiate('hessian', f, args, positions, false, options);
    return single ? gradients[0] : gradients;
  };
  return (...args) =>
    matrices('hessian', slopes, args, positions, options) as JacobianOf<GradientBy<A, N>, GradientBy<A, N>>;
}

function matrices<A extends readonly unknown[]>(
  op: string,
  f: (...args: A) => unknown,
  args: A,
  positions: readonly number[],
  options: GradOptions,
): unknown {
  return tracing(op, options, (trace) => {
    const inputs: unknown[] = [...args];
    for (const position of positions) {
      checkPosition(op, position, args.length);
      inputs[position] = trace.follow(args[position]);
    }
    const output = called(op, f as (...args: readonly unknown[]) => unknown, ...inputs);
    trace.stop();
    const followed = positions.map((position) => inputs[position]);
    const results = leavesOf(op, output).map((t) => nodeOf(t, op));
    const sources = leavesOf(op, followed).map((t) => nodeOf(t, op));
    return holdFlushes(() => {
      const all = blocksOf(trace, results, sources);
      let row = 0;
      return mapTree(op, output, () => {
        const blocks = all[row++] as readonly Node[];
        let column = 0;
        const byArgument = followed.map((tree) => mapTree(op, tree, () => wrap(blocks[column++]!)));
        return typeof options.argnums === 'object' ? byArgument : byArgument[0];
      });
    });
  });
}

const elements = (nodes: readonly Node[]): number => nodes.reduce((sum, node) => sum + sizeOf(node.shape), 0);

/** Per result and source, the derivatives in the shape [...result, ...source]. */
function blocksOf(trace: Trace, results: readonly Node[], sources: readonly Node[]): Node[][] {
  const blocks = results.map((result) =>
    sources.map((source) => p.constant(0, source.dtype, [...result.shape, ...source.shape]) as Node),
  );
  const smooth = results.filter((result) => isFloat(result.dtype));
  const forward = elements(sources) <= elements(smooth);
  const place = (result: Node, source: Node, block: Node): void => {
    results.forEach((other, row) => {
      if (other === result) blocks[row]![sources.indexOf(source)] = block;
    });
  };
  for (const source of forward ? sources : []) {
    const direction = placeholder(source.shape, source.dtype, 'a direction of a jacobian');
    const changes = pushForward(trace.nodes, new Map([[source, direction]]));
    const reached = smooth.filter((result) => changes.has(result));
    const columns = inAllDirections(
      direction,
      reached.map((result) => changes.get(result)!),
    );
    reached.forEach((result, i) => {
      const column = columns[i]!;
      const last = p.permute(column, [...result.shape.map((_, axis) => axis + 1), 0]);
      place(result, source, p.cast(p.reshape(last, [...result.shape, ...source.shape]), source.dtype));
    });
  }
  for (const result of forward ? [] : new Set(smooth)) {
    const direction = placeholder(result.shape, result.dtype, 'a direction of a jacobian');
    const gradients = trace.walk(new Map([[result, direction]]));
    const reached = sources.filter((source) => gradients.has(source));
    const rows = inAllDirections(
      direction,
      reached.map((source) => gradients.get(source)!),
    );
    reached.forEach((source, i) => {
      place(result, source, p.reshape(rows[i]!, [...result.shape, ...source.shape]));
    });
  }
  return blocks;
}

/** Nodes made for one direction, for all of them: one per element of the direction, in front. */
function inAllDirections(direction: Node, nodes: readonly Node[]): Node[] {
  const size = sizeOf(direction.shape);
  const inputs = new Map([[direction, identityMatrix(size, direction.shape, direction.dtype)]]);
  return batchedAll(nodes, { inputs, size, spread: false });
}

/** Ones where the position in `shape` is the number of the row, zeros elsewhere: [size, ...shape]. */
function identityMatrix(size: number, shape: Shape, dtype: DType): Node {
  const along = p.iota(size);
  const matrix = p.cast(p.eq(p.reshape(along, [size, 1]), p.reshape(along, [1, size])), dtype);
  return p.reshape(matrix, [size, ...shape]);
}

/** Products with derivatives: vjp, jvp, jacobian, hessian, hvp, for functions between tensors of any shape. */
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { holdFlushes } from '../graph/scope.ts';
import { sameShape } from '../shape/broadcast.ts';
import { isFloat } from '../shape/dtype.ts';
import { ArgumentError, ShapeError, showShape } from '../shape/errors.ts';
import { sizeOf } from '../shape/view.ts';
import { isTensor, nodeOf, wrap } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';
import { grad } from './grad.ts';
import { type GradientOptions, gradientOf, gradientsOf, type Trace, tracing } from './trace.ts';
import { leavesOf, type TensorTree } from './trees.ts';
import { accumulate, type Gradients } from './walk.ts';

/** Gradients to start from: `given` for `results`, leaf by leaf. */
function seedsFor(op: string, results: readonly Tensor[], given: readonly Tensor[]): Gradients {
  if (results.length !== given.length)
    throw new ArgumentError(
      op,
      `numbers differ: ${results.length} tensors and ${given.length} directions for them; give one per tensor`,
    );
  const seeds: Gradients = new Map();
  results.forEach((result, i) => {
    const node = nodeOf(result);
    const seed = nodeOf(given[i] as Tensor);
    if (!sameShape(seed.shape, node.shape)) {
      throw new ShapeError(
        op,
        `shapes differ: ${showShape(node.shape)} and its direction ${showShape(seed.shape)}; make them equal`,
        [node.shape, seed.shape],
      );
    }
    if (isFloat(node.dtype)) accumulate(seeds, node, p.cast(seed, node.dtype));
  });
  return seeds;
}

function pullback(
  op: string,
  trace: Trace,
  f: (...args: never[]) => unknown,
  primals: readonly unknown[],
  directions: (outputs: Tensor[]) => readonly Tensor[],
): [unknown, Tensor[][], unknown[]] {
  const inputs = primals.map((primal) => trace.follow(primal));
  const output = (f as (...args: unknown[]) => unknown)(...inputs);
  trace.stop();
  const outputs = leavesOf(op, output);
  return holdFlushes(() => {
    const gradients = trace.walk(seedsFor(op, outputs, directions(outputs)));
    const trees = inputs.map((input) => gradientsOf(op, gradients, input));
    return [output, trees.map((tree) => leavesOf(op, tree)), trees];
  });
}

/**
 * The value of a function, and the product of a vector with its Jacobian: what flows back to the arguments when `cotangents` flow into
 * the result. Source: JAX `vjp`, with the vector given at once.
 *
 * @param f from tensors (or trees of them) to a tensor or a tree
 * @param primals its arguments
 * @param cotangents in the structure and shapes of the result
 * @returns [result, one gradient per argument]
 *
 * @example
 * const [y, [g]] = vjp((x: Tensor) => x.mul(x), [tensor([1, 2])], tensor([1, 10])); // [1, 4], [2, 40]
 */
export function vjp<A extends readonly unknown[], R extends TensorTree>(
  f: (...args: A) => R,
  primals: A,
  cotangents: TensorTree,
  options: GradientOptions = {},
): [R, A] {
  return tracing('vjp', options, (trace) => {
    const [output, , trees] = pullback('vjp', trace, f, primals, () => leavesOf('vjp', cotangents));
    return [output as R, trees as unknown as A];
  });
}

/**
 * The value of a function, and the product of its Jacobian with a vector: how the result changes when the arguments change by `tangents`.
 * Computed as the derivative of vjp, which is linear in its vector. Source: JAX `jvp`.
 *
 * @param tangents one per argument, in its structure and shapes
 * @returns [result, change of the result]
 *
 * @example
 * const [y, dy] = jvp((x: Tensor) => x.mul(x), [tensor([1, 2])], [tensor([1, 10])]); // [1, 4], [2, 40]
 */
export function jvp<A extends readonly unknown[], R extends Tensor | readonly Tensor[]>(
  f: (...args: A) => R,
  primals: A,
  tangents: A,
  options: GradientOptions = {},
): [R, R] {
  return tracing('jvp', options, (outer) => {
    const [output, gradients, probes] = tracing('jvp', options, (inner): [R, Tensor[], Tensor[]] => {
      let zeros: Tensor[] = [];
      const [value, leaves] = pullback('jvp', inner, f, primals, (outputs) => {
        zeros = outer.follow(outputs.map((t) => wrap(p.zerosLike(t.node)))) as Tensor[];
        return zeros;
      });
      return [value as R, leaves.flat(), zeros];
    });
    outer.stop();
    return holdFlushes((): [R, R] => {
      const changes = outer.walk(seedsFor('jvp', gradients, leavesOf('jvp', tangents)));
      const results = probes.map((probe) => gradientOf(changes, probe.node));
      return [output, (isTensor(output) ? results[0] : results) as R];
    });
  });
}

/**
 * The function that computes all derivatives of all result elements of `f` by one argument, one walk back per result element.
 *
 * @param f from tensors to one tensor
 * @param options argnum: which argument, 0
 * @returns a function of the same arguments; shape [...result.shape, ...argument.shape]
 *
 * @example
 * jacobian((x: Tensor) => x.mul(x))(tensor([1, 2])); // [[2, 0], [0, 4]]
 */
export function jacobian<A extends readonly unknown[]>(
  f: (...args: A) => Tensor,
  options: GradientOptions & { readonly argnum?: number } = {},
): (...args: A) => Tensor {
  return (...args) =>
    tracing('jacobian', options, (trace) => {
      const position = options.argnum ?? 0;
      const inputs: unknown[] = [...args];
      const [input] = leavesOf('jacobian', (inputs[position] = trace.follow(args[position])));
      if (input === undefined || !isTensor(inputs[position]))
        throw new ArgumentError('jacobian', `argument ${position} is no tensor: needs one tensor; use vjp() for trees`);
      const output = (f as unknown as (...args: unknown[]) => unknown)(...inputs);
      if (!isTensor(output)) throw new ArgumentError('jacobian', 'the function returned no tensor: it must return one');
      trace.stop();
      return holdFlushes(() => {
        const node = nodeOf(output);
        const rows = rowsOf(trace, node, input.node);
        const shape = [...node.shape, ...input.shape];
        return wrap(rows.length === 0 ? p.constant(0, node.dtype, shape) : p.reshape(p.concat(rows, 0), shape));
      });
    });
}

/** For each element of `output`, its derivatives by `input` as one row. */
function rowsOf(trace: Trace, output: Node, input: Node): Node[] {
  const count = sizeOf(output.shape);
  const numbers = p.iota(count);
  return Array.from({ length: count }, (_, i) => {
    const one = p.cast(p.eq(numbers, p.constant(i, 'int32')), output.dtype);
    const gradients = trace.walk(new Map([[output, p.reshape(one, output.shape)]]));
    return p.reshape(gradients.get(input) ?? p.zerosLike(input), [1, sizeOf(input.shape)]);
  });
}

/**
 * The function that computes all second derivatives of `f` by one argument.
 *
 * @param f returns a tensor with one element
 * @param options argnum: which argument, 0
 * @returns a function of the same arguments; shape [...argument.shape, ...argument.shape]
 *
 * @example
 * hessian((x: Tensor) => x.mul(x).mul(x).sum())(tensor([1, 2])); // [[6, 0], [0, 12]]
 */
export function hessian<A extends readonly unknown[]>(
  f: (...args: A) => Tensor,
  options: GradientOptions & { readonly argnum?: number } = {},
): (...args: A) => Tensor {
  const slope = grad(f, { ...options, argnums: options.argnum ?? 0 }) as unknown as (...args: A) => Tensor;
  return jacobian(slope, options);
}

/**
 * The products of the Hessian of `f` with vectors, without the Hessian: the gradient of the gradient's product with them.
 *
 * @param f returns a tensor with one element
 * @param primals its arguments, tensors or trees
 * @param vectors one per argument, in its structure and shapes
 * @returns one product per argument
 *
 * @example
 * const [product] = hvp((x: Tensor) => x.mul(x).mul(x).sum(), [tensor([1, 2])], [tensor([1, 1])]); // [6, 12]
 */
export function hvp<A extends readonly unknown[]>(
  f: (...args: A) => Tensor,
  primals: A,
  vectors: A,
  options: GradientOptions = {},
): A {
  const slopes = (...args: A): TensorTree => {
    const all = grad(f, { ...options, argnums: primals.map((_, i) => i) })(...args);
    return all as TensorTree;
  };
  return tracing('hvp', options, (trace) => {
    const [, , trees] = pullback('hvp', trace, slopes, primals, () => leavesOf('hvp', vectors));
    return trees as unknown as A;
  });
}

/** Products with derivatives: vjp, jvp and hvp, for functions between tensors of any shape. Whole matrices are in jacobian.ts. */
import * as p from '../graph/primitives.ts';
import { holdFlushes } from '../graph/scope.ts';
import { checkList } from '../shape/axes.ts';
import { sameShape } from '../shape/view.ts';
import { isFloat } from '../shape/dtype.ts';
import { ArgumentError, ShapeError, showShape } from '../shape/errors.ts';
import { checkNames } from '../shape/options.ts';
import { nodeOf } from '../tensor/handle.ts';
import { called } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';
import { differentiate } from './grad.ts';
import { pushForward } from './forward.ts';
import { type GradientOptions, gradientsOf, leavesOf, type TensorTree, type Trace, tracing } from './trace.ts';
import { accumulate, type Gradients } from './walk.ts';
import { say } from '../shape/shown.ts';

/** Gradients to start from: `given` for `results`, leaf by leaf. */
function seedsFor(op: string, results: readonly Tensor[], given: readonly Tensor[]): Gradients {
  if (results.length !== given.length)
    throw new ArgumentError(
      op,
      say`numbers differ: ${results.length} tensors and ${given.length} directions for them; give one per tensor`,
    );
  const seeds: Gradients = new Map();
  results.forEach((result, i) => {
    const node = nodeOf(result, op);
    const seed = nodeOf(given[i]!, op);
    if (!sameShape(seed.shape, node.shape)) {
      throw new ShapeError(
        op,
        say`shapes differ: ${showShape(node.shape)} and its direction ${showShape(seed.shape)}; make them equal`,
        [node.shape, seed.shape],
      );
    }
    if (isFloat(node.dtype)) accumulate(seeds, node, p.cast(seed, node.dtype));
  });
  return seeds;
}

/** The arguments under fresh names. */
function followed(trace: Trace, primals: readonly unknown[]): unknown[] {
  checkList(trace.op, 'arguments', primals, '[x], a list of them');
  return primals.map((primal) => trace.follow(primal));
}

function pullback(
  op: string,
  trace: Trace,
  f: (...args: never[]) => unknown,
  primals: readonly unknown[],
  directions: (outputs: Tensor[]) => readonly Tensor[],
): [unknown, Tensor[][], unknown[]] {
  const inputs = followed(trace, primals);
  const output = called(op, f as (...args: unknown[]) => unknown, ...inputs);
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
 * @param f from tensors, or arrays and plain objects of them, to a tensor or such a structure
 * @param primals its arguments; floating-point tensors
 * @param cotangents in the structure and shapes of the result; those of integer and bool results do not matter
 * @returns [result, one gradient per argument]; zeros where the result does not depend on an argument
 * @throws ShapeError if shapes differ, DTypeError for integer arguments
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
  checkNames('vjp', options, 'createGraph?');
  return tracing('vjp', options, (trace) => {
    const [output, , trees] = pullback('vjp', trace, f, primals, () => leavesOf('vjp', cotangents));
    return [output as R, trees as unknown as A];
  });
}

/**
 * The value of a function, and the product of its Jacobian with a vector: how the result changes when the arguments change by `tangents`.
 * One pass forward, without a pass back. Source: JAX `jvp`.
 *
 * @param f from tensors, or arrays and plain objects of them, to a tensor or such a structure
 * @param primals its arguments; floating-point tensors
 * @param tangents one per argument, in its structure and shapes
 * @returns [result, change of the result]; zeros for integer and bool results
 * @throws ShapeError if shapes differ, DTypeError for integer arguments
 *
 * @example
 * const [y, dy] = jvp((x: Tensor) => x.mul(x), [tensor([1, 2])], [tensor([1, 10])]); // [1, 4], [2, 40]
 */
export function jvp<A extends readonly unknown[], R extends TensorTree>(
  f: (...args: A) => R,
  primals: A,
  tangents: A,
  options: GradientOptions = {},
): [R, R] {
  return forwardProduct('jvp', f, primals, tangents, options, (output, change) => [output, change]);
}

/** Runs f on followed arguments; `wanted` says what of the result and its change is given back: nobody would dispose the rest. */
function forwardProduct<A extends readonly unknown[], R, W>(
  op: string,
  f: (...args: A) => R,
  primals: A,
  tangents: A,
  options: GradientOptions,
  wanted: (output: R, change: R) => W,
): W {
  checkNames(op, options, 'createGraph?');
  return tracing(op, options, (trace) => {
    const inputs = followed(trace, primals);
    const output = called(op, f as unknown as (...args: unknown[]) => R, ...inputs);
    trace.stop();
    return holdFlushes(() => {
      const changes = pushForward(trace.nodes, seedsFor(op, leavesOf(op, inputs), leavesOf(op, tangents)));
      return wanted(output, gradientsOf(op, changes, output) as R);
    });
  });
}

/**
 * The products of the Hessian of `f` with vectors, without the Hessian: the change of the gradient when the arguments change by the
 * vectors.
 *
 * @param f returns a tensor with one element
 * @param primals its arguments: floating-point tensors, or arrays and plain objects of them
 * @param vectors one per argument, in its structure and shapes
 * @returns one product per argument
 * @throws ShapeError if f returns several elements or shapes differ; DTypeError for integer arguments
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
  checkNames('hvp', options, 'createGraph?');
  const slopes = (...args: A): A =>
    differentiate('hvp', f, args, [...args.keys()], false, options).gradients as unknown as A;
  return forwardProduct('hvp', slopes, primals, vectors, options, (_, change) => change);
}

/**
 * Derivatives of functions between tensors of any shape: products of the Jacobian or Hessian with vectors (vjp, jvp, hvp), and whole Jacobians and
 * Hessians. Also forward mode: `pushForward` carries tangents from sources to results.
 */
import * as p from '../graph/primitives.ts';
import { isOp, type Node, type PrimitiveName } from '../graph/node.ts';
import { definitionOf, type GradientRule, type TangentRule } from '../graph/definition.ts';
import { placeholder } from '../graph/placeholder.ts';
import { endRecording, holdFlushes, opName, pauseRecording, startRecording, watchNode } from '../graph/scope.ts';
import { contractionTangents } from '../primitives/contraction.ts';
import { elementwiseTangents } from '../primitives/elementwise.ts';
import { barrierTangents } from '../primitives/leaves.ts';
import { movementTangents, windowTangents } from '../primitives/movement.ts';
import { reductionTangents } from '../primitives/reduction.ts';
import { checkList } from '@polygrad/compiler/shape/axes';
import { type DType, isFloat } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkFunction, checkNames } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { sameShape, type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from '../tensor/handle.ts';
import { called } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';
import {
  type Argnums,
  checkGradOptions,
  checkPosition,
  differentiate,
  type GradientBy,
  type GradOptions,
  positionsOf,
} from './grad.ts';
import {
  accumulate,
  applyRule,
  fitted,
  type GradientOptions,
  gradientRuleOf,
  type Gradients,
  gradientsOf,
  leavesOf,
  mapTree,
  type TensorTree,
  type Trace,
  tracing,
  walk,
} from './walk.ts';
import { batchedAll } from './vmap.ts';

/** The gradients, or tangents, to start from: those given, one per tensor. Throws ArgumentError or ShapeError where they do not fit. */
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

/** Runs f on followed arguments and walks back; returns its result, and the gradients as lists and in the structure of the arguments. */
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
 * @throws ShapeError if shapes differ, DTypeError for integer arguments, ArgumentError for another number of cotangents
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
 * @throws ShapeError if shapes differ, DTypeError for integer arguments, ArgumentError for another number of tangents
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

/** Runs f on followed arguments and carries tangents forward. `wanted` chooses what is returned of result and change; the rest is disposed. */
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
  const slopes = (...args: A): A => differentiate('hvp', f, args, [...args.keys()], options).gradients as unknown as A;
  return forwardProduct('hvp', slopes, primals, vectors, options, (_, change) => change);
}

// Whole matrices of derivatives: jacobian and hessian.
//
// One pass for all rows or all columns together: the directions are the batch of a graph that was recorded for one of them. Forward
// if there are no more arguments than results, backward otherwise.

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
    const { gradients } = differentiate('hessian', f, args, positions, options);
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

// Tangent rules: how changes of a node's sources become a change of its result. For `jvp`, and for matrices column by column.
//
// Nearly every rule follows from others. An elementwise primitive multiplies by the same slope in both directions, so its gradient rule serves. A
// linear primitive does with changes what it does with values. For the rest the gradient rule is transposed: it is linear in the
// gradient, and the gradient of a linear map is its transpose. Tangents are graph nodes, so they can be differentiated in turn.

/** Slope times tangent, source by source: what the gradient rule does with a gradient. */
function diagonal<P extends PrimitiveName>(rule: GradientRule<P>): TangentRule<P> {
  return ({ node, src, attr, tangents }) => {
    let sum: Node | null = null;
    tangents.forEach((tangent, i) => {
      if (tangent === null) return;
      const needs = src.map((_, at) => at === i);
      const part = rule({ node, src, attr, grad: tangent, needs })[i] ?? null;
      if (part === null) return;
      const cast = p.cast(part, node.dtype);
      sum = sum === null ? cast : p.add(sum, cast);
    });
    return sum;
  };
}

/** Tangent rules of common primitives. What has no rule in the end is transposed (`transposed`): always right, at the cost of a few nodes. */
const common: { readonly [P in PrimitiveName]?: TangentRule<P> } = {
  ...elementwiseTangents,
  ...reductionTangents,
  ...movementTangents,
  ...windowTangents,
  ...contractionTangents,
  ...barrierTangents,
};

function ruleOf<P extends PrimitiveName>(op: P): TangentRule<P> | undefined {
  const { tangent, role } = definitionOf(op);
  return common[op] ?? tangent ?? (role === 'elementwise' ? diagonal(gradientRuleOf(op)) : undefined);
}

/**
 * Applies the rules to `nodes` (in creation order, sources before users). To be called with flushes held.
 *
 * @param tangents those of the nodes to start from; those of all nodes reached are added
 * @returns the tangents
 */
export function pushForward(nodes: readonly Node[], tangents: Map<Node, Node>): Map<Node, Node> {
  for (const node of nodes) {
    if (tangents.has(node)) continue;
    const own = node.src.map((source) => tangents.get(source) ?? null);
    // A stopGradient does not pass on changes of its value; further sources are those of a custom gradient.
    if (isOp(node, 'stopGradient')) own[0] = null;
    if (own.every((tangent) => tangent === null)) continue;
    const rule = ruleOf(node.op);
    let tangent = rule?.({ node, src: node.src, attr: node.attr, tangents: own });
    if (tangent === undefined) tangent = transposed(node, own);
    if (tangent !== null) tangents.set(node, p.broadcastTo(p.cast(tangent, node.dtype), node.shape));
  }
  return tangents;
}

/**
 * A node's tangent for tangents of its sources (null for none), from its gradient rule. The rule is linear in the gradient, so it is recorded for a
 * gradient of zeros and differentiated by it: that is its transpose. Nothing of the zeros is left in the result.
 *
 * Right for every primitive whose gradient rule can be differentiated, and the only way for gradients given by the user.
 */
export function transposed(node: Node, tangents: readonly (Node | null)[]): Node | null {
  const recording = startRecording(opName('jvp'), false);
  try {
    const probe = p.identity(p.zerosLike(node));
    watchNode(recording, probe);
    const needs = tangents.map((tangent) => tangent !== null);
    const parts = applyRule(node, probe, needs);
    pauseRecording(recording);
    const seeds: Gradients = new Map();
    parts.forEach((part, i) => {
      const tangent = tangents[i] ?? null;
      if (part === null || tangent === null) return;
      const fit = fitted(part, node.src[i]!);
      if ((fit.pins & recording.bit) !== 0) accumulate(seeds, fit, tangent);
    });
    const { bit, nodes } = recording;
    walk(nodes, nodes.length, seeds, (source) => (source.pins & bit) !== 0);
    return seeds.get(probe) ?? null;
  } finally {
    endRecording(recording);
  }
}

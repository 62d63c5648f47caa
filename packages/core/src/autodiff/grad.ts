/**
 * Gradients of functions that return one number: grad, grads, valueAndGrad, valueAndGradBy. A function goes in; a function that computes its
 * gradient comes out, or the gradient itself. They nest, to derivatives of any order.
 */
import type { Node } from '../graph/node.ts';
import { constant } from '../graph/primitives.ts';
import { holdFlushes } from '../graph/scope.ts';
import { checkList } from '@polygrad/compiler/shape/axes';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { isFloat } from '@polygrad/compiler/shape/dtype';
import { checkNames, checkFunction, shown } from '@polygrad/compiler/shape/options';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { isTensor, nodeOf, wrap } from '../tensor/handle.ts';
import { called, refusePromise } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';
import { gradientOf, type GradientOptions, gradientsOf, tracing } from './walk.ts';
import { say, isList } from '@polygrad/compiler/shape/shown';

/** Position of an argument, or of several. */
export type Argnums = number | readonly number[];

/** Gradient by the arguments named: the argument's own type, or a tuple of such. */
export type GradientBy<A extends readonly unknown[], N extends Argnums> = N extends readonly number[]
  ? { -readonly [I in keyof N]: A[N[I] & keyof A] }
  : A[N & number];

/** Options that say by which arguments to differentiate. */
export interface GradOptions<N extends Argnums = Argnums> extends GradientOptions {
  /** Position of one argument, or of several; 0 if left out. */
  readonly argnums?: N;
}

/** Options for functions that return something besides the number to differentiate. */
export interface AuxOptions<N extends Argnums = Argnums> extends GradOptions<N> {
  /** The function returns [number, anything]; the second part is passed on. */
  readonly hasAux: true;
}

function scalarOf(op: string, value: unknown): Node {
  refusePromise(op, value);
  if (!isTensor(value))
    throw new ArgumentError(op, say`the function returned ${shown(value)}: it must return a tensor with one element`);
  const node = nodeOf(value, op);
  if (sizeOf(node.shape) !== 1 || !isFloat(node.dtype)) {
    throw new ShapeError(
      op,
      say`the function returned ${node.dtype} ${showShape(node.shape)}: needs one floating-point element; use sum() or mean(), or vjp() or jacobian()`,
      [node.shape],
    );
  }
  return node;
}

/** Throws ArgumentError unless there is such an argument. */
export function checkPosition(op: string, position: number, count: number): void {
  if (Number.isInteger(position) && position >= 0 && position < count) return;
  throw new ArgumentError(op, say`no argument ${position}: the function was called with ${count}; check argnums`);
}

/** What a function returned, with hasAux a pair: the number to differentiate and the rest. */
function parted(result: unknown, hasAux: boolean, op: string): readonly [unknown, unknown] {
  if (!hasAux) return [result, undefined];
  if (!(isList(result) && result.length === 2))
    throw new ArgumentError(op, 'the function returned no pair: with hasAux it must return [number, anything]');
  return result as [unknown, unknown];
}

/** Runs f on followed arguments; returns its value if wanted (otherwise it is disposed), its other results and the gradients. */
export function differentiate(
  op: string,
  f: (...args: never[]) => unknown,
  args: readonly unknown[],
  positions: readonly number[],
  options: GradientOptions,
  { hasAux = false, wantsValue = false }: { readonly hasAux?: boolean; readonly wantsValue?: boolean } = {},
): { value: Tensor | null; aux: unknown; gradients: unknown[] } {
  return tracing(op, options, (trace) => {
    const inputs = [...args];
    for (const position of positions) {
      checkPosition(op, position, args.length);
      inputs[position] = trace.follow(args[position]);
    }
    const [output, aux] = parted(called(op, f as (...args: unknown[]) => unknown, ...inputs), hasAux, op);
    const node = scalarOf(op, output);
    trace.stop();
    return holdFlushes(() => {
      const gradients = trace.walk(new Map([[node, constant(1, node.dtype, node.shape)]]));
      return {
        value: wantsValue ? wrap(node) : null,
        aux,
        gradients: positions.map((position) => gradientsOf(op, gradients, inputs[position])),
      };
    });
  });
}

/** Throws ArgumentError unless options are those of a gradient function. */
export function checkGradOptions(op: string, options: GradOptions): void {
  checkNames(op, options, 'argnums createGraph?');
}

/** Positions of arguments as a list. Throws ArgumentError for what is neither a position nor a list. */
export function positionsOf(op: string, argnums: Argnums | undefined): readonly number[] {
  if (typeof argnums !== 'object') return [argnums ?? 0];
  checkList(op, 'argnums', argnums, '[0, 1]');
  return argnums;
}

/**
 * The function that computes the gradient of `f` by its first argument. Source: JAX `grad`.
 *
 * @param f returns a tensor with one element; the argument is a tensor, or arrays and plain objects of tensors
 * @param options argnums: another argument, or several (the result is an array then); createGraph
 * @returns a function of the same arguments; its result has the structure of the argument, with zeros where f does not depend on it
 * @throws ShapeError if f returns more than one element, DTypeError for integer arguments, ArgumentError for positions that are no argument
 *
 * @example
 * const slope = grad((x: Tensor) => x.mul(x).sum());
 * slope(tensor([1, 2])); // [2, 4]
 */
export function grad<A extends readonly unknown[], const N extends Argnums = 0>(
  f: (...args: A) => Tensor,
  options: GradOptions<N> = {},
): (...args: A) => GradientBy<A, N> {
  checkGradOptions('grad', options);
  checkFunction('grad', f);
  const positions = positionsOf('grad', options.argnums);
  return (...args) => {
    const { gradients } = differentiate('grad', f, args, positions, options);
    return (typeof options.argnums === 'object' ? gradients : gradients[0]) as GradientBy<A, N>;
  };
}

/**
 * The function that computes the gradients of `f` by all its arguments. Source: TensorFlow.js `grads`.
 *
 * @param f returns a tensor with one element; its arguments are floating-point tensors, or arrays and plain objects of them
 * @returns a function of the same arguments that gives an array, one gradient per argument; zeros for arguments f does not use
 * @throws ShapeError if f returns more than one element, DTypeError for integer arguments (name the others with grad and argnums)
 *
 * @example
 * const slopes = grads((a: Tensor, b: Tensor) => a.mul(b).sum());
 * slopes(tensor([1, 2]), tensor([3, 4])); // [[3, 4], [1, 2]]
 */
export function grads<A extends readonly unknown[]>(
  f: (...args: A) => Tensor,
  options: GradientOptions = {},
): (...args: A) => A {
  checkNames('grads', options, 'createGraph?');
  checkFunction('grads', f);
  return (...args) =>
    differentiate(
      'grads',
      f,
      args,
      args.map((_, i) => i),
      options,
    ).gradients as unknown as A;
}

/**
 * The function that computes the value of `f` and its gradient together. Source: JAX `value_and_grad`.
 *
 * @param f returns a tensor with one element, or with hasAux [number, anything]
 * @param options argnums: by which argument, or by which several (an array of gradients then); hasAux; createGraph
 * @returns a function of the same arguments that gives [value, gradient], or with hasAux [[value, anything], gradient]
 * @throws ShapeError if f returns more than one element, DTypeError for integer arguments, ArgumentError for positions that are no argument
 *
 * @example
 * const [value, slope] = valueAndGrad((x: Tensor) => x.mul(x).sum())(tensor([1, 2])); // 5, [2, 4]
 */
export function valueAndGrad<A extends readonly unknown[], X, const N extends Argnums = 0>(
  f: (...args: A) => readonly [Tensor, X],
  options: AuxOptions<N>,
): (...args: A) => [[Tensor, X], GradientBy<A, N>];
export function valueAndGrad<A extends readonly unknown[], const N extends Argnums = 0>(
  f: (...args: A) => Tensor,
  options?: GradOptions<N>,
): (...args: A) => [Tensor, GradientBy<A, N>];
export function valueAndGrad<A extends readonly unknown[]>(
  f: (...args: A) => unknown,
  options: GradOptions & { readonly hasAux?: boolean } = {},
): (...args: A) => unknown {
  checkNames('valueAndGrad', options, 'argnums createGraph? hasAux?');
  checkFunction('valueAndGrad', f);
  const positions = positionsOf('valueAndGrad', options.argnums);
  return (...args) => {
    const { hasAux = false } = options;
    const wants = { hasAux, wantsValue: true };
    const { value, aux, gradients } = differentiate('valueAndGrad', f, args, positions, options, wants);
    return [hasAux ? [value, aux] : value, typeof options.argnums === 'object' ? gradients : gradients[0]];
  };
}

/** The value of a function and what it returned beside it, as constants, and one gradient per tensor. */
interface ValueAndGradients<X> {
  readonly value: Tensor;
  readonly aux: X;
  readonly gradients: readonly Tensor[];
}

/**
 * The value of a function that reads tensors from outside, and its gradients by them: of a loss by the parameters of a model, for instance.
 *
 * @param tensors floating-point tensors; what was computed from them before the call is a constant
 * @param f returns a tensor with one element and, in a pair, anything else
 * @returns value and rest as constants, one gradient per tensor; zeros where the value does not depend on it
 * @throws ShapeError if f returns more than one element, DTypeError for integer tensors
 *
 * @example
 * const w = tensor([1, 2]);
 * const { value, gradients } = valueAndGradBy([w], () => [w.mul(w).sum(), null]);
 * value; // 5
 * gradients; // [[2, 4]]
 */
export function valueAndGradBy<X>(tensors: readonly Tensor[], f: () => readonly [Tensor, X]): ValueAndGradients<X> {
  return lossGradients('valueAndGradBy', tensors, f, false);
}

/**
 * The same for a function of another package, whose name errors have.
 *
 * @param mustDepend whether a value that depends on no tensor is an error: a training would go on and learn nothing
 * @throws ArgumentError if it is one; else as `valueAndGradBy`
 *
 * @example
 * import '@polygrad/backend-cpu';
 * import { tensor } from '@polygrad/core';
 * import { lossGradients } from '@polygrad/core/engine';
 *
 * const w = tensor([1, 2]);
 * lossGradients('train', [w], () => [w.mul(w).sum(), null]).gradients; // [[2, 4]]
 */
export function lossGradients<X>(
  op: string,
  tensors: readonly Tensor[],
  f: () => readonly [Tensor, X],
  mustDepend = true,
): ValueAndGradients<X> {
  checkList(op, 'tensors', tensors, '[weight]');
  checkFunction(op, f);
  return tracing(op, {}, (trace) => {
    const nodes = tensors.map((t) => trace.floatNode(t));
    for (const node of nodes) trace.watch(node);
    const [output, aux] = parted(called(op, f), true, op) as readonly [Tensor, X];
    const node = scalarOf(op, output);
    trace.stop();
    return holdFlushes(() => {
      const gradients = trace.walk(new Map([[node, constant(1, node.dtype, node.shape)]]));
      if (mustDepend && !nodes.some((by) => gradients.has(by)))
        throw new ArgumentError(
          op,
          say`no gradient: the value depends on none of ${nodes.length} tensors; compute it from them, without noGrad, detach or argMax`,
        );
      return { value: wrap(node), aux, gradients: nodes.map((by) => gradientOf(gradients, by)) };
    });
  });
}

/**
 * Gradients given by the user: customGradient and checkpoint.
 *
 * The node of such a function is a stopGradient whose further sources are the function's inputs; its rule is kept beside the graph,
 * by node, so that the graph itself stays plain data.
 */
import { makeNode } from '../graph/build.ts';
import type { Node } from '../graph/node.ts';
import { stopGradient } from '../graph/primitives.ts';
import { customRules } from '../graph/definition.ts';
import { beginOp, callUser, compose } from '../graph/scope.ts';
import { restoreTracking, suspendTracking } from '../graph/tracking.ts';
import { sameShape } from '../shape/view.ts';
import { ArgumentError, ShapeError, showShape } from '../shape/errors.ts';
import { checkFunction } from '../shape/options.ts';
import { isList, say } from '../shape/shown.ts';
import { isTensor, nodeOf, wrap } from '../tensor/handle.ts';
import { called } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';

/** What a custom backward function is given besides the gradient of the result. */
export interface CustomContext {
  readonly inputs: readonly Tensor[];
  readonly output: Tensor;
}

/** Returns the gradient of the only input, or one (or null) per input. */
export type CustomBackward = (grad: Tensor, context: CustomContext) => Tensor | readonly (Tensor | null)[];

const op = 'customGradient';

/**
 * A function whose gradient is computed by another function. The backward function uses ordinary operations, so its result can be
 * differentiated again.
 *
 * @param forward from tensors to one tensor; its own operations are not differentiated
 * @param backward from the gradient of the result to those of the inputs, in the inputs' shapes
 *
 * @example
 * // A step whose gradient is passed straight through.
 * const step = customGradient((x) => x.greater(0).cast('float32'), (g) => g);
 * grad((x: Tensor) => step(x).sum())(tensor([1, -1])); // [1, 1]
 */
export function customGradient(
  forward: (...inputs: Tensor[]) => Tensor,
  backward: CustomBackward,
): (...inputs: Tensor[]) => Tensor {
  checkFunction(op, forward);
  checkFunction(op, backward);
  return (...inputs) =>
    compose(op, () => {
      const nodes = inputs.map((input) => nodeOf(input));
      const result = noGrad(() => callUser(() => called(op, forward, ...inputs)));
      if (!isTensor(result))
        throw new ArgumentError(op, 'the forward function returned no tensor: it must return exactly one');
      const node: Node = makeNode('stopGradient', [nodeOf(result), ...nodes], null);
      customRules.set(node, (grad, self) => [null, ...runBackward(backward, grad, self)]);
      return wrap(node);
    });
}

function runBackward(backward: CustomBackward, grad: Node, node: Node): (Node | null)[] {
  const sources = node.src.slice(1);
  // These handles live until the enclosing gradient function ends: the walk uses their nodes until then.
  const context: CustomContext = { inputs: sources.map(wrap), output: wrap(node) };
  const result = callUser(() => called(op, backward, wrap(grad), context));
  const list = isTensor(result) ? [result] : result;
  if (!isList(list) || list.length !== sources.length) {
    throw new ArgumentError(
      op,
      say`the backward function returned ${isList(list) ? list.length : 'no'} gradients: there are ${sources.length} inputs; return one (or null) per input`,
    );
  }
  return list.map((gradient, i) => {
    if (gradient === null) return null;
    const g = nodeOf(gradient, op);
    const { shape } = sources[i]!;
    if (!sameShape(g.shape, shape)) {
      throw new ShapeError(
        op,
        say`gradient ${i} has shape ${showShape(g.shape)}: its input has ${showShape(shape)}; make them equal`,
        [g.shape, shape],
      );
    }
    return g;
  });
}

// Switching gradients off: for a stretch of code, or for one tensor.

/**
 * Runs a function whose operations are constants for every gradient: no tape, no gradient function and no requiresGrad leaf sees them.
 *
 * @param body a synchronous function
 * @returns what the function returns
 * @throws ArgumentError if it is no function, or returns a promise: gradients would be back on before it settles
 *
 * @example
 * const w = ones([2], { requiresGrad: true });
 * noGrad(() => w.mul(2)).requiresGrad; // false
 */
export function noGrad<T>(body: () => T): T {
  const state = suspendTracking('nothing');
  try {
    return called('noGrad', body);
  } finally {
    restoreTracking(state);
  }
}

/**
 * The same value as a constant: no gradient flows through it.
 *
 * @example
 * const x = ones([2], { requiresGrad: true });
 * detach(x).requiresGrad; // false
 */
export function detach(x: Tensor): Tensor {
  beginOp('detach');
  return wrap(stopGradient(nodeOf(x)));
}

/**
 * checkpoint: less memory for a gradient, by computing a part of the function twice.
 *
 * The second run starts from `after` nodes, which the planner neither merges with the first run nor starts before the gradient
 * of the result is there. So what lies between arguments and result is in memory only while the gradient passes through.
 */
import * as p from '../graph/primitives.ts';
import { makeNode } from '../graph/build.ts';
import { graph } from '../graph/state.ts';
import type { Node } from '../graph/node.ts';
import { releasedSlot } from '../graph/recorder.ts';
import { callUser, compose } from '../graph/scope.ts';
import { collecting } from '../graph/tracking.ts';
import { generatorState, withGenerator } from '../tensor/random-key.ts';
import { sameShape } from '../shape/view.ts';
import { isFloat } from '../shape/dtype.ts';
import { ArgumentError, ShapeError, showShape } from '../shape/errors.ts';
import { isTensor, nodeOf, wrap } from '../tensor/handle.ts';
import { called } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';
import { GradientError } from './backward.ts';
import { customRules } from '../graph/definition.ts';
import { noGrad } from './custom-gradient.ts';
import { gradientOf, tracing } from './trace.ts';
import { say } from '../shape/shown.ts';

/**
 * Runs a function without keeping what it computes on the way; a gradient runs it again. A chain of checkpoints needs memory for their
 * arguments and for one part at a time. Source: Chen et al., "Training deep nets with sublinear memory cost" (2016).
 *
 * Gradients flow to the arguments, and to tensors that the function uses from outside (the weights of a layer, for example).
 * Random functions give the same numbers in both runs.
 *
 * @param f from tensors to one tensor, without side effects: it is called once more for each gradient
 * @param args its arguments; those that are not floating-point have no gradient
 * @returns the result of f
 * @throws ArgumentError if an argument or the result is no tensor; GradientError if the second run uses other tensors than the first
 *
 * @example
 * const y = checkpoint((x: Tensor) => x.mul(x), tensor([3])); // [9]
 */
export function checkpoint<A extends readonly Tensor[]>(f: (...args: A) => Tensor, ...args: A): Tensor {
  return compose('checkpoint', () => {
    for (const arg of args)
      if (!isTensor(arg))
        throw new ArgumentError(
          'checkpoint',
          'an argument is no tensor: pass tensors, and let the function close over the rest',
        );
    const inputs = args.map((arg) => nodeOf(arg));
    const generator = generatorState();
    const used = new Set<Node>();
    const result = watching(used, inputs, () => noGrad(() => callUser(() => called('checkpoint', f, ...args))));
    if (!isTensor(result))
      throw new ArgumentError('checkpoint', 'the function returned no tensor: it must return exactly one');
    const captured = [...used];
    const node = makeNode('stopGradient', [nodeOf(result), ...inputs, ...captured], null);
    customRules.set(node, (grad, { src }) => {
      const again = src.slice(1, 1 + inputs.length);
      const gradients = withGenerator(generator, () => secondRun(f as unknown as Run, again, captured, grad));
      return [null, ...gradients.map((gradient) => (gradient === null ? null : nodeOf(gradient)))];
    });
    return wrap(node);
  });
}

type Run = (...args: Tensor[]) => unknown;

/** Runs a function and collects the tracked nodes from outside that it uses, but for its inputs. */
function watching<T>(used: Set<Node>, inputs: readonly Node[], body: () => T): T {
  const { newest } = graph;
  const tell = (node: Node): void => {
    for (const source of node.src) {
      const tracked = (source.requiresGrad && source.slot !== releasedSlot) || source.pins !== 0;
      if (source.id <= newest && tracked && isFloat(source.dtype) && !inputs.includes(source)) used.add(source);
    }
  };
  return collecting(tell, body);
}

/** Gradients of inputs and captured nodes, null for integers. */
function secondRun(f: Run, inputs: readonly Node[], captured: readonly Node[], grad: Node): (Tensor | null)[] {
  // Gradients of gradients are wanted if the enclosing gradient says so.
  return tracing('checkpoint', { createGraph: true }, (trace) => {
    const named = inputs.map((input) => {
      const later = wrap(p.after(input, grad));
      return isFloat(input.dtype) ? (trace.follow(later) as Tensor) : later;
    });
    for (const node of captured) trace.watch(node);
    const used = new Set<Node>();
    const output = watching(
      used,
      named.map((t) => t.node),
      () => callUser(() => called('checkpoint', f, ...named)),
    );
    trace.stop();
    for (const node of used) {
      if (captured.includes(node)) continue;
      throw new GradientError(
        'checkpoint',
        say`run again for its gradient, the function uses a ${node.dtype} ${showShape(node.shape)} that it did not use before: do not assign to tensors between a checkpoint and its gradient`,
      );
    }
    const node = isTensor(output) ? nodeOf(output) : null;
    if (node === null || !sameShape(node.shape, grad.shape)) {
      throw new ShapeError(
        'checkpoint',
        say`run again for its gradient, the function returned ${node === null ? 'no tensor' : showShape(node.shape)} instead of ${showShape(grad.shape)}: it must do the same each time`,
        [grad.shape],
      );
    }
    const gradients = trace.walk(new Map([[node, p.cast(grad, node.dtype)]]));
    return [...named.map((t) => t.node), ...captured].map((source) =>
      isFloat(source.dtype) ? gradientOf(gradients, source) : null,
    );
  });
}

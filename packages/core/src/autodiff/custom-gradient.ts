/**
 * Functions whose gradient is not that of what they recorded: customGradient, checkpoint, noGrad and detach.
 *
 * customGradient and checkpoint make a stopGradient node whose further sources are the inputs. Its rule is kept by node beside the graph
 * (`customRules`), so that the graph itself stays plain data.
 */
import * as p from '../graph/primitives.ts';
import { makeNode, stopGradient } from '../graph/primitives.ts';
import { customRules } from '../graph/definition.ts';
import type { Node, TrackedHandle } from '../graph/node.ts';
import { releasedSlot } from '../graph/recorder.ts';
import {
  beginOp,
  callUser,
  collecting,
  compose,
  restoreTracking,
  suspendTracking,
  withCasting,
  withOperands,
} from '../graph/scope.ts';
import { graph } from '../graph/state.ts';
import { isFloat } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkFunction, shown } from '@polygrad/compiler/shape/options';
import { isList, say } from '@polygrad/compiler/shape/shown';
import { sameShape } from '@polygrad/compiler/shape/view';
import { DisposedError, isTensor, nodeOf, wrap } from '../tensor/handle.ts';
import { generatorState, withGenerator } from '../tensor/random-key.ts';
import { called } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';
import { GradientError } from './backward.ts';
import { accumulate, gradientOf, tracing } from './walk.ts';

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
 * @returns the function; it throws ArgumentError and ShapeError where `forward` or `backward` return something else
 * @throws ArgumentError if either is no function
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
  if (typeof backward !== 'function')
    throw new ArgumentError(
      op,
      say`bad backward function: ${shown(backward)}; give one from the gradient of the result to those of the inputs, as in customGradient(f, (g) => g)`,
    );
  return (...inputs) =>
    compose(op, () => {
      const nodes = inputs.map((input) => nodeOf(input));
      const { casting } = graph;
      const result = noGrad(() => callUser(() => called(op, forward, ...inputs)));
      if (!isTensor(result))
        throw new ArgumentError(op, 'the forward function returned no tensor: it must return exactly one');
      const node: Node = makeNode('stopGradient', [nodeOf(result), ...nodes], null);
      customRules.set(node, (grad, self) => [null, ...withCasting(casting, () => runBackward(backward, grad, self))]);
      return wrap(node);
    });
}

function runBackward(backward: CustomBackward, grad: Node, node: Node): (Node | null)[] {
  const sources = node.src.slice(1);
  // These handles live until the enclosing gradient function ends: the walk uses their nodes until then.
  const context: CustomContext = { inputs: sources.map(wrap), output: wrap(node) };
  const result = callUser(() => {
    try {
      return called(op, backward, wrap(grad), context);
    } catch (error) {
      if (!(error instanceof DisposedError)) throw error;
      const what = 'the backward function uses a tensor that is gone';
      throw new GradientError(op, `${what}: ${error.message}; make it an argument and take it from inputs, f(x, a)`);
    }
  });
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

// checkpoint: less memory for a gradient, by computing a part of the function twice.
//
// The second run starts from `after` nodes. The planner does not merge them with the first run, and computes them only once the gradient of the
// result is in memory. So what lies between arguments and result is in memory only while the gradient passes through.

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
 * @throws ArgumentError if an argument or the result is no tensor, or there is no argument for a function that takes some; GradientError if the
 *   second run meets other values in tensors from outside than the first, or tensors that are disposed
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
    if (args.length === 0 && f.length > 0)
      throw new ArgumentError(
        'checkpoint',
        say`the function takes ${f.length} arguments and got 0: pass them behind it, checkpoint(f, x); it is run at once`,
      );
    const inputs = args.map((arg) => nodeOf(arg));
    const generator = generatorState();
    const { casting } = graph;
    const used = new Set<Node>();
    const outside = new Outside();
    const result = outside.first(() =>
      collectUsed(used, inputs, () => noGrad(() => callUser(() => called('checkpoint', f, ...args)))),
    );
    if (!isTensor(result))
      throw new ArgumentError('checkpoint', 'the function returned no tensor: it must return exactly one');
    const captured = [...outside.capture(used)];
    const node = makeNode('stopGradient', [nodeOf(result), ...inputs, ...captured], null);
    customRules.set(node, (grad, { src }) => {
      const [again, others] = [src.slice(1, 1 + inputs.length), src.slice(1 + inputs.length)];
      const gradients = withGenerator(generator, () =>
        withCasting(casting, () => secondRun(f as unknown as Run, again, others, outside, grad)),
      );
      return [null, ...gradients.map((gradient) => (gradient === null ? null : nodeOf(gradient)))];
    });
    return wrap(node);
  });
}

type Run = (...args: Tensor[]) => unknown;

/** Runs a function and adds to `used` the tracked nodes from outside that it reads, except its inputs. */
function collectUsed<T>(used: Set<Node>, inputs: readonly Node[], body: () => T): T {
  const { newest } = graph;
  const visit = (node: Node): void => {
    for (const source of node.src) {
      const tracked = (source.requiresGrad && source.slot !== releasedSlot) || source.pins !== 0;
      if (source.id <= newest && tracked && isFloat(source.dtype) && !inputs.includes(source)) used.add(source);
    }
  };
  return collecting(visit, body);
}

/**
 * The tensors from outside that a function uses, tracked or not: both runs must find the same values in them. Inside of vmap and scan their nodes are
 * captured, whatever they are: the second run may be for a batch, or come when the handles are gone. It finds the nodes that stand in for them then.
 * So it does for handles of tracked tensors that are gone: those are captured for their gradients. The arguments of a function that jvp or vjp calls are
 * such, when the gradient is that of what jvp or vjp has returned.
 */
class Outside {
  /** The number of the node that a tensor named in the first run. */
  readonly #first = new WeakMap<TrackedHandle, number>();
  /** The numbers of all nodes that the first run read. */
  readonly #read = new Set<number>();
  /** Tracked handles by their nodes. */
  readonly #tracked = new Map<TrackedHandle, Node>();
  /** Handles by what is captured: nodes, and from `capture` on their positions among the captured. */
  readonly #captured = new Map<TrackedHandle, Node>();
  #positions: ReadonlyMap<TrackedHandle, number> = new Map();
  #whenGone: ReadonlyMap<TrackedHandle, number> = new Map();

  first<T>(body: () => T): T {
    const { newest } = graph;
    const seen = new Set<TrackedHandle>();
    const result = withOperands((handle, instead) => {
      const node = instead ?? handle.node;
      if (node.id > newest || seen.has(handle)) return instead;
      seen.add(handle);
      this.#first.set(handle, handle.node.id);
      this.#read.add(node.id);
      if (instead !== null || graph.placeholders !== null) this.#captured.set(handle, node);
      else if (node.requiresGrad || node.pins !== 0) this.#tracked.set(handle, node);
      return instead;
    }, body);
    // What the function assigns itself, as running statistics, changes with each run.
    for (const handle of seen) {
      if (handle.node.id === this.#first.get(handle)) continue;
      this.#first.delete(handle);
      this.#captured.delete(handle);
      this.#tracked.delete(handle);
    }
    return result;
  }

  /** The nodes that become sources of the checkpoint: those that are used, and those of captured handles. */
  capture(used: ReadonlySet<Node>): ReadonlySet<Node> {
    const nodes = new Set([...used, ...this.#captured.values()]);
    const order = [...nodes];
    const positions = (handles: ReadonlyMap<TrackedHandle, Node>): ReadonlyMap<TrackedHandle, number> =>
      new Map([...handles].flatMap(([handle, node]) => (nodes.has(node) ? [[handle, order.indexOf(node)]] : [])));
    this.#positions = positions(this.#captured);
    this.#whenGone = positions(this.#tracked);
    this.#captured.clear();
    this.#tracked.clear();
    return nodes;
  }

  /** Whether the first run read it. What is tracked only since then is a constant for the gradient. */
  wasRead({ id }: Node): boolean {
    return this.#read.has(id);
  }

  again<T>(captured: readonly Node[], body: () => T): T {
    let other: Node | null = null;
    try {
      const result = withOperands((handle, instead) => {
        const position = this.#positions.get(handle) ?? (handle.disposed ? this.#whenGone.get(handle) : undefined);
        if (position !== undefined) return captured[position]!;
        const before = this.#first.get(handle);
        if (before !== undefined && before !== handle.node.id) other ??= handle.node;
        return instead;
      }, body);
      if (other !== null) throw changed(other);
      return result;
    } catch (error) {
      if (!(error instanceof DisposedError)) throw error;
      throw new GradientError(
        'checkpoint',
        `run again for its gradient, the function uses a tensor from outside that is gone: ${error.message}; dispose it after the gradient`,
      );
    }
  }
}

function changed({ dtype, shape }: Node): GradientError {
  return new GradientError(
    'checkpoint',
    say`run again for its gradient, the function uses a ${dtype} ${showShape(shape)} that it did not use before: do not assign to tensors between a checkpoint and its gradient`,
  );
}

/** Runs the function again and gives the gradients of inputs and captured nodes; null for integers. */
function secondRun(
  f: Run,
  inputs: readonly Node[],
  captured: readonly Node[],
  outside: Outside,
  grad: Node,
): (Tensor | null)[] {
  // Gradients of gradients are wanted if the enclosing gradient says so.
  return tracing('checkpoint', { createGraph: true }, (trace) => {
    const named = inputs.map((input) => {
      const later = wrap(p.after(input, grad));
      return isFloat(input.dtype) ? (trace.follow(later) as Tensor) : later;
    });
    // What was passed as an argument may be used as a tensor from outside, too. `named` come first: gradients do not flow from them to these.
    const outer = [...new Set(inputs.filter((input) => isFloat(input.dtype) && !captured.includes(input)))];
    for (const node of [...captured, ...outer]) if (isFloat(node.dtype)) trace.watch(node);
    const used = new Set<Node>();
    const output = outside.again(captured, () =>
      collectUsed(
        used,
        named.map((t) => t.node),
        () => callUser(() => called('checkpoint', f, ...named)),
      ),
    );
    trace.stop();
    for (const node of used)
      if (!captured.includes(node) && !outer.includes(node) && !outside.wasRead(node)) throw changed(node);
    const node = isTensor(output) ? nodeOf(output) : null;
    if (node === null || !sameShape(node.shape, grad.shape)) {
      throw new ShapeError(
        'checkpoint',
        say`run again for its gradient, the function returned ${node === null ? 'no tensor' : showShape(node.shape)} instead of ${showShape(grad.shape)}: it must do the same each time`,
        [grad.shape],
      );
    }
    const gradients = trace.walk(new Map([[node, p.cast(grad, node.dtype)]]));
    inputs.forEach((input, i) => {
      const beside = used.has(input) ? gradients.get(input) : undefined;
      if (beside !== undefined && inputs.indexOf(input) === i) accumulate(gradients, named[i]!.node, beside);
    });
    return [...named.map((t) => t.node), ...captured].map((source) =>
      isFloat(source.dtype) ? gradientOf(gradients, source) : null,
    );
  });
}

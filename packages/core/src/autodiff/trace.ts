/**
 * Tracing a function for differentiation: fresh names for its inputs, a recording of what it does with them, and any number of walks
 * back. Shared by grad, vjp, jvp, jacobian and the rest.
 */
import type { Node } from '../graph/node.ts';
import { constant, identity } from '../graph/primitives.ts';
import { beginOp, isHandle, traceScope } from '../graph/scope.ts';
import {
  endRecording,
  pauseRecording,
  type Recording,
  restoreTracking,
  startRecording,
  suspendTracking,
  watchNode,
} from '../graph/tracking.ts';
import { isFloat } from '../shape/dtype.ts';
import { ArgumentError, DTypeError } from '../shape/errors.ts';
import { mapNested } from '../shape/nested.ts';
import { shown } from '../shape/options.ts';
import { say } from '../shape/shown.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';
import { type Gradients, walk } from './walk.ts';

/** Options of all gradient functions. */
export interface GradientOptions {
  /**
   * Let the results depend on requiresGrad leaves the function uses, for a later `backward()` through them. Nested gradient functions
   * need no option. Default false.
   */
  readonly createGraph?: boolean;
}

/** A function that is being differentiated. */
export class Trace {
  readonly op: string;
  readonly #recording: Recording;
  #count = -1;

  constructor(op: string, recording: Recording) {
    this.op = op;
    this.#recording = recording;
  }

  /** The tensors of a tree under fresh names that are followed. */
  follow(tree: unknown): unknown {
    return mapTree(this.op, tree, (t) => {
      const node = nodeOf(t, this.op);
      if (!isFloat(node.dtype)) {
        throw new DTypeError(
          this.op,
          say`cannot differentiate by a tensor of dtype ${node.dtype}: needs floating-point tensors; pass integers as other arguments (argnums)`,
          [node.dtype],
        );
      }
      const named = wrap(identity(node));
      watchNode(this.#recording, named.node);
      return named;
    });
  }

  /** Follows a node under the name it has. */
  watch(node: Node): void {
    watchNode(this.#recording, node);
  }

  /** The function has returned: nothing after this is part of it. */
  stop(): void {
    pauseRecording(this.#recording);
    // Gradients are made by this operation, not by the last one of the function.
    beginOp(this.op);
    this.#count = this.#recording.nodes.length;
  }

  /** The nodes of the function, in creation order. */
  get nodes(): readonly Node[] {
    return this.#recording.nodes.slice(0, this.#count);
  }

  /** Gradients by all followed nodes for given gradients of results. To be called with flushes held. */
  walk(seeds: Gradients): Gradients {
    const { bit, nodes } = this.#recording;
    walk(nodes, this.#count, seeds, (node) => (node.pins & bit) !== 0);
    return seeds;
  }
}

/** Runs `body` as a gradient function: a scope of its own, without flushes on the way, whose recording ends with it. */
export function tracing<T>(op: string, options: GradientOptions, body: (trace: Trace) => T): T {
  return traceScope(() => {
    const state = options.createGraph ? null : suspendTracking('recordings');
    const recording = startRecording(op, false);
    try {
      return body(new Trace(op, recording));
    } finally {
      endRecording(recording);
      if (state !== null) restoreTracking(state);
    }
  });
}

/** The gradient of a node as a tensor; zeros where nothing reached it. */
export function gradientOf(gradients: Gradients, node: Node): Tensor {
  return wrap(gradients.get(node) ?? constant(0, node.dtype, node.shape));
}

/** Tensors in the structure of a tree, one per followed tensor. */
export function gradientsOf(op: string, gradients: Gradients, followed: unknown): unknown {
  return mapTree(op, followed, (t) => gradientOf(gradients, t.node));
}

// Nested arrays and plain objects of tensors: the form in which functions take parameters and give back gradients.

/** A tensor, or arrays and plain objects of such. */
export type TensorTree = Tensor | readonly TensorTree[] | { readonly [key: string]: TensorTree };

/** The same structure with every tensor replaced. Order of visits: array order, then key order. Throws for anything else, and for cycles. */
export function mapTree(op: string, tree: unknown, f: (t: Tensor) => unknown): unknown {
  const leaf = (item: unknown): unknown => {
    if (isHandle(item)) return f(item as unknown as Tensor);
    throw new ArgumentError(
      op,
      say`argument holds ${shown(item)}: needs tensors, or arrays and plain objects of tensors`,
    );
  };
  return mapNested(op, tree, null, leaf, () => null);
}

/** All tensors of a tree, in order. */
export function leavesOf(op: string, tree: unknown): Tensor[] {
  const leaves: Tensor[] = [];
  mapTree(op, tree, (t) => leaves.push(t));
  return leaves;
}

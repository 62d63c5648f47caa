/**
 * Reverse mode: functions traced for differentiation (`tracing`), and the walk from results back to sources that applies gradient rules (`walk`).
 *
 * The walk does once what every rule would need. It sums the gradients of a value used several times, sums over broadcast axes, and casts back to the
 * source's dtype. It keeps NaN out of branches that `where` did not take.
 */
import * as p from '../graph/primitives.ts';
import type { Node, PrimitiveName } from '../graph/node.ts';
import {
  type CommonPrimitive,
  customRules,
  definitionOf,
  definitions,
  elementwiseCustom,
  type GradientRule,
  type Gradients as Rules,
} from '../graph/definition.ts';
import { constant, identity } from '../graph/primitives.ts';
import {
  beginOp,
  endRecording,
  isHandle,
  pauseRecording,
  restoreTracking,
  startRecording,
  suspendTracking,
  traceScope,
  watchNode,
} from '../graph/scope.ts';
import type { Recording } from '../graph/state.ts';
import { contractionGradients } from '../primitives/contraction.ts';
import { elementwiseGradients } from '../primitives/elementwise.ts';
import { barrierGradients, type leaves } from '../primitives/leaves.ts';
import { movementGradients, windowGradients } from '../primitives/movement.ts';
import { reductionGradients } from '../primitives/reduction.ts';
import { isFloat, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { mapNested } from '@polygrad/compiler/shape/nested';
import { shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { sameShape } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from '../tensor/handle.ts';
import { masked, unmasked } from './masks.ts';
import type { Tensor } from '../tensor/types.ts';

/** Gradients by node. */
export type Gradients = Map<Node, Node>;

/** Adds to the gradient of a node. */
export function accumulate(gradients: Gradients, node: Node, gradient: Node): void {
  const before = gradients.get(node);
  gradients.set(node, before === undefined ? gradient : p.add(before, gradient));
}

/**
 * Applies the rules of `nodes`, last one first. To be called with flushes held.
 *
 * @param nodes in creation order, so sources come before users
 * @param count how many of them, from the first
 * @param gradients gradients of results to start with; those of all nodes reached are added
 * @param follow whether gradients flow into a node
 */
export function walk(
  nodes: readonly Node[],
  count: number,
  gradients: Gradients,
  follow: (node: Node) => boolean,
): void {
  for (let i = count - 1; i >= 0; i--) {
    const node = nodes[i]!;
    const grad = gradients.get(node);
    if (grad === undefined) continue;
    const needs = node.src.map(follow);
    if (!needs.includes(true)) continue;
    const results = applyRule(node, grad, needs);
    for (let s = 0; s < results.length; s++) {
      const result = results[s];
      if (!needs[s] || !result) continue;
      const source = node.src[s]!;
      // Most gradients have the very shape.
      const fits = result.shape === source.shape && result.dtype === source.dtype;
      accumulate(gradients, source, fits ? result : fitted(result, source));
    }
  }
}

/** A gradient in the shape and dtype of its source: summed over the axes along which that was broadcast. */
export function fitted(gradient: Node, source: Node): Node {
  const { shape, dtype } = source;
  if (gradient.dtype === dtype && sameShape(gradient.shape, shape)) return gradient;
  return p.cast(p.sumTo(gradient, shape), dtype);
}

const common: Rules<Exclude<CommonPrimitive, keyof typeof leaves>> = {
  ...elementwiseGradients,
  ...reductionGradients,
  ...movementGradients,
  ...windowGradients,
  ...contractionGradients,
  ...barrierGradients,
};

const none = (): readonly null[] => [];

/** The rule of a primitive of which there is a node. Leaves have none: their gradient is zero. */
export function gradientRuleOf<P extends PrimitiveName>(op: P): GradientRule<P> {
  return (common as { readonly [Q in P]?: GradientRule<Q> })[op] ?? definitionOf(op).gradient ?? none;
}

/** The gradients of a node's sources; null for none. */
export function applyRule(node: Node, grad: Node, needs: readonly boolean[]): readonly (Node | null)[] {
  const custom = node.op === 'stopGradient' ? customRules.get(node) : undefined;
  if (node.op === 'stopGradient' && (custom === undefined || !elementwiseCustom.has(node)))
    return custom?.(grad, node) ?? [];
  const rule: GradientRule<PrimitiveName> =
    custom === undefined ? gradientRuleOf(node.op) : (c) => custom(c.grad, node);
  // `add` passes its gradient on as it is, mask and all.
  if (custom === undefined && (definitions[node.kind]!.role !== 'elementwise' || node.op === 'add'))
    return rule({ node, src: node.src, attr: node.attr, grad, needs });
  const { inner, masks } = unmasked(node.op, grad);
  const results = rule({ node, src: node.src, attr: node.attr, grad: inner, needs });
  return masks.length === 0 ? results : results.map((result) => result && masked(result, masks));
}

// Tracing a function for differentiation: fresh nodes for its inputs, a recording of what it does with them, and any number of walks back. Shared
// by grad, vjp, jvp, jacobian and the rest.

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

  /** The tree with a new tensor for each, whose node the trace follows. Throws DTypeError for tensors that are no floats. */
  follow(tree: unknown): unknown {
    return mapTree(this.op, tree, (t) => {
      const named = wrap(identity(this.floatNode(t)));
      watchNode(this.#recording, named.node);
      return named;
    });
  }

  /** Follows a node itself. */
  watch(node: Node): void {
    watchNode(this.#recording, node);
  }

  /** The node of a tensor to differentiate by. */
  floatNode(t: Tensor): Node {
    const node = nodeOf(t, this.op);
    if (isFloat(node.dtype)) return node;
    throw new DTypeError(
      this.op,
      say`cannot differentiate by a tensor of dtype ${node.dtype}: needs floating-point tensors; pass integers as other arguments (argnums)`,
      [node.dtype],
    );
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

/** Runs `body` as a gradient function: in a scope, without flushes, whose recording ends with it. */
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

// Nested arrays and plain objects of tensors: the form in which functions take parameters and return gradients.

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

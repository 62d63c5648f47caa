/**
 * Reverse mode: functions traced for differentiation (`tracing`), and the walk from results back to sources that applies gradient
 * rules (`walk`).
 *
 * The walk does once what every rule would need. It sums the gradients of a value used several times, sums over broadcast axes, and
 * casts back to the source's dtype. It keeps NaN out of branches that `where` did not take.
 */
import * as p from '../graph/primitives.ts';
import { isOp, type Node, type PrimitiveName } from '../graph/node.ts';
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

// Tracing a function for differentiation: fresh nodes for its inputs, a recording of what it does with them, and any number of
// walks back. Shared by grad, vjp, jvp, jacobian and the rest.

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

/**
 * The same structure with every tensor replaced. Order of visits: array order, then key order. Throws for anything else, and for
 * cycles.
 */
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

// Masks: where gradients are 0 because `where` did not take a branch. There an infinite slope would make them NaN: 0 times
// infinity. So the rules of elementwise operations see the gradient without its masks, and the masks go around what they give.
//
// They are found through elementwise operations, sums of gradients, movements, and sums over axes along which the mask is the same.
// Products of matrices, convolutions and picks by index mix elements: behind them a 0 is a number like others.

/** A condition outside of which a gradient is 0. */
interface Mask {
  readonly condition: Node;
  /** The 0, which keeps the shape the mask gave. */
  readonly zero: Node;
  /** Whether the gradient is where the condition is true. */
  readonly first: boolean;
}

/** Most nested masks of `where` that are moved around a rule. */
const mostMasks = 2;
/** What is 0 where its operands are, and whose shape tells how the operands lie in it. */
const seenThrough: ReadonlySet<string> = new Set('add neg cast expand reshape permute reduce'.split(' '));
/** Most operations that are looked through for a mask. */
const mostSteps = 64;

/** True if the node is a constant 0. */
function isZero(node: Node): boolean {
  return isOp(node, 'constant') && node.attr.value === 0;
}

/**
 * Operations whose slopes are infinite only where an operand is: for their sake no mask is looked for behind movements, which would
 * cost kernels a read.
 */
const flat: ReadonlySet<string> = new Set('mul sub neg cast where abs maximum minimum exp'.split(' '));

/** The gradient that a rule of `op` is to see, without its masks, and those. */
function unmasked(op: string, gradient: Node): { readonly inner: Node; readonly masks: readonly Mask[] } {
  const masks: Mask[] = [];
  let inner = gradient;
  while (masks.length < mostMasks && isOp(inner, 'where') && inner.src.length === 3) {
    const [condition, a, b] = inner.src as [Node, Node, Node];
    if (isZero(b)) masks.push({ condition, zero: b, first: true });
    else if (isZero(a)) masks.push({ condition, zero: a, first: false });
    else break;
    inner = masks[masks.length - 1]?.first ? a : b;
  }
  if (masks.length === 0 && (isOp(inner, 'add') || !flat.has(op))) {
    // A mask further inside stays where it is: only what the rule makes of its zeros is masked again.
    const condition = supportOf(inner, { left: mostSteps });
    if (condition !== null) masks.push({ condition, zero: p.constant(0, inner.dtype), first: true });
  }
  return { inner, masks };
}

/** Puts masks around what a rule gave, in their order. */
function masked(result: Node, masks: readonly Mask[]): Node {
  let around = result;
  for (let i = masks.length - 1; i >= 0; i--) {
    const { condition, zero, first } = masks[i]!;
    // The dtype of the zero follows a cast.
    const none = zero.dtype === around.dtype ? zero : p.constant(0, around.dtype, zero.shape);
    around = first ? p.where(condition, around, none) : p.where(condition, none, around);
  }
  return around;
}

/**
 * A condition, of a shape that broadcasts to that of the node, outside of which the node is 0; null if none is found in the steps
 * that are left.
 */
function supportOf(node: Node, steps: { left: number }): Node | null {
  const [x, y, z] = node.src;
  if (x === undefined || --steps.left < 0) return null;
  if (isOp(node, 'where')) {
    const first = isZero(z!);
    if (!first && !isZero(y!)) return null;
    const outer = first ? x : p.not(x);
    // The outer condition alone may hold everywhere, as that of a sum over both branches does.
    const inner = supportOf(first ? y! : z!, steps);
    return inner === null || inner === outer ? outer : p.binary('and', outer, inner);
  }
  if (!seenThrough.has(node.op)) return null;
  const inside = supportOf(x, steps);
  if (inside === null) return null;
  if (isOp(node, 'add')) {
    const other = supportOf(y!, steps);
    return other === null || other === inside ? other : p.binary('or', inside, other);
  }
  if (isOp(node, 'reshape')) return p.reshape(p.broadcastTo(inside, x.shape), node.shape);
  if (isOp(node, 'permute')) return p.permute(p.broadcastTo(inside, x.shape), node.attr.axes);
  if (!isOp(node, 'reduce')) return inside;
  // Of a sum over axes along which the condition is the same.
  const sizes = x.shape.map((_, i) => inside.shape[i - x.shape.length + inside.shape.length] ?? 1);
  const left = sizes.filter((size, i) => size !== 1 || !node.attr.axes.includes(i));
  return node.attr.op === 'sum' && left.length === node.shape.length ? p.reshape(inside, left) : null;
}

/**
 * backward(): gradients by all requiresGrad leaves, added to their `grad`, as in PyTorch.
 *
 * The graph is followed through the sources that nodes keep while they require a gradient. After the walk it is released unless
 * asked otherwise, so that a training loop holds nothing from step to step.
 */
import { type Node, nextMark, forgetHistory, release } from '../graph/node.ts';
import { graph } from '../graph/state.ts';
import { add, cast, constant } from '../graph/primitives.ts';
import { releasedSlot } from '../graph/recorder.ts';
import { beginOp, holdFlushes, restoreTracking, suspendTracking, traceScope } from '../graph/scope.ts';
import { sameShape, sizeOf } from '@polygrad/compiler/shape/view';
import { OperationError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { nodeOf, type TensorHandle, wrap } from '../tensor/handle.ts';
import type { BackwardOptions, Tensor } from '../tensor/types.ts';
import { type Gradients, walk } from './walk.ts';
import { say } from '@polygrad/compiler/shape/shown';

/**
 * There is no gradient to compute here.
 *
 * @example
 * tensor([1, 2]).sum().backward(); // throws GradientError
 */
export class GradientError extends OperationError {
  override readonly name: string = 'GradientError';

  constructor(op: string, message: string) {
    super(op, message, 'GRADIENT');
  }
}

/** All nodes between the result and its leaves that require gradients, in creation order; and the leaves. */
function collect(root: Node): { nodes: Node[]; leaves: Node[] } {
  const nodes: Node[] = [];
  const leaves: Node[] = [];
  const mark = nextMark();
  const stack = [root];
  root.mark = mark;
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node.slot === releasedSlot) {
      throw new GradientError(
        'backward',
        say`the graph of a ${node.op} ${showShape(node.shape)} was released by an earlier backward(): call that one with retainGraph: true, or compute the value again`,
      );
    }
    if (node.slot !== null) {
      leaves.push(node);
      continue;
    }
    nodes.push(node);
    for (const source of node.src) {
      if (source.mark === mark || !source.requiresGrad) continue;
      source.mark = mark;
      stack.push(source);
    }
  }
  nodes.sort((a, b) => a.id - b.id);
  return { nodes, leaves };
}

/**
 * Computes the gradients of a tensor by all requiresGrad leaves it depends on and adds them to the leaves' `grad`.
 *
 * @param t a tensor with one element, unless options.gradient is given
 * @param options gradient: to start from, of the shape of t; retainGraph: allow another backward(); createGraph: let the gradients be
 *   differentiated
 * @throws GradientError if t depends on no leaf, its graph was released, or inside vmap; ShapeError if t has several elements
 *
 * @example
 * const w = tensor([1, 2], { requiresGrad: true });
 * w.mul(w).sum().backward();
 * w.grad; // [2, 4]
 */
export function backward(t: Tensor, options: BackwardOptions = {}): void {
  checkNames('backward', options, 'gradient retainGraph? createGraph?');
  beginOp('backward');
  const node = nodeOf(t, 'backward');
  if (graph.placeholders !== null)
    throw new GradientError(
      'backward',
      'called inside vmap: an example is no leaf that could hold a gradient; return gradients with grad(), or call backward() on the result of vmap',
    );
  if (!node.requiresGrad) {
    throw new GradientError(
      'backward',
      say`no gradient: the ${node.dtype} ${showShape(node.shape)} depends on no leaf with requiresGrad, or was made under noGrad or by detach`,
    );
  }
  const seed = options.gradient === undefined ? null : nodeOf(options.gradient, 'backward');
  if (seed === null && sizeOf(node.shape) !== 1) {
    throw new ShapeError(
      'backward',
      say`several elements: ${showShape(node.shape)}; use sum() or mean(), or give options.gradient`,
      [node.shape],
    );
  }
  if (seed !== null && !sameShape(seed.shape, node.shape)) {
    throw new ShapeError(
      'backward',
      say`shapes differ: ${showShape(node.shape)} and its gradient ${showShape(seed.shape)}; make them equal`,
      [node.shape, seed.shape],
    );
  }
  const { createGraph = false, retainGraph = createGraph } = options;
  traceScope(() => {
    const state = createGraph ? null : suspendTracking('recordings');
    try {
      const { nodes, leaves } = collect(node);
      const start = seed === null ? constant(1, node.dtype, node.shape) : cast(seed, node.dtype);
      const gradients: Gradients = new Map([[node, start]]);
      holdFlushes(() => {
        walk(nodes, nodes.length, gradients, (source) => source.requiresGrad);
        for (const leaf of leaves) deposit(leaf, gradients.get(leaf));
        if (!retainGraph) releaseGraph(nodes);
      });
    } finally {
      if (state !== null) restoreTracking(state);
    }
  });
}

/** Adds a gradient to the leaf's `grad`. */
function deposit(leaf: Node, gradient: Node | undefined): void {
  const { slot } = leaf;
  if (slot === null || gradient === undefined) return;
  const before = slot.grad as Tensor | null;
  const total = wrap(before === null || before.disposed ? gradient : add(nodeOf(before), gradient));
  (total as unknown as TensorHandle).kept = true;
  slot.grad = total;
  before?.dispose();
}

/** These nodes cannot be walked again; nodes that only they needed are freed. */
function releaseGraph(nodes: readonly Node[]): void {
  // An extra count keeps them alive while this list is processed.
  for (const node of nodes) node.handles++;
  for (const node of nodes) {
    node.slot = releasedSlot;
    forgetHistory(node);
  }
  for (let i = nodes.length - 1; i >= 0; i--) release(nodes[i]!);
}

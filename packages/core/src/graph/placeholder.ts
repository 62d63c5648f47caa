/**
 * Placeholders: nodes for values that are not known yet. A function runs once on placeholders; what it recorded is then recorded again for
 * the values (autodiff/vmap.ts). A placeholder cannot be computed, so what depends on one can be neither read nor kept.
 */
import type { DType } from '@polygrad/compiler/shape/dtype';
import { OperationError, showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import type { Shape } from '@polygrad/compiler/shape/view';
import { record, stopGradient } from './primitives.ts';
import type { Node, TrackedHandle } from './node.ts';
import { nodesBelow } from './print.ts';
import { composingDepth, isLocal, opName, scopeSize } from './scope.ts';
import { graph, type RunningOnPlaceholders } from './state.ts';

interface Description {
  readonly what: string;
  /** How many functions were running on placeholders when it was made. */
  readonly depth: number;
}

const placeholders = new WeakMap<Node, Description>();

/** A new placeholder; `what` describes it in errors. */
export function placeholder(shape: Shape, dtype: DType, what: string): Node {
  const node = record('buffer', [], { shape, dtype }, shape, dtype);
  graph.refusePlaceholder = refuse;
  placeholders.set(node, { what, depth: graph.placeholders?.open.length ?? 0 });
  return node;
}

/** Set as `GraphState.refusePlaceholder`: throws OperationError for a placeholder. */
function refuse(node: Node): void {
  const what = placeholders.get(node)?.what;
  if (what === undefined) return;
  throw new OperationError(
    'vmap',
    `a value was asked for that depends on ${what}: it exists only when the function has returned; return the tensor and read the result`,
  );
}

/** The functions that are running on placeholders, and what they may not do with them. Pages without such functions leave it out. */
class Running implements RunningOnPlaceholders {
  readonly open: number[] = [];

  /** The innermost function whose placeholders a value depends on: its index in `open`, or -1. */
  #depthOf(value: Node): number {
    let depth = -1;
    for (const node of nodesBelow([value])) depth = Math.max(depth, placeholders.get(node)?.depth ?? -1);
    return depth;
  }

  /** Nothing tracks placeholders, so derivatives of what is recorded again for the values follow the graph alone. */
  tracked(node: Node): Node {
    return graph.leaves || graph.recording !== 0 || node.src.length === 0 ? node : stopGradient(node);
  }

  checkKeep(value: Node): void {
    if (this.#depthOf(value) < 0) return;
    throw new OperationError(
      'keep',
      say`the ${value.dtype} ${showShape(value.shape)} depends on an example inside vmap, which exists only until the function returns; return it from the function`,
    );
  }

  checkAssign(handle: TrackedHandle, value: Node): void {
    const depth = this.#depthOf(value);
    const bottom = this.open[depth];
    const { node } = handle;
    if (bottom === undefined || this.#depthOf(node) >= depth || isLocal(handle, bottom)) return;
    throw new OperationError(
      composingDepth() > 0 ? opName('assign') : 'assign',
      say`a value that depends on an example inside vmap was to be assigned to a ${node.dtype} ${showShape(node.shape)} from outside, which has one value for all examples; return the value from the function and assign after vmap, or leave running statistics as they are (eval(), training: false)`,
    );
  }
}

/** Runs a function on placeholders: meanwhile `keep` and `assign` refuse values that depend on them. */
export function onPlaceholders<T>(body: () => T): T {
  const g = graph;
  g.placeholders ??= new Running();
  const { open } = g.placeholders;
  open.push(scopeSize());
  try {
    return body();
  } finally {
    open.pop();
    if (open.length === 0) g.placeholders = null;
  }
}

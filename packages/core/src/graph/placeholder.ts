/**
 * Placeholders: nodes that stand for a value still to come. A function is run once on placeholders, and what it recorded is then made
 * again for the values (autodiff/batch.ts). A placeholder cannot be computed, so nothing that depends on one can be read.
 */
import type { DType } from '../shape/dtype.ts';
import type { Shape } from '../shape/view.ts';
import { record } from './build.ts';
import type { Node } from './node.ts';
import { nodesBelow } from './order.ts';
import type { TrackedHandle } from './recorder.ts';
import { isLocal, scopeSize } from './scope.ts';
import { graph } from './state.ts';

interface Meaning {
  readonly what: string;
  /** How many functions were being run on placeholders when it was made. */
  readonly depth: number;
}

const placeholders = new WeakMap<Node, Meaning>();

/** A new placeholder; `what` is told to whoever tries to read it. */
export function placeholder(shape: Shape, dtype: DType, what: string): Node {
  const node = record('buffer', [], { shape, dtype }, shape, dtype);
  placeholders.set(node, { what, depth: graph.open.length });
  return node;
}

/** What the node stands for, if it is a placeholder. */
export function placeholderText(node: Node): string | undefined {
  return placeholders.get(node)?.what;
}

/** Runs a user's function on placeholders. */
export function onPlaceholders<T>(body: () => T): T {
  const { open } = graph;
  open.push(scopeSize());
  try {
    return body();
  } finally {
    open.pop();
  }
}

/** True while a function is run on placeholders: what is computed on the host now is the same for all of them. */
export function hasPlaceholders(): boolean {
  return graph.open.length > 0;
}

/** The innermost function whose placeholders a value depends on: its place in `graph.open`, -1 where there is none. */
function depthOf(value: Node): number {
  let depth = -1;
  for (const node of nodesBelow([value])) depth = Math.max(depth, placeholders.get(node)?.depth ?? -1);
  return depth;
}

/** True if a value has a placeholder among what it is computed from. */
export function dependsOnPlaceholder(value: Node): boolean {
  return depthOf(value) >= 0;
}

/**
 * True if a value depends on a placeholder of a function that is being run, and the handle was made outside of that function: it would name
 * something that does not exist when the function has returned.
 */
export function outlives(handle: TrackedHandle, value: Node): boolean {
  const { open } = graph;
  if (open.length === 0) return false;
  const depth = depthOf(value);
  const bottom = open[depth];
  return bottom !== undefined && depthOf(handle.node) < depth && !isLocal(handle, bottom);
}

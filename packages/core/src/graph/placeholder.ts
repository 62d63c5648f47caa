/**
 * Placeholders: nodes that stand for a value still to come. A function is run once on placeholders, and what it recorded is then made
 * again for the values (autodiff/vmap.ts). A placeholder cannot be computed, so nothing that depends on one can be read.
 */
import type { DType } from '../shape/dtype.ts';
import type { Shape } from '../shape/view.ts';
import { record } from './primitives.ts';
import type { Node } from './node.ts';
import { nodesBelow } from './print.ts';
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
  placeholders.set(node, { what, depth: graph.placeholders?.open.length ?? 0 });
  return node;
}

/** What the node stands for, if it is a placeholder. */
export function placeholderText(node: Node): string | undefined {
  return placeholders.get(node)?.what;
}

/** Functions that are being run on placeholders. Pages carry this only with what runs one. */
class Running {
  /** For each: how many handles waited in scopes when it began. */
  readonly open: number[] = [];

  /** The innermost function whose placeholders a value depends on: its place in `open`, -1 where there is none. */
  #depthOf(value: Node): number {
    let depth = -1;
    for (const node of nodesBelow([value])) depth = Math.max(depth, placeholders.get(node)?.depth ?? -1);
    return depth;
  }

  /** True if a value has a placeholder among what it is computed from. */
  reach(value: Node): boolean {
    return this.#depthOf(value) >= 0;
  }

  /**
   * True if a value depends on a placeholder of a function that is being run, and the handle was made outside of that function: it would name
   * something that does not exist when the function has returned.
   */
  outlive(handle: TrackedHandle, value: Node): boolean {
    const depth = this.#depthOf(value);
    const bottom = this.open[depth];
    return bottom !== undefined && this.#depthOf(handle.node) < depth && !isLocal(handle, bottom);
  }
}

export type RunningOnPlaceholders = Running;

/** Runs a user's function on placeholders. */
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

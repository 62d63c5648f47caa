/**
 * Placeholders: nodes that stand for a value still to come. A function is run once on placeholders, and what it recorded is then made
 * again for the values (autodiff/batch.ts). A placeholder cannot be computed, so nothing that depends on one can be read.
 */
import type { DType } from '../shape/dtype.ts';
import type { Shape } from '../shape/view.ts';
import { record } from './build.ts';
import type { Node } from './node.ts';

const placeholders = new WeakMap<Node, string>();
let open = 0;

/** A new placeholder; `what` is told to whoever tries to read it. */
export function placeholder(shape: Shape, dtype: DType, what: string): Node {
  const node = record('buffer', [], { shape, dtype }, shape, dtype);
  placeholders.set(node, what);
  return node;
}

/** What the node stands for, if it is a placeholder. */
export function placeholderText(node: Node): string | undefined {
  return placeholders.get(node);
}

/** Runs a user's function on placeholders. */
export function onPlaceholders<T>(body: () => T): T {
  open++;
  try {
    return body();
  } finally {
    open--;
  }
}

/** True while a function is run on placeholders: what is computed on the host now is the same for all of them. */
export function hasPlaceholders(): boolean {
  return open > 0;
}

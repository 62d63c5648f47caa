/**
 * Between which numbers the integers of a tensor lie, where the host knows: those of data from the host, and numbers. Operations by index check it at the
 * call, because a kernel cannot throw. What is computed has no known range.
 */
import { dtypeInfo, isInteger, type TypedArray } from '@polygrad/compiler/shape/dtype';
import { isOp, type Node } from './node.ts';
import { graph, type KnownRange } from './state.ts';

const ranges = new WeakMap<Node, KnownRange>();
/** For movements of a leaf without a known range the leaf, while a compiled function is recorded: a later call may give one that has a range. */
const origins = new WeakMap<Node, Node>();

/** Most elements that are looked at: half a millisecond, for bigints three times that. */
const mostElements = 2 ** 18;

/** Looks at the data of a new leaf. Integers of 8 bits are left out: they are images rather than indices. */
export function noteRange(leaf: Node, data: TypedArray): void {
  const { dtype } = leaf;
  if (!isInteger(dtype) || dtypeInfo[dtype].bytes === 1 || data.length === 0 || data.length > mostElements) return;
  let least = data[0]!;
  let greatest = least;
  for (let i = 1; i < data.length; i++) {
    const value = data[i]!;
    if (value < least) least = value;
    else if (value > greatest) greatest = value;
  }
  ranges.set(leaf, [Number(least), Number(greatest)]);
}

/** A movement of `x` that keeps all its elements has its range. */
export function shareRange(view: Node, x: Node): void {
  const range = ranges.get(x);
  if (range !== undefined) ranges.set(view, range);
  else if (graph.observer !== undefined && isInteger(x.dtype)) origins.set(view, origins.get(x) ?? x);
}

/** The value of a node of integers is about to be stored, and its sources forgotten: what they tell of it is kept. */
export function keepRange(node: Node): void {
  const range = rangeOf(node);
  if (range !== null) ranges.set(node, range);
}

/** The memory of a leaf was overwritten. */
export function forgetRange(leaf: Node): void {
  ranges.delete(leaf);
}

/** The range of a node's elements, or null. */
export function rangeOf(node: Node): KnownRange | null {
  let at = node;
  for (;;) {
    const range = ranges.get(at);
    if (range !== undefined) return range;
    if (isOp(at, 'constant') || isOp(at, 'scalar')) {
      const value = Number(at.attr.value);
      ranges.set(at, [value, value]);
      continue;
    }
    const source = unmoved(at);
    if (source === null) return null;
    at = source;
  }
}

/** The source of a node that has all its integers: it is moved, or cast to a dtype that holds them. Null if there is none. */
function unmoved(node: Node): Node | null {
  const isWider = isOp(node, 'cast') && isInteger(node.dtype) && dtypeInfo[node.dtype].bytes >= 4;
  if (!isWider && !isOp(node, 'reshape') && !isOp(node, 'permute') && !isOp(node, 'expand')) return null;
  return node.src[0] ?? null;
}

/** The node whose integers a node has. */
function originOf(node: Node): Node {
  let at = node;
  for (let source = unmoved(at); source !== null; source = unmoved(at)) at = source;
  return origins.get(at) ?? at;
}

/** Throws where the host knows that integers of a tensor are not from `least` to `most`, nor `besides`; `wrong` makes the error. */
export function checkKnown(
  node: Node,
  least: number,
  most: number,
  wrong: (value: number) => Error,
  besides: number = least,
): void {
  const range = rangeOf(node);
  if (range !== null) for (const end of range) if ((end < least || end > most) && end !== besides) throw wrong(end);
  graph.observer?.within(originOf(node), range, Math.min(least, besides), Math.max(most, besides));
}

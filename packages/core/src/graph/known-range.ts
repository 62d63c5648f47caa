/**
 * Between which numbers the integers of a tensor lie, where the host knows: those of data from the host, and numbers. Operations by index check it at the
 * call, because a kernel cannot throw. What is computed has no known range.
 */
import { dtypeInfo, isInteger, type TypedArray } from '@polygrad/compiler/shape/dtype';
import { isOp, type Node } from './node.ts';
import { graph, type KnownRange } from './state.ts';

const ranges = new WeakMap<Node, KnownRange>();

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
    const isWider = isOp(at, 'cast') && isInteger(at.dtype) && dtypeInfo[at.dtype].bytes >= 4;
    if (!isWider && !isOp(at, 'reshape') && !isOp(at, 'permute') && !isOp(at, 'expand')) return null;
    const source = at.src[0];
    if (source === undefined) return null;
    at = source;
  }
}

/**
 * Gives integers of which nothing is known a range of NaN, which is below and above nothing. A compiled function that is recorded with them is told by it what is
 * asked of them. For a later call may give some that are known.
 */
export function watchRange(leaf: Node): void {
  if (isInteger(leaf.dtype) && !ranges.has(leaf)) ranges.set(leaf, [Number.NaN, Number.NaN]);
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
  if (range === null) return;
  for (const end of range) if ((end < least || end > most) && end !== besides) throw wrong(end);
  graph.observer?.within(range, Math.min(least, besides), Math.max(most, besides));
}

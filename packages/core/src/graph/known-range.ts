/**
 * Between which numbers the integers of a tensor lie, where the host knows: those of data from the host. Operations by index check it at the call, because
 * a kernel cannot throw. What is computed has no known range.
 */
import { dtypeInfo, isInteger, type TypedArray } from '@polygrad/compiler/shape/dtype';
import { isOp, type Node } from './node.ts';

/** The least and the greatest. A tensor and its views share one object. */
export type KnownRange = readonly [least: number, greatest: number];

const ranges = new WeakMap<Node, KnownRange>();

/** Most elements that are looked at: about a millisecond. */
const mostElements = 2 ** 20;

/** Looks at the data of a new leaf. Integers of 8 bits are left out: they are images rather than indices. */
export function noteRange(leaf: Node, data: TypedArray): void {
  const { dtype } = leaf;
  if (!isInteger(dtype) || dtypeInfo[dtype].bytes === 1 || data.length === 0 || data.length > mostElements) return;
  let [least, greatest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const see = (value: number): void => {
    if (value < least) least = value;
    if (value > greatest) greatest = value;
  };
  // Comparing bigints is slow, and no index needs more than 32 bits.
  if (dtypeInfo[dtype].bytes === 8)
    for (let i = 0, words = new Int32Array(data.buffer, data.byteOffset, 2 * data.length); i < words.length; i += 2)
      see((dtype === 'int64' ? words[i + 1]! : words[i + 1]! >>> 0) * 2 ** 32 + (words[i]! >>> 0));
  else for (let i = 0; i < data.length; i++) see(data[i] as number);
  ranges.set(leaf, [least, greatest]);
}

/** A movement of `x` that keeps all its elements has its range. */
export function shareRange(view: Node, x: Node): void {
  const range = ranges.get(x);
  if (range !== undefined) ranges.set(view, range);
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
    const isWider = isOp(at, 'cast') && isInteger(at.dtype) && dtypeInfo[at.dtype].bytes >= 4;
    if (!isWider && !isOp(at, 'reshape') && !isOp(at, 'permute') && !isOp(at, 'expand')) return null;
    const source = at.src[0];
    if (source === undefined) return null;
    at = source;
  }
}

/**
 * Threefry-2x32 with 20 rounds, as kernel expressions: random bits as a pure function of key and counter.
 *
 * Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), and its Random123 library.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';

const rotations = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
] as const;

/** First word of the block of counter (low, 0) under the key; all uint32. */
export function threefry(e: Exprs, key0: KNode, key1: KNode, low: KNode): KNode {
  const u32 = (value: number): KNode => e.constant('uint32', value);
  const keys = [key0, key1, e.xor(e.xor(key0, key1), u32(0x1bd11bda))];
  const rotate = (x: KNode, by: number): KNode => e.or(e.shl(x, u32(by)), e.shr(x, u32(32 - by)));
  let x0 = e.add(low, key0);
  let x1: KNode = key1;
  for (let group = 0; group < 5; group++) {
    for (const by of rotations[(group % 2) as 0 | 1]) {
      x0 = e.add(x0, x1);
      x1 = e.xor(rotate(x1, by), x0);
    }
    x0 = e.add(x0, keys[(group + 1) % 3] as KNode);
    x1 = e.add(e.add(x1, keys[(group + 2) % 3] as KNode), u32(group + 1));
  }
  return x0;
}

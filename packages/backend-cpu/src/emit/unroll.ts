/**
 * How often the body of a loop of constant extent is written.
 *
 * V8's optimizing compiler moves all loads of a basic block to its front, so copies of a body that fills the registers spill;
 * it also unrolls small loops itself. So only short bodies are repeated here, and whatever the program asks for.
 */
import type { KNode, KNodeOf } from '@polygrad/core/kernel';

/** Nodes that all copies together may have. */
const maxNodes = 192;

/** Copies of the body per iteration; `count` means no loop remains. */
export function unrollFactor(n: KNodeOf<'LOOP'>, _body: readonly KNode[], from: number, to: number, count: number): number {
  if (n.arg?.unrollHint !== true) return 1;
  const nodes = to - from;
  if (nodes * count <= maxNodes) return count;
  for (const factor of [8, 4, 2]) if (nodes * factor <= maxNodes && count >= factor) return factor;
  return 1;
}

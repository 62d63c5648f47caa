/**
 * How often the body of a loop of constant extent is written.
 *
 * Short bodies are repeated two or four times. That saves loop overhead (1.2 to 1.6 times faster on data in the first-level cache,
 * measured on V8 11.3 and 13.6). Longer ones are not. V8 11.3 moves all loads of a basic block to its front, so copies of a body that
 * fills the registers spill. A 3 x 3 matrix tile drops from 45 to 26 GFLOP/s when written twice.
 */
import type { KNode, KNodeOf } from './ir.ts';

/** Nodes that all copies together may have where the program asks for copies. */
const maxNodes = 192;

/**
 * Copies of the body (nodes `from` to `to`) per iteration; `count` means no loop remains.
 *
 * @example
 * const b = new ProgramBuilder();
 * const y = b.e.param(0, 'float32', 'write', 8);
 * b.loop(8, (i) => b.store(y, i, b.e.f32(1)), { unrollHint: true });
 * const { body } = b.build({ name: 'ones' });
 * const loop = body.find((n) => n.op === 'LOOP');
 * loop && unrollFactor(loop, body, 0, 0, 8); // 8
 */
export function unrollFactor(
  n: KNodeOf<'LOOP'>,
  body: readonly KNode[],
  from: number,
  to: number,
  count: number,
): number {
  if (n.arg?.unrollHint === true) {
    const nodes = to - from;
    if (nodes * count <= maxNodes) return count;
    for (const factor of [8, 4, 2]) if (nodes * factor <= maxNodes && count >= factor) return factor;
    return 1;
  }
  const size = bodySize(body, from, to);
  if (size <= 4 && count % 4 === 0) return 4;
  return size <= 12 && count % 2 === 0 ? 2 : 1;
}

/** Instructions of the body apart from index arithmetic; Infinity if it has blocks inside. */
function bodySize(body: readonly KNode[], from: number, to: number): number {
  let size = 0;
  for (let i = from; i < to; i++) {
    const n = body[i]!;
    switch (n.op) {
      case 'LOOP':
      case 'IF':
      case 'ATOMIC':
        return Number.POSITIVE_INFINITY;
      case 'CONST':
        break;
      case 'STORE':
        size += Math.max(1, n.src[2].lanes / 4);
        break;
      default:
        if (n.dtype !== 'int32' || n.lanes > 1) size += Math.max(1, n.lanes / 4);
    }
  }
  return size;
}

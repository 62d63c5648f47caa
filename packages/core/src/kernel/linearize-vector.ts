/**
 * How a range of kind 'vector' is cut: unrolled vectors, single vectors, scalars.
 *
 * The extent need not be a multiple of anything. The same body is generated for each part: `count` vectors of `lanes`
 * side by side, then single vectors, then one element at a time.
 */
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import type { EngineCaps } from '../engine/engine.ts';
import type { ProgramBuilder } from './builder.ts';
import type { KNode, LoopStore } from './ir.ts';
import { highOf, lowOf } from './node.ts';

/** One way of running through a stretch of the range. */
export interface Mode {
  readonly count: number;
  readonly lanes: number;
}

const scalarMode: Mode = { count: 1, lanes: 1 };

/** The modes a vector range of at most `extent` elements goes through, widest first. `exact`: always `extent` elements. */
export function vectorModes(extent: number, exact: boolean, lanes: number, unroll: number): readonly Mode[] {
  if (lanes <= 1) return extent > 0 ? [scalarMode] : [];
  const modes: Mode[] = [];
  const wide = lanes * unroll;
  if (unroll > 1 && extent >= wide) modes.push({ count: unroll, lanes });
  const rest = modes.length === 0 ? extent : exact ? extent % wide : wide - 1;
  if (rest >= lanes) modes.push({ count: 1, lanes });
  const tail = exact ? extent % lanes : lanes - 1;
  if (tail > 0) modes.push(scalarMode);
  return modes;
}

/** Writes the loops of the modes over `total` elements; `body` gets the mode and the first element of its stretch. */
export function runModes(
  b: ProgramBuilder,
  total: KNode,
  modes: readonly Mode[],
  body: (mode: Mode, first: KNode) => void,
): void {
  const { e } = b;
  let done: KNode = e.i32(0);
  for (const mode of modes) {
    const step = e.i32(mode.count * mode.lanes);
    const trips = e.idiv(e.sub(total, done), step);
    const start = done;
    b.loop(trips, (i) => body(mode, e.add(start, e.mul(i, step))));
    done = e.add(done, e.mul(trips, step));
  }
}

/** True if a number of elements is always the same. */
export function isFixed(total: KNode): boolean {
  return lowOf(total) === highOf(total);
}

/**
 * Lanes of the vectors in some stores: as many as the smallest numbers computed there fill the hardware vector with (of 4
 * bytes at least; masks do not count). Wider numbers then take several registers. Indices and gates are scalars anyway.
 */
export function vectorLanes(stores: readonly LoopStore[], caps: EngineCaps): number {
  let bytes = 8;
  const seen = new Set<KNode>();
  const stack: KNode[] = [];
  for (const { store } of stores) {
    const [mem, , value] = store.src as readonly [KNode, KNode, KNode];
    stack.push(value);
    if (mem.dtype !== 'bool') bytes = Math.min(bytes, dtypeInfo[mem.dtype as DType].bytes);
  }
  let masks = true;
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.dtype !== 'bool') {
      masks = false;
      bytes = Math.min(bytes, dtypeInfo[n.dtype as DType].bytes);
    }
    if (n.op === 'LOAD') {
      const [mem, , , alt] = n.src as readonly [KNode, KNode, KNode?, KNode?];
      if (mem.op === 'STAGE') stack.push(mem);
      if (alt !== undefined) stack.push(alt);
    } else if (n.op === 'REDUCE' || n.op === 'STAGE') stack.push(n.src[0] as KNode);
    else stack.push(...n.src);
  }
  return Math.max(1, Math.floor(caps.vectorBytes / (masks ? 4 : Math.max(4, bytes))));
}

/**
 * How a range of kind 'vector' is cut: unrolled vectors, single vectors, scalars.
 *
 * The extent need not be a multiple of anything. The same body is generated for each part: `count` vectors of `lanes`
 * side by side, then single vectors, then one element at a time.
 */
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import type { EngineCaps } from '../engine/engine.ts';
import type { ProgramBuilder } from './builder.ts';
import type { KNode, LoopKernel } from './ir.ts';
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
export function runModes(b: ProgramBuilder, total: KNode, modes: readonly Mode[], body: (mode: Mode, first: KNode) => void): void {
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
 * Lanes a kernel's vectors have: what fits the hardware vector if all numbers in the kernel have one size (comparisons
 * and index arithmetic do not count), else 1. Vectors of mixed sizes would need conversions no emitter does well.
 */
export function vectorLanes(kernel: LoopKernel, caps: EngineCaps): number {
  let bytes = 0;
  const seen = new Set<KNode>();
  const stack: KNode[] = [];
  const check = (dtype: DType | 'void'): boolean => {
    if (dtype === 'void') return true;
    const size = dtype === 'bool' ? (caps.storageBytes?.bool ?? 1) : dtypeInfo[dtype].bytes;
    if (bytes === 0) bytes = size;
    return bytes === size;
  };
  for (const { store } of kernel.stores) stack.push(store);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    switch (n.op) {
      case 'PARAM':
      case 'STAGE':
      case 'SHARED':
        if (!check(n.dtype)) return 1;
        break;
      case 'STORE':
      case 'RANGE':
      case 'CONST':
        break;
      case 'LOAD':
        break;
      default:
        if (n.dtype !== 'bool' && n.dtype !== 'int32' && !check(n.dtype)) return 1;
        if (n.op === 'CAST' && !check(n.dtype)) return 1;
    }
    for (const s of n.src) stack.push(s);
  }
  return bytes === 4 || bytes === 8 ? Math.max(1, Math.floor(caps.vectorBytes / bytes)) : 1;
}

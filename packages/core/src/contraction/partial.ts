/**
 * Contractions whose sums go through memory: an epilogue over numbers of another size, or sums taken in parts.
 */
import type { Exprs } from '../ir/expr.ts';
import { type Range, sizeOf } from '../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../ir/ir.ts';
import { Rewriter } from '../ir/rewrite.ts';
import type { DType } from '../shape/dtype.ts';
import type { Assembly } from './assembly.ts';
import type { Contraction } from './contraction.ts';

export interface ViaMemory {
  /** Where the tiles put their sums. */
  readonly store: LoopStore;
  /** Adds the dispatch that combines the parts and runs the kernel's own stores. */
  finish(): void;
}

/** Memory for sums, row-major over `order`; `part`: one such block for every part of the sum. */
export function viaMemory(
  c: Contraction,
  e: Exprs,
  assembly: Assembly,
  order: readonly Range[],
  part: Range | null,
): ViaMemory {
  const size = sizeOf(order);
  const parts = part?.arg.extent ?? 1;
  const temp = assembly.temporary(c.reduce.dtype as DType, parts * size);
  let index: KNode = e.i32(0);
  for (const r of order) index = e.add(e.mul(index, r.arg.extent), r);
  const at = part === null ? index : e.add(e.mul(part, size), index);
  return {
    store: { store: e.store(temp.write, at, c.reduce), ranges: order },
    finish: () => {
      const all = e.range(parts);
      const sum = e.reduce('sum', e.load(temp.read, e.add(e.mul(all, size), index)), [all]);
      const rewriter = new Rewriter(e, new Map());
      rewriter.set(c.reduce, part === null ? e.load(temp.read, index) : sum);
      const stores = c.kernel.stores.map((s) => rewriter.store(s));
      assembly.add(part === null ? '_epilogue' : '_combine', stores, false);
    },
  };
}

/**
 * Contractions whose sums go to a workspace first: memory between two dispatches. The second one runs the kernel's stores over the sums.
 *
 * That is so where an epilogue has another number of elements, where sums are made in parts (split-K), and where results are not contiguous
 * along vectors (transposed-results.ts). This file knows where sums lie there; the tiles that compute them are gemm.ts.
 */
import type { Exprs } from '../ir/expr.ts';
import { type Range, sizeOf } from '../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../ir/ir.ts';
import { Rewriter } from '../ir/rewrite.ts';
import type { Assembly, Temporary } from './assembly.ts';
import type { Contraction } from './contraction.ts';

export interface ViaWorkspace {
  /** The store by which tiles write their sums. */
  readonly store: LoopStore;
  /** Adds the dispatch that combines the parts and runs the kernel's stores. */
  finish(): void;
}

/** Sums in memory, row-major over some ranges; one such block for each part of the sum. */
export class Sums {
  readonly #temp: Temporary;
  readonly #size: number;
  readonly #parts: number;
  readonly #order: readonly Range[];

  constructor(c: Contraction, assembly: Assembly, order: readonly Range[], part: Range | null) {
    this.#order = order;
    this.#size = sizeOf(order);
    this.#parts = part?.arg.extent ?? 1;
    this.#temp = assembly.temporary(c.reduce.dtype, this.#parts * this.#size);
  }

  #index(e: Exprs): KNode {
    return this.#order.reduce<KNode>((index, r) => e.add(e.mul(index, r.arg.extent), r), e.i32(0));
  }

  store(c: Contraction, e: Exprs, part: Range | null): LoopStore {
    const at = part === null ? this.#index(e) : e.add(e.mul(part, this.#size), this.#index(e));
    return { store: e.store(this.#temp.write, at, c.reduce), ranges: this.#order };
  }

  /** The sum at the position of the ranges. */
  read(e: Exprs, part: Range | null): KNode {
    if (part === null) return e.load(this.#temp.read, this.#index(e));
    const all = e.range(this.#parts);
    return e.reduce('sum', e.load(this.#temp.read, e.add(e.mul(all, this.#size), this.#index(e))), [all]);
  }
}

/** Name suffix of the dispatch that reads sums from memory. */
export function suffixOf(part: Range | null): string {
  return part === null ? '_epilogue' : '_combine';
}

/** Memory for sums, row-major over `order`; `part`: one such block for each part of the sum. */
export function viaWorkspace(
  c: Contraction,
  e: Exprs,
  assembly: Assembly,
  order: readonly Range[],
  part: Range | null,
): ViaWorkspace {
  const sums = new Sums(c, assembly, order, part);
  return {
    store: sums.store(c, e, part),
    finish: () => {
      const rewriter = new Rewriter(e, new Map());
      rewriter.set(c.reduce, sums.read(e, part));
      const stores = c.kernel.stores.map((s) => rewriter.store(s));
      assembly.add(suffixOf(part), stores, null);
    },
  };
}

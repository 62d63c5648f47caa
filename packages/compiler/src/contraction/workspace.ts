/**
 * The workspace of a contraction: memory that holds its sums until a second dispatch runs the kernel's stores over them. It is needed
 * for a split sum, for an epilogue over another number of elements, and for transposed results (transposed-results.ts).
 */
import type { Exprs } from '../ir/expr.ts';
import { type Range, sizeOf } from '../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../ir/ir.ts';
import { Rewriter } from '../ir/rewrite.ts';
import type { Assembly, Temporary } from './assembly.ts';
import type { DType } from '../shape/dtype.ts';
import type { Contraction } from './contraction.ts';

/** Where tiles write their sums, and what follows when all are there. */
export interface Workspace {
  /** The store by which tiles write their sums. */
  readonly store: LoopStore;
  /** Adds the dispatch that combines the parts and runs the kernel's stores. */
  finish(): void;
}

/** Sums in memory, row-major over some ranges; one such block for each part of the sum. */
export class StoredSums {
  readonly #temp: Temporary;
  readonly #size: number;
  readonly #parts: number;
  readonly #order: readonly Range[];
  readonly #value: KNode;

  /** `value`: the sum, or what the kernel makes of it first. */
  constructor(assembly: Assembly, order: readonly Range[], part: Range | null, value: KNode) {
    this.#order = order;
    this.#value = value;
    this.#size = sizeOf(order);
    this.#parts = part?.arg.extent ?? 1;
    this.#temp = assembly.temporary(value.dtype as DType, this.#parts * this.#size);
  }

  #index(e: Exprs): KNode {
    return this.#order.reduce<KNode>((index, r) => e.add(e.mul(index, r.arg.extent), r), e.i32(0));
  }

  store(e: Exprs, part: Range | null): LoopStore {
    const at = part === null ? this.#index(e) : e.add(e.mul(part, this.#size), this.#index(e));
    return { store: e.store(this.#temp.write, at, this.#value), ranges: this.#order };
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

/** A workspace with sums row-major over `order`. `part`: one such block for each part of the sum. `value`: the stored value; default: the sum. */
export function workspaceFor(
  c: Contraction,
  e: Exprs,
  assembly: Assembly,
  order: readonly Range[],
  part: Range | null,
  value: KNode = c.reduce,
): Workspace {
  const sums = new StoredSums(assembly, order, part, value);
  return {
    store: sums.store(e, part),
    finish: () => {
      const rewriter = new Rewriter(e, new Map());
      rewriter.set(value, sums.read(e, part));
      const stores = c.kernel.stores.map((s) => rewriter.store(s));
      assembly.add(suffixOf(part), stores, null);
    },
  };
}

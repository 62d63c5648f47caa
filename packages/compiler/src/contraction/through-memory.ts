/**
 * Contractions whose sums go through memory: an epilogue over numbers of another size, sums taken in parts, or results that lie apart where
 * vectors run. `contraction/gemm.ts` decides; here is where sums are put, and the dispatch that runs the kernel's own stores over them.
 *
 * Tiles store vectors along one loop of the results, their columns. Where these lie apart in memory, as those of a convolution's kernel do, each
 * element is an access by itself, to every tensor that the epilogue reads and writes. So sums are put down with columns side by side, in the
 * order of the results otherwise, and taken from there in the order of the results: through group memory where what lies between two
 * columns is shorter than a vector.
 */
import { leastColumnsTurned, longestRun, longestTurn } from '../codegen/costs/cpu.ts';
import type { Exprs } from '../ir/expr.ts';
import { coefficient, type Range, sizeOf } from '../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../ir/ir.ts';
import { Rewriter, type Replacement } from '../ir/rewrite.ts';
import { linearOf } from '../ir/simplify/integers.ts';
import { isFixed } from './access.ts';
import type { Assembly, Temporary } from './assembly.ts';
import type { Contraction } from './contraction.ts';

export interface ViaMemory {
  /** Where the tiles put their sums. */
  readonly store: LoopStore;
  /** Adds the dispatch that combines the parts and runs the kernel's own stores. */
  finish(): void;
}

/** Sums in memory, row-major over some ranges; as many such blocks as there are parts of the sum. */
class Sums {
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

  /** The sum at the place of the ranges. */
  read(e: Exprs, part: Range | null): KNode {
    if (part === null) return e.load(this.#temp.read, this.#index(e));
    const all = e.range(this.#parts);
    return e.reduce('sum', e.load(this.#temp.read, e.add(e.mul(all, this.#size), this.#index(e))), [all]);
  }
}

function suffixOf(part: Range | null): string {
  return part === null ? '_epilogue' : '_combine';
}

/** Memory for sums, row-major over `order`; `part`: one such block for every part of the sum. */
export function viaMemory(
  c: Contraction,
  e: Exprs,
  assembly: Assembly,
  order: readonly Range[],
  part: Range | null,
): ViaMemory {
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

/** The loops of the results in the order in which these lie in memory, by the first store; those that say nothing of that come first. */
function inMemory(c: Contraction): Range[] {
  const [first] = c.kernel.stores;
  if (first === undefined) return [];
  const form = linearOf(first.store.src[1]);
  const reach = (r: Range): number => Math.abs(coefficient(form, r)) || Number.POSITIVE_INFINITY;
  const place = new Map(first.ranges.map((r, i) => [r, i]));
  return [...first.ranges].sort((x, y) =>
    reach(x) === reach(y) ? place.get(x)! - place.get(y)! : reach(y) - reach(x),
  );
}

/** A loop cut in blocks. */
interface Blocks {
  readonly block: Range;
  readonly within: Range;
}

/** At most so many iterations at a time, and all blocks alike. */
function inBlocks(e: Exprs, { arg: { extent } }: Range, most: number): Blocks {
  let size = Math.min(extent, Math.max(1, most));
  while (extent % size !== 0) size--;
  return { block: e.range(extent / size), within: e.range(size) };
}

/** The same with columns side by side, and results in the order of memory, through group memory where columns lie apart. */
export function viaColumns(c: Contraction, e: Exprs, assembly: Assembly, column: Range, part: Range | null): ViaMemory {
  const order = inMemory(c);
  const sums = new Sums(c, assembly, [...order.filter((r) => r !== column), column], part);
  return {
    store: sums.store(c, e, part),
    finish: () => {
      const changes = new Map<Range, Replacement>();
      const sum = turned(e, sums.read(e, part), order, column, changes);
      const rewriter = new Rewriter(e, changes);
      rewriter.set(c.reduce, sum.value);
      const stores = c.kernel.stores.map(({ store }) => rewriter.store({ store, ranges: sum.ranges }));
      assembly.add(suffixOf(part), stores, null);
    },
  };
}

/**
 * Sums from group memory, where some columns lie in the order of the results, and the loops around them. `changes`: what stands for loops that
 * were cut.
 */
function turned(
  e: Exprs,
  sum: KNode,
  order: readonly Range[],
  column: Range,
  changes: Map<Range, Replacement>,
): { readonly value: KNode; readonly ranges: readonly Range[] } {
  const at = order.indexOf(column);
  const inside: Range[] = [];
  let size = 1;
  let cut = order.length;
  while (cut > at + 1 && size < longestRun && isFixed(order[cut - 1]!)) {
    const r = order[--cut]!;
    inside.unshift(r);
    size *= r.arg.extent;
  }
  if (inside.length === 0) return { value: sum, ranges: order };
  const [first, ...others] = inside as [Range, ...Range[]];
  const rest = sizeOf(others);
  const run = inBlocks(e, first, Math.floor(longestRun / rest));
  const length = run.within.arg.extent * rest;
  const columns = inBlocks(e, column, Math.max(leastColumnsTurned, Math.floor(longestTurn / length)));
  const own = new Map<Range, Replacement>();
  const places = [run.within, ...others, columns.within];
  const loops = places.map((r) => e.range(r.arg.extent));
  const put = (r: Range, { block, within }: Blocks, loop: Range): void => {
    const start = e.mul(block, within.arg.extent);
    changes.set(r, { value: e.add(start, within), ranges: [] });
    own.set(r, { value: e.add(start, loop), ranges: [] });
  };
  put(first, run, loops[0]!);
  for (const [i, r] of others.entries()) own.set(r, { value: loops[i + 1]!, ranges: [] });
  put(column, columns, loops.at(-1)!);
  const stage = e.stage('shared', new Rewriter(e, own).node(sum), loops);
  const place = places.reduce<KNode>((index, r) => e.add(e.mul(index, r.arg.extent), r), e.i32(0));
  const around = [...order.slice(0, at), columns.block, ...order.slice(at + 1, cut), run.block];
  return { value: e.load(stage, place), ranges: [...around, columns.within, run.within, ...others] };
}

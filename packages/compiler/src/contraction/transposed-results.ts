/**
 * Contractions on processors with known facts (`ProcessorFacts`), whose results go through memory if they are not contiguous along
 * the columns. Only such engines load this; pages do not.
 *
 * Tiles store vectors along one loop of the results, their columns. Results may not be contiguous along it, as in the gradient of a
 * convolution's kernel. Then every element is a separate access, in every tensor of the epilogue. So sums are first stored with columns
 * contiguous. A second dispatch transposes them in group memory and runs the epilogue in the order of the results.
 */
import { leastColumnsTransposed, longestRun, longestTranspose, productCosts } from '../codegen/costs/cpu.ts';
import type { CodegenCaps, Lowered } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import { coefficient, type Range, sizeOf } from '../ir/free-ranges.ts';
import type { KNode } from '../ir/ir.ts';
import { type Replacement, Rewriter } from '../ir/rewrite.ts';
import { linearOf } from '../ir/simplify/integers.ts';
import { isFixed } from './access.ts';
import type { Assembly } from './assembly.ts';
import { type Contraction, worthwhile } from './contraction.ts';
import type { ContractionTemplate } from './template.ts';
import { type Cuts, type MoreChoices, paysFor } from './choose.ts';
import { lowerTiled } from './gemm.ts';
import { stepOrders } from './orders.ts';
import { findPairs } from './pairs.ts';
import { noCuts, withoutPadding } from './padding.ts';
import { processorChoices } from './processor-choices.ts';
import { wholeLines } from './whole-lines.ts';
import { wholeWindow } from './whole-window.ts';
import { StoredSums, suffixOf, type Workspace } from './workspace.ts';

/** Lowers a contraction by register tiles on a processor with known facts; null where no range can be read as vectors. */
export function lowerOnProcessor(c: Contraction, e: Exprs, caps: CodegenCaps): Lowered | null {
  return lowerTiled(c, e, caps, choicesFor(c, caps, withoutPadding(c)));
}

/** What may be chosen for a contraction. `cuts`: what a choice may leave out. */
function choicesFor(c: Contraction, caps: CodegenCaps, cuts: Cuts): MoreChoices {
  return {
    ...processorChoices(c, caps),
    tiles(...facts) {
      wholeLines(...facts);
      wholeWindow(...facts);
    },
    orders: stepOrders,
    workspace: transposedWorkspace,
    cuts,
  };
}

/** Lowers a kernel around a contraction likewise; null where the plain loop nest is as good. */
export const processorContraction: ContractionTemplate = (kernel, e, caps) => {
  const c = worthwhile(kernel, e, caps, paysFor);
  return c === null ? null : lowerOnProcessor(c, e, caps);
};

/** Lowers a kernel around a sum over pairs likewise. */
export const processorPairs: ContractionTemplate = (kernel, e, caps) => {
  const found = findPairs(kernel, e, caps);
  if (found === null) return null;
  const products = productCosts(caps);
  const slower = { ...products, flopsPerNs: products.flopsPerNs / found.steps };
  const slow = { ...caps, lowering: { ...caps.lowering, products: slower } };
  // Unlike a product, what padding makes is not always zero.
  return lowerTiled(found.c, e, slow, choicesFor(found.c, slow, noCuts));
};

/** The loops of the results in memory order of the first store; those that do not appear in it come first. */
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

/** A loop cut into blocks. */
interface Blocks {
  readonly block: Range;
  readonly within: Range;
}

/** Blocks of at most `most` iterations, all of about equal length. */
function inBlocks(e: Exprs, { arg: { extent } }: Range, most: number): Blocks {
  let size = Math.min(extent, Math.max(1, most));
  while (extent % size !== 0) size--;
  return { block: e.range(extent / size), within: e.range(size) };
}

/** Stores sums with columns contiguous; the second dispatch goes through group memory where the results are not contiguous along columns. */
function transposedWorkspace(
  c: Contraction,
  e: Exprs,
  assembly: Assembly,
  column: Range,
  part: Range | null,
): Workspace {
  const order = inMemory(c);
  const sums = new StoredSums(assembly, [...order.filter((r) => r !== column), column], part, c.reduce);
  return {
    store: sums.store(e, part),
    finish: () => {
      const changes = new Map<Range, Replacement>();
      const sum = transposed(e, sums.read(e, part), order, column, changes);
      const rewriter = new Rewriter(e, changes);
      rewriter.set(c.reduce, sum.value);
      const stores = c.kernel.stores.map(({ store }) => rewriter.store({ store, ranges: sum.ranges }));
      assembly.add(suffixOf(part), stores, null);
    },
  };
}

/**
 * Sums from group memory, which holds some columns in the order of the results, and the loops around them. `changes`: replacements of loops that
 * were cut.
 */
function transposed(
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
  const columns = inBlocks(e, column, Math.max(leastColumnsTransposed, Math.floor(longestTranspose / length)));
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

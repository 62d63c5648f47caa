/**
 * Where in a kernel a demand is computed: in which loops, how often, and whether it may run outside the inner ones. And which loops of a kernel
 * may become those of a contraction.
 *
 * The loops of a kernel may be reordered so that those of a "row" come first. A row's reductions and smaller stores then run
 * once per iteration of the outer loops. The rows of one kernel are nested in each other.
 */
import type { Range } from '@polygrad/compiler/ir/expr';
import { sizeOf } from '@polygrad/compiler/ir/free-ranges';
import { idOf } from '@polygrad/compiler/ir/node';
import type { KNode } from '@polygrad/compiler/ir/ir';
import { linearOf } from '@polygrad/compiler/ir/simplify/integers';
import type { Shape } from '@polygrad/compiler/shape/view';
import { isPlanOp, type PlanNode, typicalOf } from '../capture/plan-graph.ts';
import { flatten } from '../lowering/index-map.ts';
import { type Facts, fewestRows, longestRow, longestWork, manyRows, smallWork } from './cost.ts';
import type { Demand, DraftContext, KernelDraft } from './draft.ts';

/** Ranges that the demand's position visits without repetition, or null. */
export function rangesOf({ e }: DraftContext, demand: Demand): readonly Range[] | null {
  return injectiveRanges(flatten(e, demand.node.shape, demand.index));
}

/** Loops that the demand's value depends on. */
function freeIn({ free }: DraftContext, demand: Demand): Set<Range> {
  const found = new Set<Range>();
  for (const at of demand.index) for (const range of free.of(at)) found.add(range);
  if (demand.gate !== null) for (const range of free.of(demand.gate)) found.add(range);
  return found;
}

/** How often a demand's value is computed: once per iteration of the innermost loop it depends on. */
export function evaluations(context: DraftContext, demand: Demand): number {
  const free = freeIn(context, demand);
  let product = 1;
  let last = 1;
  for (const range of demand.scope) {
    product *= range.arg.extent;
    if (free.has(range)) last = product;
  }
  return typicalOf(context.size, last);
}

/** Loops around a reduction: those of the store that it depends on, or, inside another reduction, all up to the last of those. */
export function loopsAround(context: DraftContext, demand: Demand): readonly Range[] {
  const free = freeIn(context, demand);
  const { axes } = demand.kernel;
  if ([...free].every((range) => axes.includes(range))) return axes.filter((range) => free.has(range));
  let last = 0;
  demand.scope.forEach((range, i) => {
    if (free.has(range)) last = i + 1;
  });
  return demand.scope.slice(0, last);
}

/** Key of the place of a reduction. Reductions with one key and equal extents share loops: same outer loops, and neither needs the other. */
export function placeOf(context: DraftContext, demand: Demand, depth: number): string {
  const ids = [...freeIn(context, demand)].map(idOf).sort((a, b) => a - b);
  return `${depth}:${ids.join()}`;
}

/**
 * True if something that depends only on `ranges` may run once per iteration of those loops, with the others inside.
 *
 * @param reduced elements that it reads in each iteration
 */
export function rowFits(kernel: KernelDraft, ranges: readonly Range[], reduced: number): boolean {
  const inside = new Set(ranges);
  if (!kernel.rows.every((row) => contains(row, inside) || contains(inside, row))) return false;
  const sizes = kernel.context.size;
  const rows = typicalOf(sizes, sizeOf(ranges));
  const size = typicalOf(sizes, sizeOf(kernel.axes));
  if (size + kernel.reduced + rows * reduced <= smallWork) return true;
  const innermost = kernel.axes[kernel.axes.length - 1]!;
  // Once something comes before the inner loops of a row, one group runs them: chunks of a few long sums would lose their parallelism.
  if (rows < manyRows && (size + kernel.reduced) / rows > longestWork) return false;
  return rows >= fewestRows && size / rows <= longestRow && reduced <= longestRow && !inside.has(innermost);
}

/** Loops over `ranges` come before the kernel's other loops from now on. */
export function addRow(kernel: KernelDraft, ranges: readonly Range[]): void {
  if (ranges.length === kernel.axes.length) return;
  const inside = new Set(ranges);
  if (kernel.rows.some((row) => row.size === inside.size && contains(row, inside))) return;
  kernel.rows.push(inside);
  kernel.rows.sort((a, b) => a.size - b.size);
}

function contains(outer: ReadonlySet<Range>, inner: ReadonlySet<Range>): boolean {
  for (const range of inner) if (!outer.has(range)) return false;
  return true;
}

// Loops of a kernel that may become a contraction's, whatever shape the result was given afterwards.
//
// A kernel visits the elements of what it stores. That may be a contraction's result in another shape: images as vectors, heads
// side by side, channels last. Its axes are made of pieces of the contraction's axes then, and each piece gets its own loop. One loop for all
// of them would make the contraction compute rows and columns by division, which no tile supports.

/** For each axis of `node`, the extents of its loops, outermost first; empty where they are not known. */
export function anchorLoops(facts: Facts, node: PlanNode): number[][] {
  const anchor = facts.origin[node.index];
  if (anchor == null) return [];
  const way: PlanNode[] = [];
  for (let at = node; at !== anchor; ) {
    const next = at.src.find((s) => s.size === at.size && (s === anchor || facts.origin[s.index] === anchor));
    if (next === undefined) return [];
    way.push(at);
    at = next;
  }
  const grouped = isPlanOp(anchor, 'conv') ? anchor.attr.groups * anchor.attr.batchGroups : 1;
  // The features of a grouped convolution are two loops: group, and feature in it.
  let axes = anchor.shape.map((extent, axis) => (axis === 1 && grouped > 1 ? [grouped, extent / grouped] : [extent]));
  let { shape } = anchor;
  for (let at = way.pop(); at !== undefined; shape = at.shape, at = way.pop()) {
    const from = axes;
    if (isPlanOp(at, 'permute')) axes = at.attr.axes.map((axis) => from[axis]!);
    else if (at.op === 'reshape') axes = regrouped(from.flat(), at.shape);
    else if (at.shape.join() !== shape.join()) return [];
    if (axes.length === 0) return [];
  }
  return axes;
}

/** Nested loops as axes of another shape, cut where necessary; empty where that is impossible. */
function regrouped(loops: readonly number[], shape: Shape): number[][] {
  const left = [...loops].reverse();
  const axes: number[][] = [];
  for (let missing of shape) {
    const axis: number[] = [];
    while (missing > 1) {
      const extent = left.pop()!;
      const part = Math.min(extent, missing);
      if (missing % part !== 0 || extent % part !== 0) return [];
      if (part > 1) axis.push(part);
      if (part < extent) left.push(extent / part);
      missing /= part;
    }
    axes.push(axis);
  }
  return axes;
}

/**
 * The ranges of which a row-major position is an injective function: a mixed-radix number whose digits are ranges. Null if
 * the expression does not show that.
 */
function injectiveRanges(flat: KNode): (KNode & { op: 'RANGE' })[] | null {
  const { terms, coefs } = linearOf(flat);
  const digits: { range: KNode & { op: 'RANGE' }; step: number }[] = [];
  for (let i = 0; i < terms.length; i++) {
    const range = terms[i]!;
    if (range.op !== 'RANGE') return null;
    digits.push({ range, step: Math.abs(coefs[i]!) });
  }
  digits.sort((a, b) => a.step - b.step);
  let reach = 0;
  for (const { range, step } of digits) {
    if (step <= reach) return null;
    reach += step * (range.arg.extent - 1);
  }
  return digits.map((d) => d.range);
}

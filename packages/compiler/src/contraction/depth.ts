/**
 * The loops of a sum (the K loops): merged where both factors step through two of them as through one, then ordered; or replaced
 * by one loop over a table of positions.
 *
 * In: each loop's extent and its stride in both factors. Out: ranges, and the position in each factor as an expression.
 */
import { shortLoop, longestTable } from '../codegen/costs/cpu.ts';
import { inChunks } from '../codegen/loops/transforms.ts';
import type { Exprs } from '../ir/expr.ts';
import type { Range, SizedStride } from '../ir/free-ranges.ts';
import type { KNode } from '../ir/ir.ts';
import { assumeBounds } from '../ir/node.ts';
import { type Fold, foldedAt, strideNode, type Walk } from './access.ts';

/** One loop of the sum, with its stride in both factors. */
export interface Depth {
  readonly extent: number;
  readonly row: number;
  readonly column: number;
  /** Iterations in the last part, where the loop is split into parts of unequal length; such a loop is not merged. */
  readonly limit?: KNode;
  /** The first iteration, where iterations over padding are left out (padding.ts); `limit` is then the number of those left. */
  readonly from?: KNode;
  /** Number of iterations, if known only at dispatch: `times` the size. Such a loop is merged with one of fixed length inside it. */
  readonly end?: readonly [times: number, size: KNode] | undefined;
  /** Set if the columns' factor is walked by phases, `column` apart. */
  readonly fold?: Fold | undefined;
  /** Strides that depend on sizes; such a loop is not merged. */
  readonly sized?: { readonly row: SizedStride | undefined; readonly column: SizedStride | undefined } | undefined;
}

/** A loop of the sum, for factors that are walked so. */
export function depthOf(r: Range, rows: Walk, columns: Walk): Depth {
  const [limit] = r.src;
  const [row, column] = [rows.strides.get(r) ?? 0, columns.strides.get(r) ?? 0];
  const [ofRow, ofColumn] = [rows.sized?.get(r), columns.sized?.get(r)];
  const sized = ofRow === undefined && ofColumn === undefined ? undefined : { row: ofRow, column: ofColumn };
  return { extent: r.arg.extent, row, column, end: limit && [1, limit], fold: columns.folds?.get(r), sized };
}

/** True if a loop always runs over its whole extent. */
function isFull({ limit, end }: Depth): boolean {
  return limit === undefined && end === undefined;
}

/** The loop. */
function rangeOf(e: Exprs, { extent, limit, end }: Depth): Range {
  return e.range(extent, 'reduce', end === undefined ? limit : e.mul(end[1], end[0]));
}

/** How the loops of the sum run: nested, or as one loop; factors that do not walk them as one look up positions in a table. */
export type Depths =
  | { readonly kind: 'loops'; readonly loops: readonly Depth[] }
  | { readonly kind: 'table'; readonly loops: readonly Depth[] };

/** Loops with at least this many iterations are preferred as the innermost one. */
export const innermostLoop = 8;

/** Merges loops of the sum where both factors walk two of them as one, and orders the rest, the best innermost loop last. */
export function planDepth(loops: readonly Depth[]): Depths {
  const all = merged(loops);
  if (wantsTable(all) && all.every((d) => isFull(d) && d.sized === undefined)) {
    const by = (which: 'row' | 'column'): Depth[] => [...all].sort((x, y) => Math.abs(y[which]) - Math.abs(x[which]));
    const orders = [by('column'), by('row')];
    const flat = orders.find((order) => stepOf(order, 'row') !== null && stepOf(order, 'column') !== null);
    const half = orders.find((order) => stepOf(order, 'row') !== null || stepOf(order, 'column') !== null);
    return { kind: 'table', loops: flat ?? half ?? all };
  }
  const reach = (d: Depth): number => Math.abs(d.row) + Math.abs(d.column);
  all.sort((x, y) => reach(y) - reach(x));
  const long = all.filter((d) => d.extent >= innermostLoop);
  const inner = long[long.length - 1] ?? all.reduce((best, d) => (d.extent >= best.extent ? d : best), all[0]!);
  return { kind: 'loops', loops: [...all.filter((d) => d !== inner), inner] };
}

/** The same for a sum that runs over vectors: the last loop has a fixed length and unit stride in both factors. */
export function planVectorDepth(loops: readonly Depth[]): Depths {
  const all = merged(loops, isFull);
  const reach = (d: Depth): number => Math.abs(d.row) + Math.abs(d.column);
  all.sort((x, y) => reach(y) - reach(x));
  const inner = all.findLast((d) => d.row === 1 && d.column === 1 && d.end === undefined) ?? all[all.length - 1]!;
  return { kind: 'loops', loops: [...all.filter((d) => d !== inner), inner] };
}

/** The step with which a factor walks all loops as one, the last loop fastest; null if there is none. */
function stepOf(loops: readonly Depth[], which: 'row' | 'column'): number | null {
  const step = loops[loops.length - 1]?.[which] ?? 0;
  let expect = step;
  for (const d of [...loops].reverse()) {
    if (d[which] !== expect || (which === 'column' && d.fold !== undefined)) return null;
    expect *= d.extent;
  }
  return step;
}

/** How many factors look up positions in a table. */
export function lookUps({ kind, loops }: Depths): number {
  if (kind === 'loops') return 0;
  return Number(stepOf(loops, 'row') === null) + Number(stepOf(loops, 'column') === null);
}

/** True if these loops would be short when nested, and a table of their positions small. */
function wantsTable(loops: readonly { readonly extent: number }[]): boolean {
  const long = loops.filter((d) => d.extent > 1);
  const size = long.reduce((n, d) => n * d.extent, 1);
  return long.length > 1 && size <= longestTable && long.every((d) => d.extent < shortLoop);
}

/** Merges neighbouring loops; the outer one of each pair must be `suited`. */
function merged(loops: readonly Depth[], suited = (d: Depth): boolean => d.limit === undefined): Depth[] {
  // A loop of one step that ends at a size may have none: a part of a sum that lies beyond it.
  const all = loops.filter((d) => d.extent > 1 || d.end !== undefined);
  if (all.length === 0) return loops.slice(0, 1);
  for (let found = true; found; ) {
    found = false;
    for (let i = 0; i < all.length && !found; i++) {
      for (let j = 0; j < all.length && !found; j++) {
        const [x, y] = [all[i]!, all[j]!];
        if (i === j || !suited(x) || !isFull(y) || x.row !== y.row * y.extent || x.column !== y.column * y.extent)
          continue;
        if (x.fold !== undefined || y.fold !== undefined || x.sized !== undefined || y.sized !== undefined) continue;
        const end = x.end && ([x.end[0] * y.extent, x.end[1]] as const);
        all[Math.min(i, j)] = { extent: x.extent * y.extent, row: y.row, column: y.column, end };
        all.splice(Math.max(i, j), 1);
        found = true;
      }
    }
  }
  return all;
}

/** Ranges of a sum, or of a part of it, and the positions in both factors. */
export interface SumLoops {
  readonly ranges: readonly Range[];
  readonly row: KNode;
  readonly column: KNode;
}

/** The iteration of the whole loop, from that of a loop without padding. */
function iterationOf(e: Exprs, { from, extent }: Depth, range: KNode): KNode {
  if (from === undefined) return range;
  const at = e.add(range, from);
  assumeBounds(at, 0, extent - 1);
  return at;
}

function position(e: Exprs, loops: readonly Depth[], ranges: readonly KNode[], which: 'row' | 'column'): KNode {
  return loops.reduce<KNode>((sum, d, i) => {
    const at = iterationOf(e, d, ranges[i]!);
    const stride = d.sized?.[which];
    if (stride !== undefined) return e.add(sum, e.mul(at, strideNode(e, stride)));
    return e.add(sum, foldedAt(e, at, d[which], which === 'column' ? d.fold : undefined));
  }, e.i32(0));
}

/** Makes the loops of a sum. */
export function sumLoops(e: Exprs, { kind, loops }: Depths): SumLoops {
  if (kind === 'loops') {
    const ranges = loops.map((d) => rangeOf(e, d));
    return { ranges, row: position(e, loops, ranges, 'row'), column: position(e, loops, ranges, 'column') };
  }
  const k = e.range(
    loops.reduce((n, d) => n * d.extent, 1),
    'reduce',
  );
  const lookUp = (which: 'row' | 'column'): KNode => {
    const step = stepOf(loops, which);
    if (step !== null) return e.mul(k, step);
    const entries = loops.map((d) => e.range(d.extent, 'serial'));
    return e.load(e.stage('shared', position(e, loops, entries, which), entries), k);
  };
  return { ranges: [k], row: lookUp('row'), column: lookUp('column') };
}

/**
 * Makes the loops of a sum whose innermost loop runs over vectors of both factors. What remains is further sums: over narrower vectors, of `least` lanes
 * or more, then over elements.
 */
export function vectorSumLoops(e: Exprs, depths: Depths, lanes: number, least: number): SumLoops[] {
  const { loops } = depths;
  const outer = loops.slice(0, -1);
  const { extent } = loops[loops.length - 1]!;
  const parts: SumLoops[] = [];
  const add = (inner: KNode, own: readonly Range[]): void => {
    const around = outer.map((d) => rangeOf(e, d));
    const all = [...around, inner];
    const at = (which: 'row' | 'column'): KNode => position(e, loops, all, which);
    parts.push({ ranges: [...around, ...own], row: at('row'), column: at('column') });
  };
  let done = 0;
  for (let width = lanes; width >= Math.min(least, lanes); width /= 2) {
    const whole = extent - done - ((extent - done) % width);
    if (whole === 0) continue;
    const { value, ranges } = inChunks(e, whole, width, ['reduce', 'vector']);
    add(e.add(value, done), ranges);
    done += whole;
  }
  if (done < extent) {
    const rest = e.range(extent - done, 'reduce');
    add(e.add(rest, done), [rest]);
  }
  return parts;
}

/**
 * The loops of a sum: merged where both factors walk them as one, ordered, or replaced by one loop over a table.
 */
import type { Exprs } from '../kernel/expr.ts';
import type { Range } from '../kernel/free-ranges.ts';
import type { KNode } from '../kernel/ir.ts';

/** One loop of the sum with the strides both factors walk at. */
export interface Depth {
  readonly extent: number;
  readonly row: number;
  readonly column: number;
  /** Steps of the last part where the loop is split in parts of unequal length; such a loop is not merged. */
  readonly limit?: KNode;
}

/** How the loops of the sum run: nested loops, or one loop whose positions in the columns' factor come from a table. */
export type Depths =
  | { readonly kind: 'loops'; readonly loops: readonly Depth[] }
  | { readonly kind: 'table'; readonly extent: number; readonly row: number; readonly entries: readonly Depth[] };

/** Innermost loops of fewer steps cost more than looking up positions. */
const shortLoop = 32;
const longestTable = 4096;

/** Merges the loops of the sum where both factors walk two of them as one, and orders them, the best one last. */
export function planDepth(loops: readonly Depth[]): Depths {
  const all = merged(loops);
  const reach = (d: Depth): number => Math.abs(d.row) + Math.abs(d.column);
  all.sort((x, y) => reach(y) - reach(x));
  const long = all.filter((d) => d.extent >= 8);
  const inner = long[long.length - 1] ?? all.reduce((best, d) => (d.extent >= best.extent ? d : best), all[0] as Depth);
  if (wantsTable(all) && all.every((d) => d.limit === undefined) && isFlat(all)) {
    const size = all.reduce((n, d) => n * d.extent, 1);
    const entries = [...all].sort((x, y) => Math.abs(y.row) - Math.abs(x.row));
    return { kind: 'table', extent: size, row: (entries[entries.length - 1] as Depth).row, entries };
  }
  return { kind: 'loops', loops: [...all.filter((d) => d !== inner), inner] };
}

/** True if the rows' factor walks all loops of the sum as one, in some order. */
export function isFlat(loops: readonly { readonly extent: number; readonly row: number }[]): boolean {
  const order = [...loops].sort((x, y) => Math.abs(x.row) - Math.abs(y.row));
  let expect = order[0]?.row ?? 0;
  return order.every((d) => {
    const fits = d.row === expect;
    expect *= d.extent;
    return fits;
  });
}

/** True if nested loops over these would be short, and a table of their positions small. */
export function wantsTable(loops: readonly { readonly extent: number }[]): boolean {
  const long = loops.filter((d) => d.extent > 1);
  const size = long.reduce((n, d) => n * d.extent, 1);
  return long.length > 1 && size <= longestTable && long.every((d) => d.extent < shortLoop);
}

function merged(loops: readonly Depth[]): Depth[] {
  const all = loops.filter((d) => d.extent > 1);
  if (all.length === 0) return loops.slice(0, 1);
  for (let found = true; found; ) {
    found = false;
    for (let i = 0; i < all.length && !found; i++) {
      for (let j = 0; j < all.length && !found; j++) {
        const [x, y] = [all[i] as Depth, all[j] as Depth];
        if (
          i === j ||
          x.limit !== undefined ||
          y.limit !== undefined ||
          x.row !== y.row * y.extent ||
          x.column !== y.column * y.extent
        )
          continue;
        all[Math.min(i, j)] = { extent: x.extent * y.extent, row: y.row, column: y.column };
        all.splice(Math.max(i, j), 1);
        found = true;
      }
    }
  }
  return all;
}

/** Ranges of a sum, or of a part of one, and where they are in both factors. */
export interface SumLoops {
  readonly ranges: readonly Range[];
  readonly row: KNode;
  readonly column: KNode;
}

function position(e: Exprs, loops: readonly Depth[], ranges: readonly KNode[], which: 'row' | 'column'): KNode {
  return loops.reduce<KNode>((at, d, i) => e.add(at, e.mul(ranges[i] as KNode, e.i32(d[which]))), e.i32(0));
}

/** Makes the loops of a sum. */
export function sumLoops(e: Exprs, depths: Depths): SumLoops {
  if (depths.kind === 'loops') {
    const ranges = depths.loops.map((d) => e.range(d.extent, 'reduce', d.limit));
    return {
      ranges,
      row: position(e, depths.loops, ranges, 'row'),
      column: position(e, depths.loops, ranges, 'column'),
    };
  }
  const entries = depths.entries.map((d) => e.range(d.extent, 'serial'));
  const table = e.stage('shared', position(e, depths.entries, entries, 'column'), entries);
  const k = e.range(depths.extent, 'reduce');
  return { ranges: [k], row: e.mul(k, e.i32(depths.row)), column: e.load(table, k) };
}

/** Makes the loops of a sum whose innermost loop runs over vectors of both factors; what is left over is a sum of its own. */
export function vectorSumLoops(e: Exprs, depths: Depths, lanes: number): SumLoops[] {
  const loops = depths.kind === 'loops' ? depths.loops : depths.entries;
  const outer = loops.slice(0, -1);
  const { extent } = loops[loops.length - 1] as Depth;
  const parts: SumLoops[] = [];
  const add = (inner: KNode, own: readonly Range[]): void => {
    const around = outer.map((d) => e.range(d.extent, 'reduce', d.limit));
    const all = [...around, inner];
    const at = (which: 'row' | 'column'): KNode => position(e, loops, all, which);
    parts.push({ ranges: [...around, ...own], row: at('row'), column: at('column') });
  };
  const whole = Math.floor(extent / lanes);
  if (whole > 0) {
    const [step, lane] = [e.range(whole, 'reduce'), e.range(lanes, 'vector')];
    add(e.add(e.mul(step, e.i32(lanes)), lane), [step, lane]);
  }
  if (whole * lanes < extent) {
    const rest = e.range(extent - whole * lanes, 'reduce');
    add(e.add(rest, e.i32(whole * lanes)), [rest]);
  }
  return parts;
}

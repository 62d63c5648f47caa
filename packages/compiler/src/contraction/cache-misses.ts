/**
 * Estimates of cache misses: how much slower tiles get because their sum strides over memory (`missPart`), or because lines of
 * their rows share cache sets (`conflictPart`).
 */
import { lineBytes, linesThatStay } from '../codegen/costs/caches.ts';
import { crowdedLines, lookUpPart, overfullLines, type ProductCosts } from '../codegen/costs/cpu.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { Operand } from './access.ts';
import { type Depth, depthOf, lookUps, planDepth } from './depth.ts';
import { collide } from './staging.ts';
import type { Way } from './packing.ts';

/** A factor, and how it is read. */
type Reading = readonly [factor: Operand, way: Way];

/** The fraction by which a tile of `height` rows takes longer because its sum strides over memory. `extent`: steps of each loop of the sum; `cut`: loops of which iterations are left out. */
export function missPart(
  k: readonly Range[],
  extent: (r: Range) => number,
  rows: Reading,
  columns: Reading,
  height: number,
  costs: ProductCosts,
  cut?: ReadonlySet<Range>,
): number {
  const depths = planDepth(
    k.map((r) => ({
      ...depthOf(r, rows[1], columns[1]),
      extent: extent(r),
      ...(cut?.has(r) && { limit: r }),
    })),
  );
  const { loops } = depths;
  const ofRows = missesOf(loops, 'row', rows, height, costs);
  return lookUpPart * lookUps(depths) + ofRows + missesOf(loops, 'column', columns, 1, costs);
}

/** The same for one factor, of which `streams` streams are read side by side. */
function missesOf(
  loops: readonly Depth[],
  which: 'row' | 'column',
  [{ elementBytes }, { apart }]: Reading,
  streams: number,
  { safeLines, stayingLines, worst, line }: ProductCosts,
): number {
  const side = Math.abs(apart) * elementBytes * streams <= lineBytes ? 1 : streams;
  let lines = side;
  let touches = side;
  let safe = safeLines;
  let products = 1;
  [...loops].reverse().forEach((d, i) => {
    const step = Math.abs(d[which]) * elementBytes;
    const own = step >= lineBytes ? d.extent : Math.max(1, (d.extent * step) / lineBytes);
    lines *= own;
    // Consecutive lines are prefetched, best where neighbouring vectors use all of them.
    const ahead = step > 1.25 * lineBytes ? 1 : step >= lineBytes / 4 ? 16 : 4;
    touches *= i > 0 ? d.extent : Math.max(1, own / ahead);
    if (step >= lineBytes && stayingLines !== undefined) {
      if (d.extent > stayingLines(step)) safe = Math.min(safe, stayingLines(step));
    } else if (step >= lineBytes) {
      if (d.extent > linesThatStay(step)) safe = Math.min(safe, overfullLines);
      if (collide(step, 2)) safe = crowdedLines;
    }
    products *= d.extent;
  });
  const far = worst * Math.min(1, touches / products) * Math.min(1, Math.max(0, lines - safe) / (16 * safe));
  if (line === undefined) return far;
  return far + line.cost * (touches / products) * Math.min(1, Math.max(0, lines / line.near - 1));
}

/** The fraction by which tiles of `streams` rows take longer because lines of these share cache sets, or even evict each other at every step. */
export function conflictPart(x: Operand, way: Way, streams: number, depth: number, costs: ProductCosts): number {
  const bytes = Math.abs(way.apart) * x.elementBytes;
  // Neighbouring rows share lines, not sets.
  if (way.kind !== 'inPlace' || depth < 256 || bytes < lineBytes || !collide(bytes, streams)) return 0;
  return costs.collisions(streams, bytes);
}

/**
 * How much slower tiles get because their sum walks all over memory: an estimate of first-level cache misses.
 */
import { safeLines, crowdedLines, overfullLines, worst, lookUpPart } from '../codegen/costs/cpu.ts';
import type { Range } from '../ir/free-ranges.ts';
import { collide, linesThatStay } from './cache-sets.ts';
import { type Depth, lookUps, planDepth } from './depth.ts';

/** How one factor is walked. */
export interface Walk {
  readonly strides: ReadonlyMap<Range, number>;
  /** Streams side by side and their distance in elements. */
  readonly streams: number;
  readonly apart: number;
  readonly elementBytes: number;
}

const lineBytes = 64;

/** The part by which a tile's time grows. */
export function scatterPart(k: readonly Range[], rows: Walk, columns: Walk): number {
  const depths = planDepth(
    k.map((r): Depth => {
      return { extent: r.arg.extent, row: rows.strides.get(r) ?? 0, column: columns.strides.get(r) ?? 0 };
    }),
  );
  const walked = (which: 'row' | 'column', walk: Walk): number => missPart(depths.loops, which, walk);
  return lookUpPart * lookUps(depths) + walked('row', rows) + walked('column', columns);
}

function missPart(loops: readonly Depth[], which: 'row' | 'column', { streams, apart, elementBytes }: Walk): number {
  const side = Math.abs(apart) * elementBytes * streams <= lineBytes ? 1 : streams;
  let lines = side;
  let touches = side;
  let safe = safeLines;
  let products = 1;
  [...loops].reverse().forEach((d, i) => {
    const step = Math.abs(d[which]) * elementBytes;
    const own = step >= lineBytes ? d.extent : Math.max(1, (d.extent * step) / lineBytes);
    lines *= own;
    // Lines one after the other are fetched ahead, best where vectors that lie close use all of them.
    const ahead = step > 1.25 * lineBytes ? 1 : step >= lineBytes / 4 ? 16 : 4;
    touches *= i > 0 ? d.extent : Math.max(1, own / ahead);
    if (step >= lineBytes && d.extent > linesThatStay(step)) safe = Math.min(safe, overfullLines);
    if (step >= lineBytes && collide(step, 2)) safe = crowdedLines;
    products *= d.extent;
  });
  return worst * Math.min(1, touches / products) * Math.min(1, Math.max(0, lines - safe) / (16 * safe));
}

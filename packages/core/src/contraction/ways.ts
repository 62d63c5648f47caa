/**
 * The ways a factor can get to the tiles: read in place, copied over its domain, copied into panels, copied by each group.
 *
 * Here are the possibilities with what a choice between them needs to know; choose.ts takes one for each factor.
 */
import type { Exprs } from '../ir/expr.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { Axis, LinearAccess, Operand } from './access.ts';
import type { Assembly } from './assembly.ts';
import {
  type GroupCopy,
  type TileLayout,
  collide,
  layoutInPlace,
  lineBytes,
  stageDomain,
  stagePanels,
} from './staging.ts';
import type { Segment } from './tiles.ts';

/** One way, and how the sum then walks memory. */
export interface Way {
  /**
   * `domain` and `panels` are copies made before (staging.ts); `local`: each group copies what its tiles of columns need into
   * its own memory, so that every element is copied by one group only.
   */
  readonly kind: 'inPlace' | 'domain' | 'panels' | 'local';
  /** Axes of the copy in order; of panels those around them. */
  readonly outside: readonly Axis[];
  /** Axes inside panels. */
  readonly inside: readonly Axis[];
  /** Nanoseconds of one thread for the copy. */
  readonly copy: number;
  /** Strides of the ranges of the sum. */
  readonly strides: ReadonlyMap<Range, number>;
  /** Streams that a tile reads side by side and their distance in elements; 0: one stream. */
  readonly apart: number;
}

/** Strides of the ranges of some axes stored row-major, the last axis `step` apart. */
function stridesOver(axes: readonly Axis[], step: number): Map<Range, number> {
  const strides = new Map<Range, number>();
  let size = step;
  for (const axis of [...axes].reverse()) {
    for (const m of axis.members) strides.set(m.range, m.step * size);
    size *= axis.extent;
  }
  return strides;
}

function inPlace(x: Operand, along: Range | null): Way[] {
  if (x.access === null) return [];
  const { strides } = x.access;
  const apart = along === null ? 0 : (strides.get(along) ?? 0);
  return [{ kind: 'inPlace', outside: [], inside: [], copy: 0, strides, apart }];
}

/** A copy over the domain with the axis of `innermost` last. */
function domain(x: Operand, along: Range | null, innermost: Range | null): Way {
  const last = innermost === null ? null : x.axisOf(innermost);
  const outside = last === null ? x.axes : [...x.axes.filter((a) => a !== last), last];
  const strides = stridesOver(outside, 1);
  const apart = along === null ? 0 : (strides.get(along) ?? 0);
  return { kind: 'domain', outside, inside: [], copy: x.copyCost(innermost), strides, apart };
}

/** Panels along a range that has an axis for itself: with all axes inside, or with those of the sum alone inside. */
function panels(x: Operand, along: Range | null, width: number): Way[] {
  if (along !== null && !x.isAlone(along)) return [];
  const others = x.axes.filter((a) => along === null || a !== x.axisOf(along));
  const free = (a: Axis): boolean => a.members.every((m) => !x.k.includes(m.range));
  const make = (isInside: (a: Axis) => boolean): Way => {
    const [outside, inside] = [others.filter((a) => !isInside(a)), others.filter(isInside)];
    const depth = inside.reduce((n, a) => n * a.extent, width);
    const strides = new Map([...stridesOver(outside, depth), ...stridesOver(inside, width)]);
    return { kind: 'panels', outside, inside, copy: x.copyCost(along), strides, apart: 0 };
  };
  const all = make((a) => !free(a));
  return others.some((a) => !free(a) && !x.isDeep(a)) ? [all, make((a) => x.isDeep(a))] : [all];
}

/** Ways for the factor that is broadcast, `height` rows at a time. */
export function rowWays(x: Operand, along: Range | null, height: number): Way[] {
  return [...inPlace(x, along), domain(x, along, null), ...panels(x, along, height)];
}

/** Copies that groups make for themselves. */
export interface OwnCopies {
  /** Nanoseconds besides the copying. */
  readonly order: number;
  /** They replace panels copied before. */
  readonly instead: boolean;
}

/** Ways for the factor that is read as vectors along `along`. `local`: null if groups cannot make copies of their own. */
export function columnWays(x: Operand, along: Range, width: number, local: OwnCopies | null): Way[] {
  const unit = x.strideOf(along) === 1 ? inPlace(x, along) : [];
  const ways = local?.instead === true && unit.length > 0 ? [] : panels(x, along, width);
  for (const way of unit) ways.push({ ...way, apart: 0 });
  if (local !== null) {
    let size = width;
    const strides = new Map<Range, number>();
    for (const r of [...x.k].reverse()) {
      strides.set(r, size);
      size *= r.arg.extent;
    }
    for (const way of unit) ways.push({ ...way, kind: 'local', copy: x.size * 0.35 + local.order, strides, apart: 0 });
  }
  // Over a domain the range stays contiguous if it has the unit step of its axis.
  const axis = x.axisOf(along);
  if (x.hasWindows && axis?.members.find((m) => m.range === along)?.step === 1) {
    ways.push({ ...domain(x, along, along), apart: 0 });
  }
  return ways;
}

/** Ways in which elements along a range lie one after another: a shared column, or a range of the sum. */
export function consecutiveWays(x: Operand, along: Range | null, range: Range): Way[] {
  if (x.strideOf(range) === 1) return inPlace(x, along);
  const step = x.axisOf(range)?.members.find((m) => m.range === range)?.step;
  return step === 1 ? [domain(x, along, range)] : [];
}

/** True if tiles of `streams` rows suffer from rows whose lines share cache sets. */
export function streamsCollide(x: Operand, way: Way, streams: number, depth: number): boolean {
  const bytes = Math.abs(way.apart) * x.elementBytes;
  // Rows that lie side by side share lines, not sets.
  return way.kind === 'inPlace' && depth >= 256 && bytes >= lineBytes && collide(bytes, streams);
}

/** Layouts of a factor for the segments of a side, made the chosen way; for `local` the value that groups copy. */
export function layoutsOf(
  assembly: Assembly,
  e: Exprs,
  x: Operand,
  way: Way,
  along: Range | null,
  segments: readonly Segment[],
): readonly (TileLayout | GroupCopy)[] {
  const inPlaceOf = (access: LinearAccess): TileLayout[] => segments.map(() => layoutInPlace(access, along));
  switch (way.kind) {
    case 'inPlace':
      return inPlaceOf(x.access!);
    case 'domain':
      return inPlaceOf(stageDomain(assembly, e, x.value, way.outside));
    case 'panels':
      if (along === null) return inPlaceOf(stageDomain(assembly, e, x.value, [...way.outside, ...way.inside]));
      return stagePanels(assembly, e, x.value, along, segments, way.outside, way.inside);
    case 'local':
      return segments.map(() => ({ copied: x.value }));
    default:
      return way.kind satisfies never;
  }
}

/**
 * Packing strategies (`Way`): a factor is read in place, copied over its domain, copied into panels, or copied by each group.
 *
 * In: an `Operand` and the ranges of its tiles. Out: candidates with their cost and the strides of the sum. choose.ts takes one for
 * each factor; staging.ts makes the copies.
 */
import { copyComputed, copyComputedOther, copyFar, copyOther, copySame, farBytes } from '../codegen/costs/cpu.ts';
import type { Exprs } from '../ir/expr.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { Axis, LinearAccess, Operand, Walk } from './access.ts';
import type { Assembly } from './assembly.ts';
import {
  type CopyInGroup,
  type GroupCopy,
  type Kept,
  layoutInPlace,
  stageDomain,
  stagePanels,
  type TileLayout,
} from './staging.ts';
import type { Segment } from './tiles.ts';

/** One candidate, and how the sum then walks memory. */
export interface Way extends Walk {
  /**
   * `domain` and `panels` are copies made beforehand (staging.ts); `local`: each group copies what its tiles of columns need into
   * group memory, so that only one group copies each element.
   */
  readonly kind: 'inPlace' | 'domain' | 'panels' | 'local';
  /** Axes of the copy in order; for panels those outside. */
  readonly outside: readonly Axis[];
  /** Axes inside panels. */
  readonly inside: readonly Axis[];
  /** Nanoseconds of the copy on one thread. */
  readonly copy: number;
  /** Distance in elements of the streams that a tile reads concurrently; 0: one stream. */
  readonly apart: number;
  /** Of a copy: what it reads at a place; not set: the factor, everywhere. */
  readonly kept?: Kept | undefined;
  /** Set for `local`. */
  readonly inGroup?: CopyInGroup | undefined;
}

/** Nanoseconds for copying a factor's domain with the axis of `innermost` last (null: the order of the original). */
export function copyCost(x: Operand, innermost: Range | null): number {
  const last = x.axes[x.axes.length - 1];
  const same = innermost === null || (last?.members.some((m) => m.range === innermost) ?? false);
  // What does not fit in caches is written to memory and read again.
  const far = x.bytes > farBytes ? copyFar : 0;
  return x.size * (far + (x.access === null ? (same ? copyComputed : copyComputedOther) : same ? copySame : copyOther));
}

/** Strides of the ranges of some axes stored row-major, where elements along the last axis are `step` apart. */
export function stridesOver(axes: readonly Axis[], step: number): Map<Range, number> {
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
  const { strides, sized } = x.access;
  const apart = along === null ? 0 : (strides.get(along) ?? 0);
  return [{ kind: 'inPlace', outside: [], inside: [], copy: 0, strides, sized, apart }];
}

/** A copy over the domain with the axis of `innermost` last. */
export function domain(x: Operand, along: Range | null, innermost: Range | null): Way {
  const last = innermost === null ? null : x.axisOf(innermost);
  const outside = last === null ? x.axes : [...x.axes.filter((a) => a !== last), last];
  const strides = stridesOver(outside, 1);
  const apart = along === null ? 0 : (strides.get(along) ?? 0);
  return { kind: 'domain', outside, inside: [], copy: copyCost(x, innermost), strides, apart };
}

/** Orders of copies in which a processor with known facts walks them without jumps (orders.ts). */
export interface Orders {
  /** The axes inside panels. */
  inside(x: Operand, axes: readonly Axis[]): readonly Axis[];
  /** Further copies over the domain. */
  domains(x: Operand, along: Range | null): readonly Way[];
  /** A copy in which elements along a range lie side by side that it reads with a step; null: none. `tile`: the range of tiles, where that is another one. */
  phased(x: Operand, along: Range, tile: Range | null): Way | null;
}

/** Panels along a range with an axis of its own: with all axes inside, or only those of the sum. */
function panels(x: Operand, along: Range | null, width: number, orders: Orders | undefined): Way[] {
  if (along !== null && !x.isAlone(along)) return [];
  const others = x.axes.filter((a) => along === null || a !== x.axisOf(along));
  const free = (a: Axis): boolean => a.members.every((m) => !x.k.includes(m.range));
  const make = (isInside: (a: Axis) => boolean): Way => {
    const within = others.filter(isInside);
    const outside = others.filter((a) => !isInside(a));
    const inside = orders?.inside(x, within) ?? within;
    const depth = inside.reduce((n, a) => n * a.extent, width);
    const strides = new Map([...stridesOver(outside, depth), ...stridesOver(inside, width)]);
    return { kind: 'panels', outside, inside, copy: copyCost(x, along), strides, apart: 0 };
  };
  const all = make((a) => !free(a));
  return others.some((a) => !free(a) && !x.isDeep(a)) ? [all, make((a) => x.isDeep(a))] : [all];
}

/** Candidates for the factor that is broadcast, `height` rows at a time. */
export function rowWays(x: Operand, along: Range | null, height: number, orders?: Orders): Way[] {
  const copies = [domain(x, along, null), ...(orders?.domains(x, along) ?? [])];
  return [...inPlace(x, along), ...copies, ...panels(x, along, height, orders)];
}

/** How groups make copies for themselves (group-copies.ts): a rare form, without which they are made before. */
export interface GroupCopies {
  /** What is read in place, with such copies of it. `order`: nanoseconds besides the copy itself. */
  of(x: Operand, inPlace: readonly Way[], width: number, order: number): Way[];
}

declare module '../codegen/lowering.ts' {
  interface RareLoops {
    readonly groupCopies: GroupCopies;
  }
}

/** Copies that groups make for themselves. */
export interface OwnCopies {
  readonly copies: GroupCopies;
  /** Nanoseconds besides the copy itself. */
  readonly order: number;
  /** They replace panels copied before. */
  readonly instead: boolean;
}

/** Candidates for the factor that is read as vectors along `along`. `local`: null if groups cannot make copies. */
export function columnWays(x: Operand, along: Range, width: number, local: OwnCopies | null, orders?: Orders): Way[] {
  const unit = x.strideOf(along) === 1 ? inPlace(x, along) : [];
  const ways = local?.instead === true && unit.length > 0 ? [] : panels(x, along, width, orders);
  for (const way of unit) ways.push({ ...way, apart: 0 });
  if (local !== null) ways.push(...local.copies.of(x, unit, width, local.order));
  // Over a domain the range stays contiguous if it has the unit step of its axis.
  const way = alongWindow(x, along, orders);
  if (way !== null) ways.push({ ...way, apart: 0 });
  return ways;
}

/** The copy of a factor with windows whose elements along a range are contiguous, if there is one. */
export function alongWindow(x: Operand, along: Range, orders?: Orders): Way | null {
  const isUnit = x.axisOf(along)?.members.find((m) => m.range === along)?.step === 1;
  if (!x.hasWindows) return null;
  return isUnit ? domain(x, along, along) : (orders?.phased(x, along, null) ?? null);
}

/** Candidates in which elements along a range are contiguous: a shared column, or a range of the sum. */
export function consecutiveWays(x: Operand, along: Range | null, range: Range, orders?: Orders): Way[] {
  if (x.strideOf(range) === 1) return inPlace(x, along);
  const step = x.axisOf(range)?.members.find((m) => m.range === range)?.step;
  const way = step === 1 ? domain(x, along, range) : orders?.phased(x, range, along);
  return way ? [way] : [];
}

/** Layouts of a factor for the segments of a side, made as chosen; for `local` the value that groups copy. */
export function layoutsOf(
  assembly: Assembly,
  e: Exprs,
  x: Operand,
  way: Way,
  along: Range | null,
  segments: readonly Segment[],
): readonly (TileLayout | GroupCopy)[] {
  const inPlaceOf = (access: LinearAccess): TileLayout[] => segments.map(() => layoutInPlace(e, access, along));
  switch (way.kind) {
    case 'inPlace':
      return inPlaceOf(x.access!);
    case 'domain': {
      const room = Math.max(...segments.map(({ width, to }) => width - to));
      const { outside, kept, folds } = way;
      return inPlaceOf({ ...stageDomain(assembly, e, x.value, outside, room, kept), folds });
    }
    case 'panels':
      if (along === null) return inPlaceOf(stageDomain(assembly, e, x.value, [...way.outside, ...way.inside]));
      return stagePanels(assembly, e, x, way, along, segments);
    case 'local':
      return segments.map(() => ({ copied: x.value, copy: way.inGroup! }));
    default:
      return way.kind satisfies never;
  }
}

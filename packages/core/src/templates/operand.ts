/**
 * How a factor gets to the tiles: read in place, copied over its domain, or copied into panels; and what that costs.
 */
import type { Exprs } from '../kernel/expr.ts';
import type { FreeRanges, Range } from '../kernel/free-ranges.ts';
import type { KNode } from '../kernel/ir.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { type Axis, domainOf, type LinearAccess, linearAccess } from './access.ts';
import type { Assembly } from './assembly.ts';
import { isFlat, wantsTable } from './depth.ts';
import { type GroupCopy, layoutInPlace, stageDomain, stagePanels, type TileLayout } from './staging.ts';
import type { Segment } from './tiles.ts';

/**
 * `panels` and `domain` are copies made before (staging.ts); `local`: each group copies what one tile of columns needs into
 * its own memory, which pays where few rows share it and so every element is copied by one group only.
 */
export type Way = 'inPlace' | 'domain' | 'panels' | 'local';

export interface OperandPlan {
  readonly way: Way;
  /** The range whose axis a copy over the domain has innermost; null: the order of the original. */
  readonly innermost: Range | null;
  /** Rough cost in nanoseconds of one thread. */
  readonly cost: number;
}

/** What is known about a factor, found once. */
export class Operand {
  readonly value: KNode;
  readonly access: LinearAccess | null;
  readonly axes: readonly Axis[];
  readonly bytes: number;
  readonly k: readonly Range[];

  constructor(value: KNode, k: readonly Range[], free: FreeRanges) {
    this.value = value;
    this.access = linearAccess(value);
    this.axes = domainOf(value, free);
    this.k = k;
    this.bytes = this.size * dtypeInfo[value.dtype as DType].bytes;
  }

  /** Elements of the domain. */
  get size(): number {
    return this.axes.reduce((n, a) => n * a.extent, 1);
  }

  /** Elements all ranges together would have. */
  get #blown(): number {
    return this.axes.reduce((n, a) => a.members.reduce((x, m) => x * m.range.arg.extent, n), 1);
  }

  axisOf(r: Range): Axis | null {
    return this.axes.find((a) => a.members.some((m) => m.range === r)) ?? null;
  }

  strideOf(r: Range): number | null {
    return this.access === null ? null : (this.access.strides.get(r) ?? 0);
  }

  isAlone(r: Range): boolean {
    return this.axisOf(r)?.members.length === 1;
  }

  /** True if the axis holds no range but those of the sum. */
  isDeep(axis: Axis): boolean {
    return axis.members.every((m) => this.k.includes(m.range));
  }

  get depth(): number {
    return this.axes.filter((a) => this.isDeep(a)).reduce((n, a) => n * a.extent, 1);
  }

  /** Ranges share axes: copying over the domain is much smaller than over all ranges. */
  get hasWindows(): boolean {
    return this.axes.some((a) => a.members.length > 1);
  }

  /** Cost of copying every element once. */
  copyCost(alongFirst: Range | null): number {
    if (this.access === null) return this.size * 1.5;
    const innermost = this.axes[this.axes.length - 1];
    const unit = innermost?.members.some((m) => Math.abs(this.strideOf(m.range) ?? 0) === 1) ?? false;
    const same = alongFirst === null || (innermost?.members.some((m) => m.range === alongFirst) ?? false);
    return this.size * (unit && same ? 0.4 : 1);
  }

  get blowUp(): number {
    return this.#blown / Math.max(1, this.size);
  }
}

const pageBytes = 4096;

/** True if streams this far apart fall into the same cache sets. */
function collide(stride: number, bytes: number, streams: number): boolean {
  for (let i = 1; i < streams; i++) {
    const d = (Math.abs(stride) * bytes * i) % pageBytes;
    if (Math.min(d, pageBytes - d) < 64) return true;
  }
  return false;
}

/**
 * Cheapest way for the factor that is broadcast: single elements, any strides, `height` rows at a time. `reuse`: how often
 * each element is read; `work`: nanoseconds of the whole contraction.
 */
export function planRows(x: Operand, along: Range | null, height: number, reuse: number, work: number): OperandPlan {
  const bytes = dtypeInfo[x.value.dtype as DType].bytes;
  const panels: OperandPlan = { way: 'panels', innermost: null, cost: x.copyCost(along) };
  const domain: OperandPlan = { way: 'domain', innermost: null, cost: x.copyCost(null) };
  const canPanel = along === null || x.isAlone(along);
  if (x.access === null) return x.hasWindows || !canPanel ? domain : panels;
  // A factor that fits the sum into one loop is worth a copy where loops are short.
  const loops = x.k.map((r) => ({ extent: r.arg.extent, row: x.strideOf(r) ?? 0 }));
  if (wantsTable(loops) && !isFlat(loops.filter((d) => d.extent > 1)) && !x.hasWindows && reuse >= 16) {
    return canPanel ? panels : domain;
  }
  if (along === null) return { way: 'inPlace', innermost: null, cost: 0 };
  // In place, rows side by side in memory are streams that must not share cache sets; rows one below the other touch a new
  // line in every step, which only a small factor has all in the first-level cache.
  const stride = x.strideOf(along) ?? 0;
  const slow = deepStep(x) <= 4 ? x.depth >= 256 && collide(stride, bytes, height) : x.bytes > 16384;
  const copy = canPanel ? panels : domain;
  const inPlace: OperandPlan = { way: 'inPlace', innermost: null, cost: slow ? work * 0.7 : 0 };
  return copy.cost < inPlace.cost ? copy : inPlace;
}

/** The smallest step between two products of the sum. */
function deepStep(x: Operand): number {
  const steps = x.k.map((r) => Math.abs(x.strideOf(r) ?? 0)).filter((s) => s > 0);
  return steps.length === 0 ? 0 : Math.min(...steps);
}

/**
 * Cheapest way for the factor that is read as vectors along `along`; null if there is none here. `reuse`: how often each
 * element is read; `local`: a group has memory for a tile's part and all rows share it.
 */
export function planColumns(x: Operand, along: Range, reuse: number, local: boolean): OperandPlan | null {
  const axis = x.axisOf(along);
  if (axis === null) return null;
  const panels: OperandPlan | null = x.isAlone(along)
    ? { way: 'panels', innermost: null, cost: x.copyCost(along) }
    : null;
  if (x.access !== null && x.strideOf(along) === 1) {
    const bytes = dtypeInfo[x.value.dtype as DType].bytes;
    const crowded = x.depth > 8 && collide(deepStep(x), bytes, 2);
    if (x.hasWindows || reuse < 8 || ((reuse < 12 || x.bytes <= 32768) && !crowded))
      return { way: 'inPlace', innermost: null, cost: 0 };
    if (local && reuse <= 128) return { way: 'local', innermost: null, cost: x.size * 0.3 };
  }
  if (panels !== null && !x.hasWindows) return panels;
  // Over a domain the range stays contiguous if it is the window's own unit step.
  const step = axis.members.find((m) => m.range === along)?.step;
  if (step === 1) return { way: 'domain', innermost: along, cost: x.copyCost(null) };
  return panels;
}

/** Cheapest way to have consecutive elements along a range of the sum; null if there is none. */
export function planAlong(x: Operand, k: Range): OperandPlan | null {
  if (x.strideOf(k) === 1) return { way: 'inPlace', innermost: null, cost: 0 };
  const step = x.axisOf(k)?.members.find((m) => m.range === k)?.step;
  return step === 1 ? { way: 'domain', innermost: k, cost: x.copyCost(k) } : null;
}

/** Layouts of a factor for the segments of a side, made the planned way; for `local` the value that groups copy. */
export function stageOperand(
  assembly: Assembly,
  e: Exprs,
  x: Operand,
  plan: OperandPlan,
  along: Range | null,
  segments: readonly Segment[],
): readonly (TileLayout | GroupCopy)[] {
  const inPlace = (access: LinearAccess): TileLayout[] => segments.map(() => layoutInPlace(access, along));
  switch (plan.way) {
    case 'inPlace':
      return inPlace(x.access as LinearAccess);
    case 'domain': {
      const axes = [...x.axes];
      const innermost = plan.innermost === null ? null : x.axisOf(plan.innermost);
      if (innermost !== null) {
        axes.splice(axes.indexOf(innermost), 1);
        axes.push(innermost);
      }
      return inPlace(stageDomain(assembly, e, x.value, axes));
    }
    case 'panels': {
      const others = x.axes.filter((a) => along === null || a !== x.axisOf(along));
      const outer = others.filter((a) => !x.isDeep(a));
      const inner = others.filter((a) => x.isDeep(a));
      if (along === null) return inPlace(stageDomain(assembly, e, x.value, [...outer, ...inner]));
      return stagePanels(assembly, e, x.value, along, segments, outer, inner);
    }
    case 'local':
      return segments.map(() => ({ copied: x.value }));
    default:
      return plan.way satisfies never;
  }
}

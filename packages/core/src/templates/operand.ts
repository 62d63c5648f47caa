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
import { layoutInPlace, stageDomain, stagePanels, type TileLayout } from './staging.ts';
import type { Segment } from './tiles.ts';

export type Way = 'inPlace' | 'domain' | 'panels';

export interface OperandPlan {
  readonly way: Way;
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

/** Cheapest way for the factor that is broadcast: single elements, any strides, `height` rows at a time. */
export function planRows(x: Operand, along: Range | null, height: number, reuse: number): OperandPlan {
  const bytes = dtypeInfo[x.value.dtype as DType].bytes;
  const panels: OperandPlan = { way: 'panels', cost: x.copyCost(along) };
  const domain: OperandPlan = { way: 'domain', cost: x.copyCost(null) };
  const canPanel = along === null || x.isAlone(along);
  if (x.access === null) return x.hasWindows || !canPanel ? domain : panels;
  // A factor that fits the sum into one loop is worth a copy where loops are short.
  const loops = x.k.map((r) => ({ extent: r.arg.extent, row: x.strideOf(r) ?? 0 }));
  if (wantsTable(loops) && !isFlat(loops.filter((d) => d.extent > 1)) && !x.hasWindows && reuse >= 16) {
    return canPanel ? panels : domain;
  }
  if (along === null) return { way: 'inPlace', cost: 0 };
  // Reading in place costs little unless lines collide or every step is on a new line and the whole is large.
  const deep = x.axes.filter((a) => x.isDeep(a));
  const innermost = deep[deep.length - 1];
  const step =
    innermost === undefined ? 0 : Math.min(...innermost.members.map((m) => Math.abs(x.strideOf(m.range) ?? 0)));
  const stride = x.strideOf(along) ?? 0;
  const slow = x.depth >= 256 && (step <= 4 ? collide(stride, bytes, height) : x.bytes > 65536);
  if (!slow || reuse < 16) return { way: 'inPlace', cost: 0 };
  return canPanel ? panels : domain;
}

/** Cheapest way for the factor that is read as vectors along `along`; null if there is none here. */
export function planColumns(x: Operand, along: Range, reuse: number): OperandPlan | null {
  const axis = x.axisOf(along);
  if (axis === null) return null;
  const panels: OperandPlan | null = x.isAlone(along) ? { way: 'panels', cost: x.copyCost(along) } : null;
  if (x.access !== null && x.strideOf(along) === 1 && (x.bytes <= 98304 || reuse < 12))
    return { way: 'inPlace', cost: 0 };
  if (panels !== null && !x.hasWindows) return panels;
  // Over a domain the range stays contiguous if it is the window's own unit step.
  const step = axis.members.find((m) => m.range === along)?.step;
  if (step === 1) return { way: 'domain', cost: x.copyCost(null) };
  return panels;
}

/** Layouts of a factor for the segments of a side, made the planned way. */
export function stageOperand(
  assembly: Assembly,
  e: Exprs,
  x: Operand,
  plan: OperandPlan,
  along: Range | null,
  segments: readonly Segment[],
  unitLast: boolean,
): TileLayout[] {
  const inPlace = (access: LinearAccess): TileLayout[] => segments.map((s) => layoutInPlace(access, along, s));
  switch (plan.way) {
    case 'inPlace':
      return inPlace(x.access as LinearAccess);
    case 'domain': {
      const axes = [...x.axes];
      if (unitLast && along !== null) {
        const axis = x.axisOf(along) as Axis;
        axes.splice(axes.indexOf(axis), 1);
        axes.push(axis);
      }
      const last = axes[axes.length - 1];
      return inPlace(stageDomain(assembly, e, x.value, axes, last === undefined ? 1 : last.extent));
    }
    case 'panels': {
      const others = x.axes.filter((a) => along === null || a !== x.axisOf(along));
      const outer = others.filter((a) => !x.isDeep(a));
      const inner = others.filter((a) => x.isDeep(a));
      if (along === null)
        return inPlace(
          stageDomain(
            assembly,
            e,
            x.value,
            [...outer, ...inner],
            (inner[inner.length - 1] ?? outer[outer.length - 1])?.extent ?? 1,
          ),
        );
      return stagePanels(assembly, e, x.value, along, segments, outer, inner);
    }
    default:
      return plan.way satisfies never;
  }
}

/**
 * How a factor of a contraction reads memory. In: the expression of a factor and the ranges of the sum. Out: `Operand`.
 *
 * `linearAccess`: the factor is one ungated load at a linear position, which tiles can read in place. `domainOf`: the distinct
 * values of a factor. Ranges that occur only as a sum, such as output position + kernel position, share an axis of the domain. So
 * a factor stored over its domain is as large as a padded tensor, not as the product of its ranges (no im2col matrix).
 */
import type { CodegenCaps } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import {
  type FreeRanges,
  indexForms,
  coefficient,
  isSizedEnd,
  type Range,
  type SizedStride,
  sizedStrideOf,
  typicalStride,
} from '../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../ir/ir.ts';
import { type Linear, lowOf, nodesOf } from '../ir/node.ts';
import { linearOf } from '../ir/simplify/integers.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';

/** True if the loop always runs over its whole extent. */
export function isFixed(r: Range): boolean {
  return r.src.length === 0;
}

/** Fewest iterations of a loop. Tile shapes are chosen by it, so that they suit every size at which the loop may end. */
export function leastOf(r: Range): number {
  const [limit] = r.src;
  return limit === undefined ? r.arg.extent : Math.min(r.arg.extent, lowOf(limit));
}

/** How ranges walk memory. */
export interface Walk {
  /** A stride that depends on sizes is 2 at least here, as it is in between. */
  readonly strides: ReadonlyMap<Range, number>;
  /** Strides that depend on sizes, as they are. */
  readonly sized?: ReadonlyMap<Range, SizedStride> | undefined;
  /** Ranges that walk an axis by phases (phases.ts). */
  readonly folds?: ReadonlyMap<Range, Fold> | undefined;
}

/** After `every` iterations, which are a stride apart, those follow that lie `step` further than the first. */
export interface Fold {
  readonly every: number;
  readonly step: number;
}

/** How far a range gets, at an iteration of it. */
export function walked(e: Exprs, { strides, sized, folds }: Walk, r: Range, at: KNode): KNode {
  const stride = sized?.get(r);
  if (stride !== undefined) return e.mul(at, strideNode(e, stride));
  return foldedAt(e, at, strides.get(r) ?? 0, folds?.get(r));
}

/** A stride that depends on sizes. */
export function strideNode(e: Exprs, { number, sizes }: SizedStride): KNode {
  return sizes.reduce((product, size) => e.mul(product, size), e.i32(number));
}

/** The same for a stride and what follows after some of them. */
export function foldedAt(e: Exprs, at: KNode, stride: number, fold: Fold | undefined): KNode {
  if (fold === undefined) return e.mul(at, stride);
  return e.add(e.mul(e.irem(at, fold.every), stride), e.mul(e.idiv(at, fold.every), fold.step));
}

/** Position `offset + sum of strides * ranges` of `memory`. */
export interface LinearAccess extends Walk {
  readonly memory: KNode;
  readonly offset: number;
}

/** The access of a factor that is a plain load from a tensor at a linear position, else null. */
export function linearAccess(value: KNode): LinearAccess | null {
  if (!isPlainLoad(value)) return null;
  const [memory, index] = value.src;
  return linearPosition(memory, index);
}

/** True for a load from a tensor that has no gate. */
function isPlainLoad(value: KNode): value is KNodeOf<'LOAD'> {
  if (value.op !== 'LOAD' || value.src.length !== 2) return false;
  const [memory] = value.src;
  return memory.op === 'PARAM' && memory.arg.access === 'read';
}

/** The same with strides that are numbers times sizes, if the position depends on sizes. */
function sizedAccess(value: KNode, free: FreeRanges, { lowering }: CodegenCaps): LinearAccess | null {
  if (!isPlainLoad(value) || !isSizedEnd(value.src[1])) return null;
  return lowering.rare?.()?.sizedAccess(value, free) ?? null;
}

declare module '../codegen/lowering.ts' {
  interface RareLoops {
    /** sized-products.ts */
    sizedAccess(load: KNodeOf<'LOAD'>, free: FreeRanges): LinearAccess | null;
  }
}

/** The same for any index. */
function linearPosition(memory: KNode, index: KNode): LinearAccess | null {
  const { terms, coefs, offset } = linearOf(index);
  const strides = new Map<Range, number>();
  for (let i = 0; i < terms.length; i++) {
    const t = terms[i]!;
    if (t.op !== 'RANGE') return null;
    strides.set(t, coefs[i]!);
  }
  return { memory, offset, strides };
}

/** One axis of a factor's domain: position `sum of steps * ranges - low`, 0 .. extent-1. */
export interface Axis {
  readonly members: readonly { readonly range: Range; readonly step: number }[];
  readonly low: number;
  readonly extent: number;
  /** Where the axis ends, if that is known only at dispatch; the axis then has one member. */
  readonly end?: KNode | undefined;
}

/**
 * The axes of a factor, outermost in memory first where that can be seen. An axis with several members always has one of
 * step 1 or -1. So every position is a value of the factor with that range alone (`representative`).
 */
function domainOf(value: KNode, free: FreeRanges): Axis[] {
  const forms = indexForms([value]);
  const ranges = [...free.of(value)];
  const groups: Range[][] = [];
  for (const r of ranges) {
    const group = groups.find((g) => overlap(g, r, forms));
    if (group === undefined) groups.push([r]);
    else group.push(r);
  }
  const axes = groups.flatMap((g) => axisOf(g, forms));
  const main = mainLoad(value, free);
  if (main === null) return axes;
  const index = main.src[1]!;
  const form = linearOf(index);
  const reachOf = (r: Range): number => {
    const own = Math.abs(coefficient(form, r));
    const stride = own === 0 ? sizedStrideOf(free, index, r) : null;
    return stride === null || stride.sizes.length === 0 ? own : Math.abs(typicalStride(stride));
  };
  const strideOf = (a: Axis): number => Math.max(...a.members.map((m) => reachOf(m.range)));
  return axes
    .map((axis, i) => ({ axis, i, stride: strideOf(axis) }))
    .sort((x, y) => y.stride - x.stride || x.i - y.i)
    .map((x) => x.axis);
}

/** The axis' member of step 1 or -1, and the value to give it so that the axis is at `position`; the other members are 0. */
export function representative(axis: Axis): { readonly range: Range; readonly step: number } {
  return axis.members.find((m) => Math.abs(m.step) === 1)!;
}

/** The load that depends on most ranges; its memory order is taken as the factor's. */
function mainLoad(value: KNode, free: FreeRanges): KNodeOf<'LOAD'> | null {
  let best: KNodeOf<'LOAD'> | null = null;
  for (const n of nodesOf([value]))
    if (n.op === 'LOAD' && (best === null || free.of(n).length > free.of(best).length)) best = n;
  return best;
}

/** True if `r` always occurs together with the group's ranges, in fixed proportion, and both reach common positions. */
function overlap(group: readonly Range[], r: Range, forms: readonly Linear[]): boolean {
  const first = group[0]!;
  if (!isFixed(first) || !isFixed(r)) return false;
  const ratio = ratioOf(first, r, forms);
  if (ratio === null) return false;
  return group.some((g) => {
    const [p, q] = reduced(ratioOf(g, r, forms)!);
    // When r moves q units, g moves p: the larger step must not skip past the span of the smaller one.
    const [big, small, span] = Math.abs(p) >= Math.abs(q) ? [p, q, r.arg.extent] : [q, p, g.arg.extent];
    return Math.abs(big) <= Math.abs(small) * (span - 1);
  });
}

/** Coefficients of `a` and `b` in one form if all forms have them in the same proportion, else null. */
function ratioOf(a: Range, b: Range, forms: readonly Linear[]): [number, number] | null {
  let ratio: [number, number] | null = null;
  for (const f of forms) {
    const x = coefficient(f, a);
    const y = coefficient(f, b);
    if (x === 0 && y === 0) continue;
    if (x === 0 || y === 0) return null;
    if (ratio === null) ratio = [x, y];
    else if (ratio[0] * y !== ratio[1] * x) return null;
  }
  return ratio;
}

function reduced([x, y]: [number, number]): [number, number] {
  const d = gcd(Math.abs(x), Math.abs(y));
  return [x / d, y / d];
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** The group as one axis, or as an axis per range where no member has step 1. */
function axisOf(group: readonly Range[], forms: readonly Linear[]): Axis[] {
  const single = (r: Range): Axis => {
    return { members: [{ range: r, step: 1 }], low: 0, extent: r.arg.extent, end: r.src[0] };
  };
  if (group.length === 1) return group.map(single);
  const first = group[0]!;
  const relative = group.map((r) => (r === first ? [1, 1] : reduced(ratioOf(first, r, forms)!)) as [number, number]);
  // Steps over the common denominator; relative[i] is [step of first, step of range i].
  const unit = relative.reduce((m, [p]) => (m * Math.abs(p)) / gcd(m, Math.abs(p)), 1);
  const raw = relative.map(([p, q]) => (q * unit) / p);
  const divisor = raw.reduce((d, s) => gcd(d, Math.abs(s)), 0);
  const steps = raw.map((s) => s / divisor);
  if (!steps.some((s) => Math.abs(s) === 1)) return group.map(single);
  let low = 0;
  let high = 0;
  group.forEach((r, i) => {
    const reach = steps[i]! * (r.arg.extent - 1);
    if (reach < 0) low += reach;
    else high += reach;
  });
  const members = group.map((range, i) => ({ range, step: steps[i]! }));
  return [{ members, low, extent: high - low + 1 }];
}

/**
 * What is known about a factor of a contraction: how it reads memory, over which axes, and its size.
 */

export class Operand {
  readonly value: KNode;
  /** Ranges of the sum. */
  readonly k: readonly Range[];
  /** How it reads memory, if it is a plain load; else null. */
  readonly access: LinearAccess | null;
  /** Its domain, outermost in memory first. */
  readonly axes: readonly Axis[];
  /** Elements of the domain. */
  readonly size: number;
  readonly elementBytes: number;

  constructor(value: KNode, k: readonly Range[], free: FreeRanges, caps: CodegenCaps) {
    this.value = value;
    this.k = k;
    this.access = linearAccess(value) ?? sizedAccess(value, free, caps);
    this.axes = domainOf(value, free);
    this.size = this.axes.reduce((n, a) => n * a.extent, 1);
    this.elementBytes = dtypeInfo[value.dtype as DType].bytes;
  }

  get bytes(): number {
    return this.size * this.elementBytes;
  }

  axisOf(r: Range): Axis | null {
    return this.axes.find((a) => a.members.some((m) => m.range === r)) ?? null;
  }

  strideOf(r: Range): number | null {
    return this.access === null ? null : (this.access.strides.get(r) ?? 0);
  }

  /** True if no other range shares the range's axis. */
  isAlone(r: Range): boolean {
    return this.axisOf(r)?.members.length === 1;
  }

  /** True if the axis has only ranges of the sum. */
  isDeep(axis: Axis): boolean {
    return axis.members.every((m) => this.k.includes(m.range));
  }

  /** True if some ranges share an axis: the domain is then smaller than the product of all ranges. */
  get hasWindows(): boolean {
    return this.axes.some((a) => a.members.length > 1);
  }
}

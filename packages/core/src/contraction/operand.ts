/**
 * What is known about a factor of a contraction: how it reads memory, over which axes, how large it is.
 */
import type { FreeRanges, Range } from '../ir/free-ranges.ts';
import type { KNode } from '../ir/ir.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { type Axis, domainOf, type LinearAccess, linearAccess } from './access.ts';

export class Operand {
  readonly value: KNode;
  /** Ranges of the sum. */
  readonly k: readonly Range[];
  /** How it reads memory where it is a plain load, else null. */
  readonly access: LinearAccess | null;
  /** Its domain, outermost in memory first. */
  readonly axes: readonly Axis[];
  /** Elements of the domain. */
  readonly size: number;
  readonly elementBytes: number;

  constructor(value: KNode, k: readonly Range[], free: FreeRanges) {
    this.value = value;
    this.k = k;
    this.access = linearAccess(value);
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

  /** True if the range has an axis for itself. */
  isAlone(r: Range): boolean {
    return this.axisOf(r)?.members.length === 1;
  }

  /** True if the axis holds no range but those of the sum. */
  isDeep(axis: Axis): boolean {
    return axis.members.every((m) => this.k.includes(m.range));
  }

  /** Some ranges share an axis: the domain is smaller than all ranges together. */
  get hasWindows(): boolean {
    return this.axes.some((a) => a.members.length > 1);
  }

  /** Nanoseconds for copying the domain with the axis of `innermost` last (null: the order of the original). */
  copyCost(innermost: Range | null): number {
    const last = this.axes[this.axes.length - 1];
    const same = innermost === null || (last?.members.some((m) => m.range === innermost) ?? false);
    // What does not stay in caches is written to memory and read again.
    const far = this.bytes > 2 ** 20 ? 0.5 : 0;
    return this.size * (far + (this.access === null ? (same ? 0.6 : 1.4) : same ? 0.4 : 0.8));
  }
}

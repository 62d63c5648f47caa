/**
 * Thresholds: from which size on a device is considered, for each family of operations; with the costs they come from.
 *
 * They are measured (calibrate.ts), stored as text, and can be read and set.
 */
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { showAs } from '#shown-as';
import {
  assumedDevice,
  assumedProcessor,
  type CostCurve,
  type EngineCosts,
  kernelCost,
  type OperationFamily,
  operationFamilies,
} from './costs.ts';

/** Costs of the CPU engine and of a device. */
export interface MeasuredCosts {
  readonly cpu: EngineCosts;
  readonly device: EngineCosts;
}

/** Factor on a crossover, so that work does not go back and forth where both engines are equally fast. */
const margin = 1.1;

/** The least size at which the device is faster according to the curves; infinity if there is none. For larger sizes, costs decide. */
export function crossoverOf(cpu: CostCurve, device: CostCurve): number {
  const sizes = [...new Set([...cpu, ...device].map(([size]) => size))].sort((a, b) => a - b);
  const gain = (size: number): number => kernelCost(cpu, size) - kernelCost(device, size);
  const at = sizes.findIndex((size) => gain(size) > 0);
  if (at < 0) return Number.POSITIVE_INFINITY;
  if (at === 0) return sizes[0]!;
  const [a, b] = [sizes[at - 1]!, sizes[at]!];
  const [less, more] = [gain(a), gain(b)];
  // Both curves are linear between two sizes.
  return a + ((b - a) * -less) / (more - less);
}

/**
 * The size from which a device may be used, for each family of operations. Sizes count elements of the result for elementwise work, elements read
 * for reductions, sorts and scans, multiplications for matrix products and convolutions.
 *
 * A threshold says where a device is considered. Whether data is moved there is decided by the costs.
 *
 * @example
 * const thresholds = new AdaptiveThresholds({ product: 1e6 });
 * thresholds.get('product'); // 1000000
 * thresholds.set('elementwise', Infinity); // elementwise work alone never goes to the device
 * thresholds.get('elementwise'); // Infinity
 */
export class AdaptiveThresholds {
  readonly #sizes: Record<OperationFamily, number>;
  /** Costs of work on both: measured by `calibrate()`, else assumed. */
  readonly costs: MeasuredCosts;
  /** True if `calibrate()` measured the costs. */
  readonly measured: boolean;
  readonly #listeners = new Set<() => void>();

  /**
   * @param sizes thresholds of some families; the others are 10 % above the crossing of the costs
   * @param costs measurements; default: assumptions about a typical processor and a typical card
   * @throws ArgumentError for unknown families and impossible sizes
   */
  constructor(sizes: Partial<Readonly<Record<OperationFamily, number>>> = {}, costs?: MeasuredCosts) {
    this.measured = costs !== undefined;
    this.costs = costs ?? { cpu: assumedProcessor, device: assumedDevice };
    const { cpu, device } = this.costs;
    this.#sizes = Object.fromEntries(
      operationFamilies.map((family) => [family, margin * crossoverOf(cpu.families[family], device.families[family])]),
    ) as Record<OperationFamily, number>;
    if (typeof sizes !== 'object' || sizes === null)
      throw new ArgumentError('AdaptiveThresholds', say`not sizes by family: ${shown(sizes)}`);
    for (const [family, size] of Object.entries(sizes))
      if (size !== undefined) this.set(family as OperationFamily, size);
    showAs(this, (self) => self.#sizes);
  }

  /** Calls a function at every `set`, so that earlier decisions are dropped; returns a function that ends this. */
  listen(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => void this.#listeners.delete(changed);
  }

  /** The size from which a family may go to the device; infinity: never. */
  get(family: OperationFamily): number {
    checkFamily('AdaptiveThresholds.get', family);
    return this.#sizes[family];
  }

  /**
   * Sets a threshold.
   *
   * @throws ArgumentError for an unknown family or an impossible size
   */
  set(family: OperationFamily, size: number): void {
    checkFamily('AdaptiveThresholds.set', family);
    if (typeof size !== 'number' || !(size >= 0))
      throw new ArgumentError(
        'AdaptiveThresholds.set',
        say`the size of '${family}' is ${shown(size)}; give a number from 0 on, or Infinity`,
      );
    this.#sizes[family] = size;
    for (const changed of this.#listeners) changed();
  }

  /** All thresholds and costs as text, for `AdaptiveThresholds.parse`. */
  stringify(): string {
    return JSON.stringify({ form: 1, sizes: this.#sizes, costs: this.measured ? this.costs : null }, (_, value) =>
      value === Number.POSITIVE_INFINITY ? 'never' : value,
    );
  }

  /**
   * The inverse of `stringify`; null for any other text.
   *
   * @example
   * const text = new AdaptiveThresholds({ sort: 5000 }).stringify();
   * AdaptiveThresholds.parse(text)?.get('sort'); // 5000
   * AdaptiveThresholds.parse('{}'); // null
   */
  static parse(text: string): AdaptiveThresholds | null {
    try {
      const read = JSON.parse(text, (_, value) => (value === 'never' ? Number.POSITIVE_INFINITY : value));
      if (read?.form !== 1 || !(read.costs === null || (isCosts(read.costs?.cpu) && isCosts(read.costs?.device))))
        return null;
      return new AdaptiveThresholds(read.sizes, read.costs ?? undefined);
    } catch {
      return null;
    }
  }
}

function checkFamily(op: string, family: unknown): void {
  if (!(operationFamilies as readonly unknown[]).includes(family))
    throw new ArgumentError(op, say`no family ${shown(family)}; one of ${operationFamilies.join(', ')}`);
}

const isTime = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value) && value >= 0;

function isCopy(value: unknown): boolean {
  const { latency, perByte } = (value ?? {}) as Record<string, unknown>;
  return isTime(latency) && isTime(perByte);
}

function isCurve(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((p, i) => Array.isArray(p) && p.length === 2 && p.every(isTime) && (i === 0 || p[0] > value[i - 1][0]))
  );
}

function isCosts(value: unknown): boolean {
  const { families, fused, upload, download } = (value ?? {}) as Record<string, unknown>;
  const curves = (families ?? {}) as Record<string, unknown>;
  return operationFamilies.every((f) => isCurve(curves[f])) && isTime(fused) && isCopy(upload) && isCopy(download);
}

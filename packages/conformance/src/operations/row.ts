/** The row of a public operation: all that the suite, the random programs and the table of operations know of it. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { RandomCall } from '../programs/pool.ts';
import type { OpSpec } from '../spec.ts';

export interface OperationRow {
  /** Public function of core. */
  readonly name: string;
  /** What the suite checks: inputs, options, dtypes and orders of derivative, with an oracle in float64. */
  readonly specs: readonly OpSpec[];
  /** How random programs call it: operands that fit, and the formula of what that gives. */
  readonly calls: readonly RandomCall[];
  /** What stands in cells of docs/operations.md that nothing measured fills. */
  readonly notes?: Notes;
}

/** By column; `all`: in every empty one. */
export type Notes = Readonly<
  Partial<Record<'all' | 'dtypes' | 'orders' | 'kernels' | 'goldens' | 'cases' | 'engines', string>>
>;

/** Rows of the same operation with other options become one. */
export function together(rows: readonly OperationRow[]): OperationRow[] {
  const found = new Map<string, OperationRow>();
  for (const row of rows) {
    const before = found.get(row.name);
    found.set(
      row.name,
      before === undefined
        ? row
        : { ...row, ...before, specs: [...before.specs, ...row.specs], calls: [...before.calls, ...row.calls] },
    );
  }
  return [...found.values()];
}

/** Random calls of an operation that has derivatives almost everywhere. */
export const smooth = (...makers: readonly RandomCall['make'][]): RandomCall[] =>
  makers.map((make) => ({ smooth: true, make }));

/** A public function by its name. */
export function functionOf(name: string): (...args: unknown[]) => Tensor {
  return (pg as unknown as Readonly<Record<string, (...args: unknown[]) => Tensor>>)[name] as (
    ...args: unknown[]
  ) => Tensor;
}

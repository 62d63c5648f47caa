/** All rows of the suite `operations`. */
import { elementwiseRows } from './elementwise.ts';
import { layerRows } from './layers.ts';
import { lineRows } from './lines.ts';
import type { OperationRow } from './row.ts';

export const operationRows: readonly OperationRow[] = [...elementwiseRows, ...lineRows, ...layerRows];

const byName: ReadonlyMap<string, OperationRow> = new Map(operationRows.map((row) => [row.name, row]));

/** The row of a name; undefined for a name of another checkout. */
export function rowOf(name: string): OperationRow | undefined {
  return byName.get(name);
}

/** Forms of work that few programs have, which `#rare` gives at once or loads: code that plans can do without, more slowly. */
import { reduceColumns } from '@polygrad/compiler/codegen/linearize/columns';
import { columnsOf } from '@polygrad/compiler/codegen/loops/columns';
import type { Columns } from '@polygrad/compiler/codegen/lowering';
import { splitDilated } from './split-dilated.ts';
import { splitArgReduce } from './split-positions.ts';

export interface RareForms {
  /** Sums of many columns in group memory. */
  readonly columns: Columns;
  readonly splitDilated: typeof splitDilated;
  readonly splitArgReduce: typeof splitArgReduce;
}

export const forms: RareForms = { columns: { of: columnsOf, reduce: reduceColumns }, splitDilated, splitArgReduce };

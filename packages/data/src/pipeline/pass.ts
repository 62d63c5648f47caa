/**
 * What a data set hands out for one epoch: items by number, or items in order.
 *
 * Items by number are kept so by whatever only picks and orders them, so a shuffle never reads what it moves. Rows of columns in memory stay rows of
 * columns, so that a batch of them is a few copies.
 */
import type { HostArray } from '../arrays.ts';
import type { Batch, RowSource } from '../columns.ts';
import { Ahead } from './ahead.ts';

/** Items that are rows of columns: item `index` is row `rowAt(index)`. */
export interface RowsOf {
  readonly source: RowSource;
  rowAt(index: number): number;
}

/** Items of one epoch by number. */
export interface Indexed<T> {
  /** Infinity where the items never end. */
  readonly length: number;
  at(index: number): T | Promise<T>;
  /** Items to ask for side by side. */
  readonly ahead: number;
  readonly rows?: RowsOf | undefined;
}

/** How a data set makes its epochs. */
export type Plan<T> =
  | { readonly length: number; readonly indexed: (epoch: number) => Indexed<T>; readonly items?: undefined }
  | {
      readonly length: number | undefined;
      readonly items: (epoch: number) => AsyncIterable<T>;
      readonly indexed?: undefined;
    };

/** The items of one epoch in order. */
export function itemsOf<T>(plan: Plan<T>, epoch: number): AsyncIterator<T> {
  if (plan.indexed === undefined) return plan.items(epoch)[Symbol.asyncIterator]();
  const items = plan.indexed(epoch);
  let next = 0;
  const ask = async (): Promise<IteratorResult<T, undefined>> =>
    next < items.length ? { done: false, value: await items.at(next++) } : { done: true, value: undefined };
  return new Ahead(ask, items.ahead, async () => {});
}

/** The same items in another order, or fewer of them: item `index` is item `from(index)` of `items`. */
export function reordered<T>(items: Indexed<T>, length: number, from: (index: number) => number): Indexed<T> {
  const { rows, ahead } = items;
  return {
    length,
    ahead,
    at: (index) => items.at(from(index)),
    rows: rows && { source: rows.source, rowAt: (index) => rows.rowAt(from(index)) },
  };
}

/** One row of a batch of one, without the axis of rows. */
function rowOf(batch: Batch): Record<string, HostArray> {
  const entries = Object.entries(batch).map(([name, { dtype, shape, data }]) => [
    name,
    { dtype, shape: shape.slice(1), data },
  ]);
  return Object.fromEntries(entries) as Record<string, HostArray>;
}

/** The rows of columns. */
export function rowsOf(source: RowSource): Indexed<Record<string, HostArray>> {
  return {
    length: source.size,
    ahead: 1,
    at(index) {
      const batch = source.gather(Uint32Array.of(index), 0, 1);
      return batch instanceof Promise ? batch.then(rowOf) : rowOf(batch);
    },
    rows: { source, rowAt: (index) => index },
  };
}

/** Items `first` to `first + count - 1`, `items.ahead` of them at a time. */
export async function several<T>(items: Indexed<T>, first: number, count: number): Promise<T[]> {
  const found = new Array<T>(count);
  let next = 0;
  const take = async (): Promise<void> => {
    while (next < count) {
      const place = next++;
      const item = items.at(first + place);
      found[place] = item instanceof Promise ? await item : item;
    }
  };
  const takers = Array.from({ length: Math.min(items.ahead, count) }, take);
  try {
    await Promise.all(takers);
  } finally {
    // After a failure nothing more is asked for.
    next = count;
  }
  return found;
}

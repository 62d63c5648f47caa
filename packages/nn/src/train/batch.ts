/**
 * Batches as the training loop takes them: host arrays or tensors `x` and `y`, from anything that can be iterated. What
 * `@polygrad/data` gives has this form; so has a plain array of batches.
 */
import { isTensor, type Tensor, tensor } from '@polygrad/core/functions';
import { checkFits, NnError } from '../errors.ts';
import type { StateArray } from '../module/state.ts';

/** One batch: inputs and targets with the same leading extent. */
export interface TrainBatch {
  readonly x: Tensor | StateArray;
  readonly y: Tensor | StateArray;
}

/** Batches of one pass. */
export type BatchSequence = Iterable<TrainBatch> | AsyncIterable<TrainBatch>;

/** A source of passes: `epoch(n)` if it has that, otherwise itself, iterated again for every pass. */
export type BatchSource = BatchSequence & {
  /** Batches in a pass, if known; for progress. */
  readonly length?: number | undefined;
  /** Rows in a pass and in a batch, if known: they tell how many the last batch has. */
  readonly rows?: number | undefined;
  readonly batchSize?: number | undefined;
  epoch?(number: number): BatchSequence;
};

/** Throws unless a source gives passes over batches. */
export function checkSource(op: string, name: string, source: unknown): void {
  const object = typeof source === 'object' && source !== null && !isTensor(source) ? source : {};
  const gives = 'epoch' in object || Symbol.iterator in object || Symbol.asyncIterator in object;
  checkFits(op, name, source, gives, 'a list of batches { x, y }, or an iterable of them');
}

/** The batches of pass `number`. */
export function passOf(source: BatchSource, number: number): BatchSequence {
  return source.epoch === undefined ? source : source.epoch(number);
}

/** Number of batches in a pass, if the source knows. */
export function lengthOf(source: BatchSource): number | undefined {
  return typeof source.length === 'number' && Number.isFinite(source.length) ? source.length : undefined;
}

/** As many first rows of a batch of arrays as the last batch of a pass has. Null unless that is smaller, known, and of two rows at least. */
export function lastOf({ rows, batchSize }: BatchSource, batch: TrainBatch): TrainBatch | null {
  if (!Number.isInteger(rows) || !Number.isInteger(batchSize)) return null;
  const last = rows! % batchSize!;
  const isWhole = (value: TrainBatch['x']): value is StateArray => !isTensor(value) && value?.shape?.[0] === batchSize;
  const { x, y } = batch;
  if (!(last > 1) || !isWhole(x) || !isWhole(y)) return null;
  const first = ({ dtype, shape, data }: StateArray): StateArray => ({
    dtype,
    shape: [last, ...shape.slice(1)],
    data: data.slice(0, (data.length / batchSize!) * last),
  });
  return { x: first(x), y: first(y) };
}

/** A batch on the device. Tensors pass through; arrays are uploaded and belong to the scope that is open. */
export function toDevice(op: string, batch: TrainBatch): { x: Tensor; y: Tensor; rows: number } {
  const put = (name: string, value: Tensor | StateArray): Tensor => {
    if (isTensor(value)) return value;
    checkFits(
      op,
      `${name} of a batch`,
      value,
      Array.isArray(value?.shape),
      'a tensor, or an array with dtype, shape and data, as Dataset.batch makes',
    );
    return tensor(value);
  };
  checkFits(op, 'batch', batch, !Array.isArray(batch), 'an object { x, y }');
  const [x, y] = [put('x', batch?.x), put('y', batch?.y)];
  const rows = x.shape[0];
  if (rows === undefined || rows !== y.shape[0]) {
    throw new NnError(
      op,
      `a batch has x (${x.shape.join(', ')}) and y (${y.shape.join(', ')}); both need the same number of rows first`,
    );
  }
  return { x, y, rows };
}

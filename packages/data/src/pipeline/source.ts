/** Where items come from: lists, columns in memory, anything that can be iterated, streams, and functions that open one of these. */
import type { RowSource } from '../columns.ts';
import { checkFits, DataError, isList } from '../errors.ts';
import { type Plan, rowsOf } from './pass.ts';

/** Items in order: any iterable, and the streams of pages and of Node. */
export type Iterated<T> = Iterable<T> | AsyncIterable<T> | ReadableStream<T>;

/** What a data set can be made from. A function is called at the beginning of every epoch, with its number. */
export type DatasetSource<T> = readonly T[] | RowSource | Iterated<T> | ((epoch: number) => Iterated<T>);

const op = 'Dataset.from';

type Unknown = Partial<Record<PropertyKey, unknown>>;

function isObject(value: unknown): value is Unknown {
  return typeof value === 'object' && value !== null;
}

function isRows(value: unknown): value is RowSource {
  return isObject(value) && typeof value.gather === 'function' && typeof value.size === 'number';
}

const isIterated = (value: unknown): boolean =>
  isObject(value) &&
  (Symbol.asyncIterator in value || Symbol.iterator in value || typeof value.getReader === 'function');

/** The items of a stream of a page; some browsers do not iterate streams. */
async function* itemsOfStream<T>(stream: ReadableStream<T>): AsyncGenerator<T> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
    reader.releaseLock();
  }
}

async function* itemsIn<T>(source: Iterated<T>): AsyncGenerator<T> {
  if ('getReader' in source && typeof source.getReader === 'function') yield* itemsOfStream(source);
  else yield* source as AsyncIterable<T>;
}

/** True for what ends for ever: streams, and iterators that are their own iterables. */
function isReadOnce(source: Unknown): boolean {
  if (typeof source.getReader === 'function' || typeof source.pipe === 'function') return true;
  return typeof source.next === 'function';
}

/** The items of one source, which may be open once only. */
function onceOrMore<T>(source: Iterated<T>): (epoch: number) => AsyncIterable<T> {
  if (!isReadOnce(source as unknown as Unknown)) return () => itemsIn(source);
  let wasRead = false;
  return () => {
    if (wasRead)
      throw new DataError(
        'argument',
        'source',
        `[${op}] the stream was read by an earlier epoch, and a stream is read once; give a function that opens it: Dataset.from(() => open())`,
      );
    wasRead = true;
    return itemsIn(source);
  };
}

/** How epochs are made from a source. @throws DataError `argument` for what is none */
export function planOf<T>(source: DatasetSource<T>): Plan<T> {
  if (typeof source === 'function') {
    const items = (epoch: number): AsyncIterable<T> => {
      const opened: unknown = source(epoch);
      checkFits(op, 'result of the function', opened, isIterated(opened), 'an iterable or a stream');
      return itemsIn(opened as Iterated<T>);
    };
    return { length: undefined, items };
  }
  if (isList(source)) {
    const list = source as readonly T[];
    return {
      length: list.length,
      indexed: () => ({ length: list.length, ahead: 1, at: (index) => list[index]! }),
    };
  }
  if (isRows(source)) {
    checkFits(op, 'size', source.size, Number.isSafeInteger(source.size) && source.size >= 0, 'a number of rows');
    return { length: source.size, indexed: () => rowsOf(source) as never };
  }
  checkFits(
    op,
    'source',
    source,
    isIterated(source),
    'a list, rows of columns, an iterable, a stream, or a function that opens one',
  );
  return { length: undefined, items: onceOrMore(source as Iterated<T>) };
}

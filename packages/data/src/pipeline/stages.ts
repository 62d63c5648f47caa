/** What a data set does with items that only come in order. Each stage is an async generator, which closes what it reads when it is left. */
import { DataError, shown } from '../errors.ts';
import type { RandomStream } from '../random.ts';

/** Items for which a function says so. */
export async function* filtered<T>(
  items: AsyncIterable<T>,
  keeps: (item: T, index: number, epoch: number) => boolean | Promise<boolean>,
  epoch: number,
): AsyncGenerator<T> {
  let index = 0;
  for await (const item of items) if (await keeps(item, index++, epoch)) yield item;
}

/** Groups of `size` items, each made into one. */
export async function* grouped<T, U>(
  items: AsyncIterable<T>,
  size: number,
  dropLast: boolean,
  make: (group: T[]) => U,
): AsyncGenerator<U> {
  let group: T[] = [];
  for await (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield make(group);
    group = [];
  }
  if (group.length > 0 && !dropLast) yield make(group);
}

/**
 * A shuffle of what comes through a buffer: each time a random one of the items in it goes, and the next takes its place. Source: the shuffle of
 * `tf.data`.
 */
export async function* shuffledThrough<T>(
  items: AsyncIterable<T>,
  size: number,
  random: RandomStream,
): AsyncGenerator<T> {
  const buffer: T[] = [];
  for await (const item of items) {
    if (buffer.length < size) {
      buffer.push(item);
      continue;
    }
    const place = random.below(size);
    const chosen = buffer[place]!;
    buffer[place] = item;
    yield chosen;
  }
  for (let left = buffer.length; left > 0; left--) {
    const place = random.below(left);
    const chosen = buffer[place]!;
    buffer[place] = buffer[left - 1]!;
    yield chosen;
  }
}

/** Items `start` to `end - 1`; later ones are not requested. */
export async function* between<T>(items: AsyncIterable<T>, start: number, end: number): AsyncGenerator<T> {
  if (end <= start) return;
  let index = 0;
  for await (const item of items) {
    if (index >= start) yield item;
    if (++index >= end) return;
  }
}

/** Passes one after the other; ends with a pass that had no items, which all others would be too. */
export async function* repeated<T>(pass: (number: number) => AsyncIterable<T>, count: number): AsyncGenerator<T> {
  for (let number = 0; number < count; number++) {
    let any = false;
    for await (const item of pass(number)) {
      any = true;
      yield item;
    }
    if (!any) return;
  }
}

/** The first of each, the second of each ... All but those without end must end together. */
export async function* together(
  sources: readonly AsyncIterator<unknown>[],
  isEndless: readonly boolean[],
): AsyncGenerator<unknown[]> {
  let index = 0;
  try {
    for (;;) {
      const results = await Promise.all(sources.map((source) => source.next()));
      const ended = results.map((result, i) => result.done === true && !isEndless[i]);
      if (ended.some(Boolean)) {
        const longer = results.findIndex((result, i) => result.done !== true && !isEndless[i]);
        if (longer < 0) return;
        const shorter = ended.indexOf(true);
        throw new DataError(
          'mismatch',
          'zip',
          `[zip] data set ${shorter} ended after ${index} items, data set ${longer} goes on; take(${index}) of the longer one`,
        );
      }
      yield results.map(({ value }) => value as unknown);
      index++;
    }
  } finally {
    await Promise.all(sources.map((source) => source.return?.()));
  }
}

/** Where bucketed batches end, and what is done with what is left. */
export interface Buckets<T> {
  readonly length: (item: T) => number;
  /** Lengths below the first are in bucket 0, from there on below the second in bucket 1 ... */
  readonly boundaries: readonly number[];
  readonly sizes: readonly number[];
  readonly dropLast: boolean;
}

/** Groups of items whose lengths are alike, in the order they fill; what is left comes last, short ones first. Source: `bucket_by_sequence_length` of `tf.data`. */
export async function* bucketed<T, U>(
  items: AsyncIterable<T>,
  { length, boundaries, sizes, dropLast }: Buckets<T>,
  make: (group: T[]) => U,
): AsyncGenerator<U> {
  const groups: T[][] = sizes.map(() => []);
  let index = 0;
  for await (const item of items) {
    const size = length(item);
    if (!(typeof size === 'number' && size >= 0))
      throw new DataError(
        'mismatch',
        'length',
        `[bucket] item ${index} has length ${shown(size)}; length must give a number`,
      );
    index++;
    const above = boundaries.findIndex((boundary) => size < boundary);
    const bucket = above < 0 ? boundaries.length : above;
    const group = groups[bucket]!;
    group.push(item);
    if (group.length < sizes[bucket]!) continue;
    groups[bucket] = [];
    yield make(group);
  }
  if (!dropLast) for (const group of groups) if (group.length > 0) yield make(group);
}

/** Data sets against lists: every operation is what the same one does on an array. */
import { createReadStream } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HostArray } from '../arrays.ts';
import { batches } from '../batches.ts';
import { memoryDataset } from '../columns.ts';
import { DataError } from '../errors.ts';
import { Dataset } from './dataset.ts';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
/** The same items by number, and as a stream that does not know its length. */
const both = (items: readonly number[]): Dataset<number>[] => [
  Dataset.from(items),
  Dataset.from(async function* () {
    for (const item of items) {
      await Promise.resolve();
      yield item;
    }
  }),
];
const later = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

it('is made by from, not by new', () => {
  const made = Dataset as unknown as new (rows: unknown) => unknown;
  expect(() => new made([1, 2])).toThrow('[Dataset] plan is a list of 2; it must be made by Dataset.from(rows)');
});

describe('Dataset', () => {
  it('maps, filters, takes, skips and repeats as arrays do', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer(), { maxLength: 20 }),
        fc.nat(25),
        fc.nat(25),
        fc.nat(3),
        async (items, skip, take, times) => {
          const list = items.map((x, i) => x * 2 + i).slice(skip);
          const expected = Array.from({ length: times }, () => list)
            .flat()
            .filter((x) => x % 3 !== 0)
            .slice(0, take); // prettier-ignore
          for (const source of both(items)) {
            const data = source
              .map((x, i) => x * 2 + i)
              .skip(skip)
              .repeat(times)
              .filter((x) => x % 3 !== 0)
              .take(take); // prettier-ignore
            expect(await data.toArray()).toEqual(expected);
          }
        },
      ),
      { seed: 1, numRuns: 60 },
    );
  });

  it('says how many items there are, where that is known', async () => {
    const [list, stream] = both(numbers(10)) as [Dataset<number>, Dataset<number>];
    expect(list.length).toBe(10);
    expect(list.skip(3).take(5).length).toBe(5);
    expect(list.take(99).length).toBe(10);
    expect(list.batch(3).length).toBe(4);
    expect(list.batch(3, { dropLast: true }).length).toBe(3);
    expect(list.repeat(2).length).toBe(20);
    expect(list.repeat().length).toBe(Number.POSITIVE_INFINITY);
    expect(list.repeat(0).length).toBe(0);
    expect(list.filter(() => true).length).toBeUndefined();
    expect([stream.length, stream.batch(2).length, stream.take(3).length]).toEqual([undefined, undefined, undefined]);
    await expect(list.repeat().toArray()).rejects.toThrow(/never end; take/);
  });

  it('runs functions side by side, as many as asked for, and keeps their order', async () => {
    for (const source of both(numbers(20))) {
      let running = 0;
      let most = 0;
      const data = source.map(
        async (x) => {
          most = Math.max(most, ++running);
          for (let turn = 0; turn <= x % 3; turn++) await later();
          running--;
          return x;
        },
        { concurrency: 4 },
      );
      expect(await data.toArray()).toEqual(numbers(20));
      expect(most).toBe(4);
    }
  });

  it('reads rows of a batch side by side too', async () => {
    let running = 0;
    let most = 0;
    const data = Dataset.from(numbers(8)).map(
      async (x) => {
        most = Math.max(most, ++running);
        await later();
        running--;
        return { x };
      },
      { concurrency: 3 },
    );
    const found = await data.batch(8).toArray();
    expect([...found[0]!.x.data]).toEqual(numbers(8));
    expect(most).toBe(3);
  });

  it('makes ready what prefetch says and no more, and ends what it reads', async () => {
    let made = 0;
    let closed = false;
    const data = Dataset.from(async function* () {
      try {
        for (;;) yield made++;
      } finally {
        closed = true;
      }
    }).prefetch(3);
    for await (const item of data) {
      await later();
      expect(made).toBe(item + 4);
      if (item === 4) break;
    }
    await later();
    expect(closed).toBe(true);
  });

  it('passes a failure on at its own item, and ends there', async () => {
    for (const source of both(numbers(10))) {
      const data = source.map(
        (x) => {
          if (x === 3) throw new Error(`item ${x}`);
          return x;
        },
        { concurrency: 4 },
      ); // prettier-ignore
      const iterator = data.epoch(0);
      for (const expected of [0, 1, 2]) expect((await iterator.next()).value).toBe(expected);
      await expect(iterator.next()).rejects.toThrow('item 3');
      expect((await iterator.next()).done).toBe(true);
    }
  });

  it('shuffles every item once, by the seed and the number of the epoch', async () => {
    const data = Dataset.from(numbers(50)).shuffle({ seed: 3 });
    const [first, second] = [await data.toArray(0), await data.toArray(1)];
    expect([...first].sort((a, b) => a - b)).toEqual(numbers(50));
    expect(first).not.toEqual(second);
    expect(await Dataset.from(numbers(50)).shuffle({ seed: 3 }).toArray(1)).toEqual(second);
    expect(await Dataset.from(numbers(50)).shuffle({ seed: 4 }).toArray(0)).not.toEqual(first);
    const fixed = Dataset.from(numbers(50)).shuffle({ seed: 3, eachEpoch: false });
    expect(await fixed.toArray(5)).toEqual(first);
    // The order is the one of `batches`.
    const rows = memoryDataset({ x: { array: { dtype: 'int32', shape: [50], data: Int32Array.from(numbers(50)) } } });
    const found: number[] = [];
    for await (const { x } of batches(rows, { batchSize: 7, shuffle: true, seed: 3 }).epoch(1))
      found.push(...(x.data as Int32Array));
    expect(found).toEqual(second);
  });

  it('shuffles streams through a buffer: every item once, none far too early', async () => {
    const stream = both(numbers(200))[1]!;
    expect(() => stream.shuffle()).toThrow(/does not know its items by number; give a buffer/);
    const found = await stream.shuffle({ buffer: 20, seed: 1 }).toArray(2);
    expect([...found].sort((a, b) => a - b)).toEqual(numbers(200));
    expect(found).not.toEqual(numbers(200));
    found.forEach((item, place) => void expect(item).toBeLessThanOrEqual(place + 20));
    expect(await stream.shuffle({ buffer: 20, seed: 1 }).toArray(2)).toEqual(found);
    expect(await stream.shuffle({ buffer: 20, seed: 1 }).toArray(3)).not.toEqual(found);
  });

  it('shuffles each repetition anew', async () => {
    const data = Dataset.from(numbers(20)).shuffle({ seed: 1 }).repeat(2);
    const found = await data.toArray();
    expect(found.slice(0, 20).sort((a, b) => a - b)).toEqual(numbers(20));
    expect(found.slice(20)).not.toEqual(found.slice(0, 20));
    const endless = Dataset.from(numbers(20)).shuffle({ seed: 1 }).repeat().take(45);
    expect((await endless.toArray(0)).slice(0, 20)).not.toEqual((await endless.toArray(1)).slice(0, 20));
    expect(await endless.prefetch(3).toArray(1)).toEqual(await endless.toArray(1));
  });

  it('zips what is as long, or endless, and refuses the rest', async () => {
    const [list, stream] = both([1, 2, 3]) as [Dataset<number>, Dataset<number>];
    const expected = [
      [1, 'a', 0],
      [2, 'b', 0],
      [3, 'c', 0],
    ];
    const letters = Dataset.from(['a', 'b', 'c']);
    for (const one of [list, stream]) {
      expect(await one.zip(letters, Dataset.from([0]).repeat()).toArray()).toEqual(expected);
    }
    expect(() => list.zip(Dataset.from([1, 2]))).toThrow(/3, 2 items/);
    await expect(stream.zip(Dataset.from([1, 2])).toArray()).rejects.toThrow(/data set 1 ended after 2 items/);
    expect(() => list.zip([1, 2, 3] as never)).toThrow(DataError);
  });

  it('gives epochs 0, 1, 2 as it is iterated, and any by its number', async () => {
    const data = Dataset.from((epoch: number) => [epoch, epoch * 10]);
    const found: number[][] = [];
    for (let i = 0; i < 3; i++) {
      const pass: number[] = [];
      for await (const item of data) pass.push(item);
      found.push(pass);
    }
    expect(found).toEqual([
      [0, 0],
      [1, 10],
      [2, 20],
    ]);
    expect(await data.toArray(7)).toEqual([7, 70]);
    expect(await data.map((x, i, epoch) => x + i + epoch).toArray(2)).toEqual([4, 23]);
  });

  it('reads streams once, and says so the second time', async () => {
    const stream = new ReadableStream<number>({
      start(controller) {
        controller.enqueue(1);
        controller.enqueue(2);
        controller.close();
      },
    });
    const data = Dataset.from(stream);
    expect(await data.toArray()).toEqual([1, 2]);
    await expect(data.toArray()).rejects.toThrow(/read by an earlier epoch/);
    const file = Dataset.from<Uint8Array>(createReadStream(import.meta.filename));
    expect((await file.toArray()).length).toBeGreaterThan(0);
    await expect(file.toArray()).rejects.toThrow(/give a function/);
    const generator = Dataset.from(numbers(3)[Symbol.iterator]());
    expect(await generator.toArray()).toEqual([0, 1, 2]);
    await expect(generator.toArray()).rejects.toThrow(DataError);
  });

  it('batches rows of columns as `batches` does, in a few copies', async () => {
    const data = Float32Array.from({ length: 20 }, (_, i) => i);
    let calls = 0;
    const memory = memoryDataset({ x: { array: { dtype: 'float32', shape: [10, 2], data } } });
    const rows: typeof memory = {
      ...memory,
      gather(...args) {
        calls++;
        return memory.gather(...args);
      },
    };
    const found = await Dataset.from(rows).shuffle({ seed: 2 }).skip(1).batch(4).toArray(0);
    expect(calls).toBe(3);
    expect(found.map(({ x }) => x.shape)).toEqual([
      [4, 2],
      [4, 2],
      [1, 2],
    ]);
    const mapped = Dataset.from(rows)
      .shuffle({ seed: 2 })
      .skip(1)
      .map(({ x }) => ({ x }))
      .batch(4); // prettier-ignore
    expect(await mapped.toArray(0)).toEqual(found);
    expect((await Dataset.from(rows).toArray())[3]).toEqual({
      x: { dtype: 'float32', shape: [2], data: Float32Array.of(6, 7) },
    });
  });

  it('groups items of like length', async () => {
    const lengths = [1, 9, 2, 8, 3, 7, 30, 4];
    const rows = Dataset.from(lengths).map((length) => ({ x: new Int32Array(length).fill(length) }));
    const options = { length: ({ x }: { x: Int32Array }) => x.length, boundaries: [5, 20], batchSize: [3, 2, 1] };
    const found = await rows.bucket({ ...options, pad: { x: { value: -1, multipleOf: 4, lengths: 'n' } } }).toArray();
    const shown = found.map((batch) => [batch.x.shape, [...(batch as unknown as { n: HostArray }).n.data].join()]);
    expect(shown).toEqual([
      [[2, 12], '9,8'],
      [[3, 4], '1,2,3'],
      [[1, 32], '30'],
      [[1, 4], '4'],
      [[1, 8], '7'],
    ]);
    expect((await rows.bucket({ ...options, pad: { x: 0 }, dropLast: true }).toArray()).length).toBe(3);
    expect(() => rows.bucket({ ...options, boundaries: [5, 5] })).toThrow(/ascending/);
    expect(() => rows.bucket({ ...options, batchSize: [1] })).toThrow(/1 sizes for 3 buckets/);
  });
});

describe('parts', () => {
  it('splits by fractions and numbers: every item once, sizes as said', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.nat(5), async (size, seed) => {
        const parts = Dataset.from(numbers(size)).split([0.7, 0.2, 0.1], { seed });
        const found = (await Promise.all(parts.map((part) => part.toArray()))).flat();
        expect(found.sort((a, b) => a - b)).toEqual(numbers(size));
        parts.forEach((part, i) => void expect(Math.abs(part.length! - [0.7, 0.2, 0.1][i]! * size)).toBeLessThan(1));
      }),
      { seed: 1, numRuns: 50 },
    );
    expect(
      Dataset.from(numbers(10))
        .split([7, 3])
        .map(({ length }) => length),
    ).toEqual([7, 3]); // prettier-ignore
    expect(() => Dataset.from(numbers(10)).split([0.5, 0.4])).toThrow(/add up to 0.9/);
    expect(() =>
      Dataset.from(numbers(10))
        .filter(() => true)
        .split([1]),
    ).toThrow(/does not know its items/); // prettier-ignore
  });

  it('makes folds of the sizes of scikit-learn, and each item is validated once', async () => {
    // sklearn.model_selection.KFold: the first n % k folds have one more.
    for (const [size, count] of [
      [10, 3],
      [7, 7],
      [23, 5],
    ] as const) {
      for (const seed of [undefined, 1]) {
        const folds = Dataset.from(numbers(size)).folds(count, seed === undefined ? {} : { seed });
        const validated: number[] = [];
        for (const [fold, { train, validation }] of folds.entries()) {
          const [a, b] = [await train.toArray(), await validation.toArray()];
          expect(b.length).toBe(Math.floor(size / count) + (fold < size % count ? 1 : 0));
          expect([...a, ...b].sort((x, y) => x - y)).toEqual(numbers(size));
          validated.push(...b);
        }
        if (seed === undefined) expect(validated).toEqual(numbers(size));
        expect(validated.sort((x, y) => x - y)).toEqual(numbers(size));
      }
    }
    expect(() => Dataset.from([1, 2]).folds(3)).toThrow(/count is 3/);
  });

  it('gives each part its share of every class', async () => {
    const labels = numbers(90).map((i) => (i % 9 === 0 ? 'rare' : i % 2 ? 'odd' : 'even'));
    const parts = Dataset.from(numbers(90)).split([2 / 3, 1 / 3], { seed: 5, stratify: labels });
    for (const [part, share] of [
      [parts[0]!, 2 / 3],
      [parts[1]!, 1 / 3],
    ] as const) {
      const found = await part.toArray();
      expect(found.length).toBe(90 * share);
      for (const name of ['rare', 'odd', 'even']) {
        const all = labels.filter((label) => label === name).length;
        const here = found.filter((i) => labels[i] === name).length;
        expect(Math.abs(here - all * share)).toBeLessThanOrEqual(1);
      }
    }
    for (const { validation } of Dataset.from(numbers(90)).folds(5, { stratify: labels })) {
      const found = await validation.toArray();
      expect(found.filter((i) => labels[i] === 'rare').length).toBe(2);
    }
    expect(() => Dataset.from([1, 2]).split([1, 1], { stratify: ['a'] })).toThrow(/list of 2 classes/);
  });
});

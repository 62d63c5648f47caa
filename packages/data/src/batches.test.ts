import { describe, expect, it } from 'vitest';
import { batches } from './batches.ts';
import { type Batch, type RowSource, memoryDataset, subset } from './columns.ts';
import { DataError } from './errors.ts';

/** Rows 0 .. size - 1, each holding its own number twice. */
function numbered(size: number): RowSource<'row'> {
  const data = Float32Array.from({ length: size * 2 }, (_, index) => index >> 1);
  return memoryDataset({ row: { array: { dtype: 'float32', shape: [size, 2], data } } });
}

async function collect(source: AsyncIterable<Batch<'row'>>): Promise<number[][]> {
  const found: number[][] = [];
  for await (const { row } of source) {
    expect(row.shape).toEqual([row.data.length / 2, 2]);
    found.push(Array.from(row.data as Float32Array).filter((_, index) => index % 2 === 0));
  }
  return found;
}

describe('batches', () => {
  it('keeps the order of rows and ends with a partial batch', async () => {
    const loader = batches(numbered(7), { batchSize: 3 });
    expect(loader.length).toBe(3);
    expect(loader.rows).toBe(7);
    expect(await collect(loader)).toEqual([[0, 1, 2], [3, 4, 5], [6]]);
  });

  it('drops the partial batch if asked, and none if there is none', async () => {
    const dropped = batches(numbered(7), { batchSize: 3, dropLast: true });
    expect([dropped.length, dropped.rows]).toEqual([2, 6]);
    expect(await collect(dropped)).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    expect(batches(numbered(6), { batchSize: 3, dropLast: true }).length).toBe(2);
    expect(await collect(batches(numbered(2), { batchSize: 3, dropLast: true }))).toEqual([]);
  });

  it('gives one batch where all rows fit in one, and none of an empty set', async () => {
    expect(await collect(batches(numbered(2), { batchSize: 5 }))).toEqual([[0, 1]]);
    expect(await collect(batches(numbered(0), { batchSize: 5 }))).toEqual([]);
  });

  it('shuffles every row once, anew each epoch, the same for the same seed', async () => {
    const options = { batchSize: 16, shuffle: true, seed: 9 };
    const loader = batches(numbered(100), options);
    const first = (await collect(loader)).flat();
    const second = (await collect(loader)).flat();
    expect([...first].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, row) => row));
    expect(second).not.toEqual(first);
    const again = batches(numbered(100), options);
    expect((await collect(again.epoch(1))).flat()).toEqual(second);
    expect((await collect(again.epoch(0))).flat()).toEqual(first);
    expect((await collect(again)).flat()).toEqual(first);
    expect((await collect(batches(numbered(100), { ...options, seed: 10 }))).flat()).not.toEqual(first);
  });

  it('gives the same batches whatever is prefetched', async () => {
    const expected = await collect(batches(numbered(50), { batchSize: 8, shuffle: true, prefetch: 0 }));
    for (const prefetch of [1, 3, 100]) {
      expect(await collect(batches(numbered(50), { batchSize: 8, shuffle: true, prefetch }))).toEqual(expected);
    }
  });

  it('makes ready as many batches as prefetch says, and no more', async () => {
    const inner = numbered(100);
    let made = 0;
    const counting: RowSource<'row'> = {
      ...inner,
      gather: async (order, start, end) => {
        made++;
        return inner.gather(order, start, end);
      },
    };
    const iterator = batches(counting, { batchSize: 1, prefetch: 4 }).epoch(0);
    expect(made).toBe(0);
    await iterator.next();
    expect(made).toBe(5);
    await iterator.next();
    expect(made).toBe(6);
    const lazy = batches(counting, { batchSize: 1, prefetch: 0 }).epoch(0);
    made = 0;
    await lazy.next();
    expect(made).toBe(1);
  });

  it('passes a failure on at its own batch, and ends there', async () => {
    const inner = numbered(10);
    const failing: RowSource<'row'> = {
      ...inner,
      gather: async (order, start, end) => {
        if (start >= 4) throw new Error(`row ${start}`);
        return inner.gather(order, start, end);
      },
    };
    const iterator = batches(failing, { batchSize: 2, prefetch: 3 }).epoch(0);
    expect((await iterator.next()).done).toBe(false);
    expect((await iterator.next()).done).toBe(false);
    await expect(iterator.next()).rejects.toThrow('row 4');
    expect((await iterator.next()).done).toBe(true);
  });

  it('stops when its loop is left', async () => {
    const loader = batches(numbered(10), { batchSize: 2, prefetch: 2 });
    const iterator = loader.epoch(0);
    for await (const _ of iterator) break;
    expect((await iterator.next()).done).toBe(true);
  });

  it('answers overlapping calls of next in order', async () => {
    const iterator = batches(numbered(3), { batchSize: 1 }).epoch(0);
    const results = await Promise.all([iterator.next(), iterator.next(), iterator.next(), iterator.next()]);
    expect(results.map(({ value }) => value?.row.data[0])).toEqual([0, 1, 2, undefined]);
  });

  it('fills arrays again if asked, never one that is still in use', async () => {
    const expected = (await collect(batches(numbered(50), { batchSize: 8, shuffle: true }))).flat();
    for (const prefetch of [0, 1, 3]) {
      const loader = batches(numbered(50), { batchSize: 8, shuffle: true, prefetch, reuse: true });
      const arrays = new Set<unknown>();
      const found: number[] = [];
      for await (const { row } of loader) {
        await Promise.resolve();
        arrays.add(row.data);
        found.push(...Array.from(row.data as Float32Array).filter((_, index) => index % 2 === 0));
      }
      expect(found).toEqual(expected);
      // Seven batches: the last one is smaller and has an array of its own.
      expect(arrays.size).toBe(prefetch + 2);
    }
  });

  it('refuses sizes that are none', () => {
    for (const batchSize of [0, -1, 1.5, Number.NaN]) {
      expect(() => batches(numbered(3), { batchSize })).toThrow(DataError);
    }
    expect(() => batches(numbered(3), { batchSize: 1, prefetch: -1 })).toThrow(/prefetch is -1/);
    expect(() => batches(numbered(3), { batchSize: 1, seed: 0.5 })).toThrow(/seed is 0.5/);
  });
});

describe('memoryDataset', () => {
  it('scales bytes as told', () => {
    const array = { dtype: 'uint8', shape: [2, 2], data: new Uint8Array([0, 255, 51, 102]) } as const;
    const data = memoryDataset({ x: { array, as: 'float32', mean: 0.5, std: 0.25 } });
    const { x } = data.gather(new Uint32Array([1, 0]), 0, 2);
    expect(Array.from(x.data as Float32Array)).toEqual(
      Array.from(new Float32Array([(0.2 - 0.5) / 0.25, (0.4 - 0.5) / 0.25, -2, 2])),
    );
    expect(x.dtype).toBe('float32');
  });

  it('scales large columns, aligned and not, to the same values', () => {
    const size = 70_000;
    const bytes = new Uint8Array(size + 1).map((_, index) => (index * 31) ^ (index >> 8));
    for (const offset of [0, 1]) {
      const data = bytes.subarray(offset, offset + size);
      const array = { dtype: 'uint8', shape: [size / 4, 4], data } as const;
      const { x } = memoryDataset({ x: { array, as: 'float32', mean: 0.1, std: 0.3 } }).gather(
        new Uint32Array(size / 4).map((_, row) => size / 4 - 1 - row),
        0,
        size / 4,
      );
      const expected = new Float32Array(size);
      for (let index = 0; index < size; index++) {
        const row = size / 4 - 1 - (index >> 2);
        expected[index] = (data[4 * row + (index & 3)]! / 255 - 0.1) / 0.3;
      }
      expect(x.data).toEqual(expected);
    }
  });

  it('delivers labels as int32 and other columns as they are', () => {
    const data = memoryDataset({
      y: { array: { dtype: 'uint8', shape: [3], data: new Uint8Array([3, 200, 5]) }, as: 'int32' },
      z: { array: { dtype: 'int64', shape: [3, 1], data: new BigInt64Array([1n, -2n, 3n]) } },
    });
    const { y, z } = data.gather(new Uint32Array([2, 1, 0, 1]), 1, 4);
    expect([y.dtype, [...(y.data as Int32Array)]]).toEqual(['int32', [200, 3, 200]]);
    expect([z.dtype, z.shape, [...(z.data as BigInt64Array)]]).toEqual(['int64', [3, 1], [-2n, 1n, -2n]]);
  });

  it('refuses columns that do not fit together', () => {
    const bytes = (...shape: number[]) => ({ dtype: 'uint8', shape, data: new Uint8Array(6) }) as const;
    expect(() => memoryDataset({})).toThrow(DataError);
    expect(() => memoryDataset({ a: { array: bytes(6) }, b: { array: bytes(3, 2) } })).toThrow(/'b' has 3 rows.*'a' 6/);
    expect(() => memoryDataset({ a: { array: bytes(4) } })).toThrow(/4 elements, the data 6/);
    expect(() => memoryDataset({ a: { array: { ...bytes(), data: new Uint8Array(1) } } })).toThrow(/no axis of rows/);
    for (const column of [
      [[1, 2]],
      undefined,
      { array: [1, 2] },
      { array: { dtype: 'float', shape: [1], data: new Float32Array(1) } },
    ])
      expect(() => memoryDataset({ a: column as never })).toThrow(/column 'a' holds no array; give \{ array/);
    expect(() => memoryDataset({ a: { array: bytes(6), as: 'float32', std: 0 } })).toThrow(/std is 0/);
  });
});

describe('subset', () => {
  it('takes rows of the middle, shuffled or not', async () => {
    const part = subset(numbered(10), 4, 8);
    expect((await collect(batches(part, { batchSize: 3 }))).flat()).toEqual([4, 5, 6, 7]);
    const shuffled = (await collect(batches(part, { batchSize: 3, shuffle: true }))).flat();
    expect(shuffled.sort()).toEqual([4, 5, 6, 7]);
    expect((await collect(batches(subset(part, 1, 3), { batchSize: 3 }))).flat()).toEqual([5, 6]);
  });

  it('refuses ranges beyond the rows', () => {
    for (const [start, end] of [
      [0, 11],
      [-1, 3],
      [5, 4],
      [0.5, 2],
    ]) {
      expect(() => subset(numbered(10), start!, end!)).toThrow(DataError);
    }
  });
});

it('refuses options that nobody reads, and values of another type', () => {
  const data = memoryDataset({ x: { array: { data: new Uint8Array(4), shape: [4], dtype: 'uint8' }, as: 'float32' } });
  expect(() => batches(data, { batch: 2 } as never)).toThrow(
    /\[batches\] no option 'batch'; known are batchSize, shuffle/,
  );
  expect(() => batches(data, { batchSize: 2, shuffle: 'yes' as never })).toThrow(
    /shuffle is 'yes'; it must be a boolean/,
  );
  expect(() => batches(data, null as never)).toThrow(/\[batches\] bad options: null; must be an object/);
});

/** Rows into batches: dtypes, shapes, padding, and what does not go together. */
import { describe, expect, it } from 'vitest';
import { DataError } from '../errors.ts';
import { Dataset } from './dataset.ts';

const one = async (rows: readonly unknown[], options = {}): Promise<unknown> =>
  (await Dataset.from(rows).batch(rows.length, options).toArray())[0];

describe('batch', () => {
  it('says of tensors how their numbers are had', async () => {
    const handle = Object.create({ [Symbol.for('polygrad.tensor')]: true }) as object;
    await expect(one([{ x: handle }])).rejects.toThrow(
      "'x' is a Tensor; columns hold arrays, numbers or text, as await t.array() gives them",
    );
  });

  it('makes arrays of numbers, lists, typed arrays, and lists of texts', async () => {
    const rows = [
      { a: 1, b: true, c: 3n, d: [1, 2], e: new Int8Array([1]), f: 'x', g: [[1], [2]] },
      { a: 2.5, b: false, c: -4n, d: [3, 4], e: new Int8Array([-2]), f: 'y', g: [[3], [4]] },
    ];
    expect(await one(rows)).toEqual({
      a: { dtype: 'float32', shape: [2], data: Float32Array.of(1, 2.5) },
      b: { dtype: 'bool', shape: [2], data: Uint8Array.of(1, 0) },
      c: { dtype: 'int64', shape: [2], data: BigInt64Array.of(3n, -4n) },
      d: { dtype: 'float32', shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) },
      e: { dtype: 'int8', shape: [2, 1], data: Int8Array.of(1, -2) },
      f: ['x', 'y'],
      g: { dtype: 'float32', shape: [2, 2, 1], data: Float32Array.of(1, 2, 3, 4) },
    });
    expect(await one([1, 2])).toEqual({ dtype: 'float32', shape: [2], data: Float32Array.of(1, 2) });
    expect(
      await one([
        [1, 'a'],
        [2, 'b'],
      ]),
    ).toEqual([{ dtype: 'float32', shape: [2], data: Float32Array.of(1, 2) }, ['a', 'b']]); // prettier-ignore
  });

  it('takes the dtypes that are said, where they hold the values', async () => {
    const rows = [{ y: 3 }, { y: -1 }];
    expect(await one(rows, { dtypes: { y: 'int32' } })).toEqual({
      y: { dtype: 'int32', shape: [2], data: Int32Array.of(3, -1) },
    });
    expect(await one(rows, { dtypes: { y: 'int64' } })).toEqual({
      y: { dtype: 'int64', shape: [2], data: BigInt64Array.of(3n, -1n) },
    });
    await expect(one(rows, { dtypes: { y: 'uint8' } })).rejects.toThrow(
      /row 1 of the batch, 'y' holds -1, which uint8 does not/,
    );
    await expect(one([{ y: 0.5 }], { dtypes: { y: 'int32' } })).rejects.toThrow(/holds 0.5/);
    await expect(one(rows, { dtypes: { y: 'int' } })).rejects.toThrow(/dtype of 'y' is 'int'/);
    await expect(one(rows, { dtypes: { y: 'float16' } })).rejects.toThrow(/do that on the device/);
  });

  it('pads rows along their first axis', async () => {
    const rows = [{ x: new Int32Array([1, 2, 3]) }, { x: new Int32Array([4]) }];
    expect(await one(rows, { pad: { x: 9 } })).toEqual({
      x: { dtype: 'int32', shape: [2, 3], data: Int32Array.of(1, 2, 3, 4, 9, 9) },
    });
    const padded = (await one(rows, { pad: { x: { to: 4, value: -1, lengths: 'n' } } })) as Record<string, unknown>;
    expect(padded).toEqual({
      x: { dtype: 'int32', shape: [2, 4], data: Int32Array.of(1, 2, 3, -1, 4, -1, -1, -1) },
      n: { dtype: 'int32', shape: [2], data: Int32Array.of(3, 1) },
    });
    expect(((await one(rows, { pad: { x: { multipleOf: 8 } } })) as { x: { shape: number[] } }).x.shape).toEqual([
      2, 8,
    ]);
    await expect(one(rows, { pad: { x: { to: 2 } } })).rejects.toThrow(/has length 3, and pad says 2/);
    await expect(one(rows, { pad: { x: 0.5 } })).rejects.toThrow(/holds 0.5, which int32 does not/);
  });

  it('says which row does not fit', async () => {
    await expect(one([{ x: [1, 2] }, { x: [1] }])).rejects.toThrow(
      /row 1 of the batch, 'x' has shape \(1\), row 0 \(2\); pad them/,
    );
    await expect(one([{ x: 1 }, { y: 1 }])).rejects.toThrow(/row 1 of the batch, 'x' is missing/);
    await expect(one([{ x: new Int8Array(1) }, { x: new Uint8Array(1) }])).rejects.toThrow(
      /is uint8, row 0 int8; set dtypes/,
    );
    await expect(one([{ x: [[1], [2, 3]] }])).rejects.toThrow(/differ in length or depth/);
    await expect(one([{ x: null }])).rejects.toThrow(/is null; columns hold/);
    await expect(one([{ x: 'a' }, { x: 1 }])).rejects.toThrow(/is 1, row 0 is text/);
    await expect(one([new Date()])).rejects.toThrow(DataError);
    expect(() => Dataset.from([1]).batch(0)).toThrow(/size is 0/);
    expect(() => Dataset.from([1]).batch(1, { drop: true } as never)).toThrow(/no option 'drop'/);
  });
});

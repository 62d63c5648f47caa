/** Scalars of every dtype as the bytes a kernel finds. */
import { expect, it } from 'vitest';
import { CommandBuffer } from './command-buffer.ts';

it('writes scalars in their own type at the start of a cell', () => {
  const encoded = new CommandBuffer();
  const at = encoded.dispatch(5, 12, null);
  const view = (): DataView => new DataView(encoded.bytes.buffer);
  const put = (i: number, dtype: Parameters<CommandBuffer['scalar']>[1], value: number | bigint): number => {
    encoded.scalar(at + i, dtype, value);
    return (at + i) * 8;
  };
  expect(view().getFloat32(put(0, 'float32', 1.5), true)).toBe(1.5);
  expect(view().getFloat64(put(1, 'float64', Math.PI), true)).toBe(Math.PI);
  expect(view().getInt32(put(2, 'int32', -7), true)).toBe(-7);
  expect(view().getUint32(put(3, 'uint32', 0xfffffff0), true)).toBe(0xfffffff0);
  expect(view().getBigInt64(put(4, 'int64', -(2n ** 63n)), true)).toBe(-(2n ** 63n));
  expect(view().getBigUint64(put(5, 'uint64', 2n ** 64n - 1n), true)).toBe(2n ** 64n - 1n);
  expect(view().getUint8(put(6, 'bool', 1))).toBe(1);
  expect(view().getInt8(put(7, 'int8', -128))).toBe(-128);
  expect(view().getUint16(put(8, 'uint16', 65535), true)).toBe(65535);
  encoded.offset(at + 9, 2 ** 33 + 5);
  expect(view().getBigUint64((at + 9) * 8, true)).toBe(2n ** 33n + 5n);
});

it('keeps a batch whole when it grows', () => {
  const encoded = new CommandBuffer();
  for (let i = 0; i < 1000; i++) encoded.fill(i, 4, 8, -1);
  const cells = new Float64Array(encoded.bytes.buffer);
  expect(encoded.count).toBe(6000);
  expect([...cells.subarray(5994, 6000)]).toEqual([3, 6, 999, 4, 8, 0xffffffff]);
  expect([...cells.subarray(0, 6)]).toEqual([3, 6, 0, 4, 8, 0xffffffff]);
});

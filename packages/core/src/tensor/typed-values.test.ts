/** What the type checker knows of values by their dtype. Types are checked where tests are compiled; values are read as they are typed. */
import { beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { setEngine } from '../engine/registry.ts';
import {
  type DataOf,
  type DType,
  eye,
  full,
  keep,
  type NestedValues,
  oneHot,
  ones,
  rand,
  type Tensor,
  type TensorLike,
  type TypedArray,
  tensor,
  zeros,
  zerosLike,
} from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(() => setEngine(createReferenceEngine()));

describe('a dtype that a call names', () => {
  it('types data, array and item', async () => {
    const whole = tensor([1, 2], { dtype: 'int32' });
    expectTypeOf(whole).toEqualTypeOf<Tensor<'int32'>>();
    expectTypeOf(whole.dtype).toEqualTypeOf<'int32'>();
    const data: Int32Array = await whole.data();
    const values: NestedValues<number> = await whole.array();
    expect([data, values]).toEqual([Int32Array.of(1, 2), [1, 2]]);
    expectTypeOf(whole.dataSync()).toEqualTypeOf<Int32Array>();

    const large = whole.sum().cast('int64');
    const item: bigint = await large.item();
    const same: bigint = large.itemSync();
    expect([item, same, large.dataSync()]).toEqual([3n, 3n, BigInt64Array.of(3n)]);
    expectTypeOf(large.array()).toEqualTypeOf<Promise<NestedValues<bigint>>>();

    const flags: NestedValues<boolean> = whole.cast('bool').arraySync();
    expect(flags).toEqual([true, true]);
    expectTypeOf(whole.sum().cast('bool').item()).toEqualTypeOf<Promise<number>>();
    expectTypeOf(whole.cast('float16').data()).toEqualTypeOf<Promise<Uint16Array>>();
  });

  it('is refused where another is wanted', () => {
    const x = tensor([1], { dtype: 'float32' });
    // @ts-expect-error float32 is not int32
    const wrong: Tensor<'int32'> = x;
    // @ts-expect-error its values are no Int32Array
    const data: Int32Array = x.dataSync();
    // @ts-expect-error and no bigints
    const item: bigint = x.itemSync();
    // @ts-expect-error nor can they be asked for
    x.itemSync<bigint>();
    // @ts-expect-error those of int64 are no numbers
    const large: number = tensor([1], { dtype: 'int64' }).itemSync();
    // @ts-expect-error there is no such dtype
    expect(() => x.cast('float8')).toThrow('no such dtype');
    expect([wrong, data, item, large]).toHaveLength(4);
  });

  it('is known of all functions that take one', () => {
    expectTypeOf(zeros([2], { dtype: 'uint8' })).toEqualTypeOf<Tensor<'uint8'>>();
    expectTypeOf(full([2], 1n, { dtype: 'int64', requiresGrad: false })).toEqualTypeOf<Tensor<'int64'>>();
    expectTypeOf(eye(2, { dtype: 'float64' })).toEqualTypeOf<Tensor<'float64'>>();
    expectTypeOf(rand([2], { key: 1, dtype: 'float64' })).toEqualTypeOf<Tensor<'float64'>>();
    expectTypeOf(oneHot(tensor([1], { dtype: 'int32' }), 3, { dtype: 'bool' })).toEqualTypeOf<Tensor<'bool'>>();
    expectTypeOf(zerosLike(ones([2]), { dtype: 'int8' })).toEqualTypeOf<Tensor<'int8'>>();
    const pick = (wide: boolean) => (wide ? 'float64' : 'float32') as 'float32' | 'float64';
    expectTypeOf(ones([2], { dtype: pick(true) }).dataSync()).toEqualTypeOf<Float32Array | Float64Array>();
  });

  it('goes through functions of tensors', () => {
    const same = <D extends DType>(t: Tensor<D>): DataOf<D> => t.dataSync();
    const data: Int32Array = same(tensor([1], { dtype: 'int32' }));
    expectTypeOf(same(ones([1]))).toEqualTypeOf<TypedArray>();
    expectTypeOf(keep(tensor([1], { dtype: 'int32' }))).toEqualTypeOf<Tensor<'int32'>>();
    expect(data).toEqual(Int32Array.of(1));
  });
});

describe('a plain tensor', () => {
  it('is what all else gives', async () => {
    const any: DType = 'int32' as DType;
    expectTypeOf(tensor([1])).toEqualTypeOf<Tensor>();
    expectTypeOf(tensor([1], { requiresGrad: true })).toEqualTypeOf<Tensor>();
    expectTypeOf(tensor([1], { dtype: any })).toEqualTypeOf<Tensor>();
    expectTypeOf(ones([2]).cast(any)).toEqualTypeOf<Tensor>();
    const plain = tensor([1, 2], { dtype: 'int32' }).add(1);
    expectTypeOf(plain).toEqualTypeOf<Tensor>();
    expectTypeOf(plain.dtype).toEqualTypeOf<DType>();
    expectTypeOf(plain.data()).toEqualTypeOf<Promise<TypedArray>>();
    expectTypeOf(plain.arraySync()).toEqualTypeOf<NestedValues>();
    const data = plain.dataSync() as Int32Array;
    const item: number = await plain.sum().item();
    expectTypeOf(plain.sum().item()).toEqualTypeOf<Promise<number>>();
    const large = await tensor(3n).item<bigint>();
    const inferred: bigint = tensor(3n).itemSync();
    const either = await tensor(3n).item<number | bigint>();
    expect([data, item, large, inferred, either]).toEqual([Int32Array.of(2, 3), 5, 3n, 3n, 3n]);
  });

  it('goes where one of a known dtype does, both ways', () => {
    let x = tensor([1], { dtype: 'float32' });
    x = x.add(1);
    x = x.cast('float64').mul(2);
    let y = ones([1]);
    y = tensor([1], { dtype: 'int32' });
    y = y.cast('float32');
    const plain: Tensor = x;
    const again: Tensor<'float32'> = plain;
    const results: Tensor[] = [plain, again, x.cast('int32')];
    const byName: Record<string, Tensor> = { x, y: y.cast('int64') };
    const operands: TensorLike[] = [...results, 1];
    const or: Tensor | null = x.size > 1 ? null : x;
    expect([operands.length, Object.keys(byName), or?.dtype]).toEqual([4, ['x', 'y'], 'float64']);
  });

  it('may stand beside one of a known dtype in one list', async () => {
    const lists = [
      [tensor([1], { dtype: 'int32' }), ones([1])],
      [tensor([1], { dtype: 'int32' }), tensor([1], { dtype: 'uint8' })],
    ];
    for (const t of lists.flat()) {
      const value: number = await t.add(1).item();
      const own: number = await t.item();
      expect([value, own]).toEqual([2, 1]);
    }
    const mixed = [tensor([1], { dtype: 'int64' }), tensor([1], { dtype: 'int32' })];
    const items: (number | bigint)[] = await Promise.all(mixed.map((t) => t.item()));
    const data: (BigInt64Array | Int32Array)[] = mixed.map((t) => t.dataSync());
    expect([items, data]).toEqual([
      [1n, 1],
      [BigInt64Array.of(1n), Int32Array.of(1)],
    ]);
  });
});

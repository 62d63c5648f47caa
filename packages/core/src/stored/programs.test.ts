/** Programs as bytes: what is read is what was written, to the last bit, and nothing else is read. */
import { randomProgram } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { ProgramBuilder } from '@polygrad/compiler/ir/builder/builder';
import type { Program } from '@polygrad/compiler/ir/ir';
import { highOf, lowOf } from '@polygrad/compiler/ir/node';
import { printProgram } from '@polygrad/compiler/ir/print';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { ByteReader, ByteWriter, Damaged } from './bytes.ts';
import { readProgram, writeProgram } from './programs.ts';

function bytesOf(program: Program): Uint8Array {
  const out = new ByteWriter();
  writeProgram(out, program);
  return out.take();
}

describe('programs as bytes', () => {
  it('are the same programs when they are read, with what is known of their integers', () => {
    for (let seed = 0; seed < 20; seed++) {
      const { program } = randomProgram(seed);
      const bytes = bytesOf(program);
      const from = new ByteReader(bytes);
      const again = readProgram(from);
      expect(from.done).toBe(true);
      expect(printProgram(again)).toBe(printProgram(program));
      expect({ ...again, params: [], body: [] }).toEqual({ ...program, params: [], body: [] });
      expect(again.params.map(({ arg }) => arg)).toEqual(program.params.map(({ arg }) => arg));
      const bounds = ({ body }: Program) => body.map((n) => [lowOf(n), highOf(n)]);
      expect(bounds(again)).toEqual(bounds(program));
      expect(bytesOf(again)).toEqual(bytes);
    }
  });

  it('keep the bits of constants of every dtype', () => {
    const numbers: Partial<Record<DType, readonly (number | bigint)[]>> = {
      int64: [0n, -1n, -(2n ** 63n), 2n ** 63n - 1n],
      uint64: [0n, 2n ** 64n - 1n],
      int32: [0, -1, -(2 ** 31), 2 ** 31 - 1],
      uint32: [0, 2 ** 32 - 1],
      bool: [0, 1],
      int8: [-128, 127],
      uint16: [65535],
    };
    const floats = [0, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1.5, 2 ** -149, 5e-324];
    for (const dtype of Object.keys(dtypeInfo) as DType[]) {
      const b = new ProgramBuilder();
      const values = numbers[dtype] ?? floats;
      const out = b.e.param(0, dtype, 'write', values.length);
      for (const [i, value] of values.entries()) b.store(out, b.e.i32(i), b.e.constant(dtype, value));
      const program = b.build({ name: 'constants' });
      const again = readProgram(new ByteReader(bytesOf(program)));
      const constants = ({ body }: Program) =>
        body.flatMap((n) => (n.op === 'STORE' && n.src[2].op === 'CONST' ? [n.src[2].arg.value] : []));
      const [found, wanted] = [constants(again), constants(program)];
      expect(wanted.length).toBe(values.length);
      for (const [i, value] of wanted.entries()) expect(found[i], `${dtype} ${value}`).toBe(value);
    }
  });
  it('keep which product they are', () => {
    const image = (slot: number) => ({ slot, offset: slot, strides: [8, 4, 2, 1] as const });
    const matrix = (slot: number) => ({ slot, offset: 0, stride: 4, distance: 16, transposed: slot === 1 });
    const [one, two] = [[1, 1] as const, [2, 2] as const];
    const products: readonly NonNullable<Program['product']>[] = [
      {
        ...{ kind: 'convolution', pass: 'input', dtype: 'float16', result: 'float16', flipped: true },
        ...{ images: 1, groups: 1, channels: 2, features: 2, size: two, kernel: one, positions: two },
        ...{ stride: one, padding: [0, 0], dilation: one, a: image(0), b: image(1), c: image(2) },
      },
      {
        ...{ kind: 'matrices', dtype: 'float32', result: 'float32', m: 4, n: 4, k: 4, batch: 1 },
        ...{ a: matrix(0), b: matrix(1), c: matrix(2) },
      },
    ];
    const { program } = randomProgram(3);
    for (const product of products) {
      const again = readProgram(new ByteReader(bytesOf({ ...program, product })));
      expect(again.product).toEqual(product);
    }
    expect(readProgram(new ByteReader(bytesOf(program))).product).toBeUndefined();
    const noProduct = { ...program, product: 5 as unknown as NonNullable<Program['product']> };
    expect(() => readProgram(new ByteReader(bytesOf(noProduct)))).toThrow(Damaged);
  });

  it('are refused, or other programs that verify, where a byte is another or the end is missing', () => {
    const { program } = randomProgram(3);
    const bytes = bytesOf(program);
    const attempt = (changed: Uint8Array): void => {
      try {
        readProgram(new ByteReader(changed));
      } catch (error) {
        expect(error).toBeInstanceOf(Damaged);
      }
    };
    for (let at = 0; at < bytes.length; at += 11) {
      const changed = bytes.slice();
      changed[at]! ^= 1 << (at % 8);
      attempt(changed);
      expect(() => readProgram(new ByteReader(bytes.subarray(0, at)))).toThrow(Damaged);
    }
  });
});

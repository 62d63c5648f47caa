/** Single operations of the interpreter: by known values, and as constants fold. */
import { describe, expect, it } from 'vitest';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { type BinaryOp, type UnaryOp, binaryOps, unaryOps } from '../ir/operations.ts';
import { erf, evalBinary, evalCast, evalTernary, evalUnary, fma32, fma64 } from './values.ts';
import { foldBinary, foldCast, foldUnary } from '../ir/simplify/fold.ts';

describe('values', () => {
  const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

  it.each([
    ['MAX', 'float32', nan, 1, nan],
    ['MIN', 'float64', 1, nan, nan],
    ['ADD', 'int32', 2147483647, 1, -2147483648],
    ['MUL', 'int32', 65536, 65536, 0],
    ['SUB', 'uint32', 0, 1, 4294967295],
    ['MUL', 'uint32', 4294967295, 4294967295, 1],
    ['IDIV', 'int32', -7, 2, -3],
    ['IREM', 'int32', -7, 2, -1],
    ['IDIV', 'int32', -2147483648, -1, -2147483648],
    ['SHR', 'int32', -8, 1, -4],
    ['SHR', 'uint32', 4294967288, 1, 2147483644],
    ['MULHI', 'uint32', 4294967295, 4294967295, 4294967294],
    ['POW', 'float32', 1, inf, 1],
    ['EQ', 'float32', nan, nan, 0],
    ['FREM', 'float32', -5, 3, -2],
    ['ADD', 'float32', 16777216, 1, 16777216],
  ] as const)('%s on %s', (op, dtype, a, b, want) => {
    expect(evalBinary(op, dtype, a, b)).toBe(want);
  });

  it('64-bit integers are exact to their ends', () => {
    const edges = [
      0n,
      1n,
      -1n,
      3n,
      -7n,
      2n ** 31n,
      2n ** 53n + 1n,
      -(2n ** 53n) - 1n,
      2n ** 62n,
      2n ** 63n - 1n,
      -(2n ** 63n),
    ];
    for (const dtype of ['int64', 'uint64'] as const) {
      const wrap = (x: bigint): bigint => (dtype === 'int64' ? BigInt.asIntN(64, x) : BigInt.asUintN(64, x));
      const values = edges.map(wrap);
      for (const a of values) {
        expect(evalUnary('NEG', dtype, a)).toBe(wrap(-a));
        expect(evalUnary('NOT', dtype, a)).toBe(wrap(~a));
        // Rounded once: float32 halfway cases that float64 would have made.
        expect(evalCast(dtype, 'float64', a)).toBe(Number(a));
        expect(evalCast(dtype, 'int8', a)).toBe(Number(BigInt.asIntN(8, a)));
        expect(evalCast('float64', dtype, Number(BigInt.asIntN(53, a)))).toBe(
          wrap(BigInt.asIntN(53, a)) === BigInt.asIntN(53, a) ? BigInt.asIntN(53, a) : 0n,
        );
        for (const b of values) {
          expect(evalBinary('ADD', dtype, a, b)).toBe(wrap(a + b));
          expect(evalBinary('SUB', dtype, a, b)).toBe(wrap(a - b));
          expect(evalBinary('MUL', dtype, a, b)).toBe(wrap(a * b));
          expect(evalBinary('XOR', dtype, a, b)).toBe(wrap(a ^ b));
          expect(evalBinary('LT', dtype, a, b)).toBe(a < b ? 1 : 0);
          expect(evalBinary('SHL', dtype, a, b)).toBe(wrap(a << (b & 63n)));
          expect(evalBinary('SHR', dtype, a, b)).toBe(wrap(a >> (b & 63n)));
          if (b !== 0n) expect(evalBinary('IDIV', dtype, a, b)).toBe(wrap(a / b));
          for (const op of ['ADD', 'MUL', 'SUB', 'AND', 'MAX'] as const)
            expect(foldBinary(op, dtype, a, b)).toBe(evalBinary(op, dtype, a, b));
        }
      }
    }
    // 2^62 + 2^38 + 1 lies just above the middle of two float32 numbers; float64 would put it there.
    expect(evalCast('int64', 'float32', 2n ** 62n + 2n ** 38n + 1n)).toBe(2 ** 62 + 2 ** 39);
    expect(evalCast('uint64', 'bfloat16', 2n ** 63n + 2n ** 55n + 1n)).toBe(2 ** 63 + 2 ** 56);
  });

  it.each(['IDIV', 'IREM'] as const)('%s by zero is 0, folded too', (op) => {
    for (const dtype of ['int32', 'uint32', 'int8'] as const)
      for (const f of [evalBinary, foldBinary]) expect(f(op, dtype, 5, 0)).toBe(0);
    for (const dtype of ['int64', 'uint64'] as const)
      for (const f of [evalBinary, foldBinary]) expect(f(op, dtype, 5n, 0n)).toBe(0n);
  });

  it.each([
    ['float32', 'int32', 1e20, 2147483647],
    ['float32', 'int32', -1e20, -2147483648],
    ['float32', 'int32', nan, 0],
    ['float64', 'uint32', -1, 0],
    ['float32', 'int32', -1.9, -1],
    ['float32', 'bool', nan, 1],
    ['int32', 'uint32', -1, 4294967295],
    ['float64', 'float32', 0.1, Math.fround(0.1)],
    ['float64', 'int8', 300, 127],
    ['int32', 'int8', 300, 44],
    ['float64', 'float16', 65519, 65504],
    ['float64', 'bfloat16', 1.00390625, 1],
  ] as const)('cast %s to %s of %d', (from, to, x, want) => {
    expect(evalCast(from, to, x)).toBe(want);
  });

  it('rounds half to even and keeps the sign of zero', () => {
    expect(evalUnary('ROUND', 'float32', 2.5)).toBe(2);
    expect(evalUnary('ROUND', 'float32', -0.5)).toBe(-0);
    expect(evalUnary('NEG', 'float32', 0)).toBe(-0);
  });

  it('WHERE takes one side only', () => {
    expect(evalTernary('WHERE', 'float32', 1, 3, nan)).toBe(3);
  });

  it('FMA rounds once', () => {
    // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: half way between two float32 numbers; 2^-60 decides.
    const x = 1 + 2 ** -12;
    expect(fma32(x, x, 0)).toBe(1 + 2 ** -11);
    expect(fma32(x, x, 2 ** -60)).toBe(1 + 2 ** -11 + 2 ** -23);
    expect(fma32(x, x, -(2 ** -60))).toBe(1 + 2 ** -11);
    const y = 1 + 2 ** -30;
    expect(fma64(y, y, -(1 + 2 ** -29))).toBe(2 ** -60);
    expect(fma64(0.1, 10, -1)).toBe(2 ** -54);
  });

  it('erf agrees with published values (Abramowitz and Stegun, table 7.1)', () => {
    for (const [x, y] of [
      [0.5, 0.5204998778],
      [1, 0.8427007929],
      [1.5, 0.9661051465],
      [2, 0.995322265],
    ] as const) {
      expect(erf(x)).toBeCloseTo(y, 9);
      expect(erf(-x)).toBeCloseTo(-y, 9);
    }
  });
});

describe('values agree with what constants fold to', () => {
  const numbers = [
    0,
    -0,
    1,
    -1,
    2,
    3,
    5,
    7,
    30,
    2147483647,
    -2147483648,
    4294967295,
    0.5,
    -2.5,
    1e30,
    Number.NaN,
    Number.POSITIVE_INFINITY,
  ];
  const dtypes = Object.keys(dtypeInfo) as DType[];
  const takes = (what: string, dtype: DType): boolean => {
    const { kind } = dtypeInfo[dtype];
    if (what === 'float') return kind === 'float';
    if (what === 'integer') return kind === 'int' || kind === 'uint';
    return what === 'logical' ? kind !== 'float' : kind !== 'bool' || what === 'compare';
  };

  it.each(dtypes)('%s', (dtype) => {
    const values = numbers.map((x) => foldCast('float64', dtype, x));
    for (const op of Object.keys(binaryOps) as BinaryOp[]) {
      if (!takes(binaryOps[op], dtype) || (op === 'MULHI' && dtype !== 'uint32')) continue;
      for (const a of values) {
        for (const b of values) {
          const folded = foldBinary(op, dtype, a, b);
          if (folded !== undefined) expect(evalBinary(op, dtype, a, b), `${op} ${a} ${b}`).toBe(folded);
        }
      }
    }
    for (const op of Object.keys(unaryOps) as UnaryOp[]) {
      if (!takes(unaryOps[op], dtype)) continue;
      for (const a of values) {
        const folded = foldUnary(op, dtype, a);
        if (folded !== undefined) expect(evalUnary(op, dtype, a), `${op} ${a}`).toBe(folded);
      }
    }
    for (const from of dtypes) {
      for (const x of numbers) {
        const value = foldCast('float64', from, x);
        expect(evalCast(from, dtype, value), `${from} ${value} to ${dtype}`).toBe(foldCast(from, dtype, value));
      }
    }
  });
});

/** Arithmetic and reductions of integers of all widths over their whole range, against BigInt. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { integerFormat, wrap } from '../../oracle/formats.ts';
import { draw, expectValues, type Integer } from './values.ts';

/** Division rounds down and the remainder has the sign of the divisor (Python Array API). */
const floorDivide = (x: bigint, y: bigint): bigint => (x - floorModulo(x, y)) / y;
const floorModulo = (x: bigint, y: bigint): bigint => ((x % y) + y) % y;

const ascending = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);
const largest = (v: readonly bigint[]): bigint => [...v].sort(ascending).at(-1) as bigint;
const least = (v: readonly bigint[]): bigint => [...v].sort(ascending)[0]!;

type Binary = readonly [
  name: string,
  run: (a: Tensor, b: Tensor) => Tensor,
  oracle: (a: bigint, b: bigint) => bigint | boolean,
];
const binary: readonly Binary[] = [
  ['add', pg.add, (a, b) => a + b],
  ['sub', pg.sub, (a, b) => a - b],
  ['mul', pg.mul, (a, b) => a * b],
  ['maximum', pg.maximum, (a, b) => largest([a, b])],
  ['minimum', pg.minimum, (a, b) => least([a, b])],
  ['bitwiseAnd', pg.bitwiseAnd, (a, b) => a & b],
  ['bitwiseOr', pg.bitwiseOr, (a, b) => a | b],
  ['bitwiseXor', pg.bitwiseXor, (a, b) => a ^ b],
  ['less', pg.less, (a, b) => a < b],
  ['lessEqual', pg.lessEqual, (a, b) => a <= b],
  ['equal', pg.equal, (a, b) => a === b],
  ['notEqual', pg.notEqual, (a, b) => a !== b],
];

const length = 203;

export async function checkArithmetic(dtype: Integer): Promise<void> {
  const { bits } = integerFormat(dtype) as { bits: number };
  const [x, y] = [draw(dtype, length, 'x'), draw(dtype, length, 'y')];
  const [a, b] = [pg.tensor(x, { dtype }), pg.tensor(y, { dtype })];
  const each = async (
    name: string,
    run: () => Tensor,
    oracle: (a: bigint, b: bigint) => bigint | boolean,
    right = y,
  ): Promise<void> => {
    const wanted = x.map((v, i) => {
      const w = oracle(v, right[i]!);
      return typeof w === 'bigint' ? wrap(dtype, w) : w;
    });
    await expectValues(`${name} of ${dtype}`, pg.scope(run), wanted, typeof wanted[0] === 'boolean' ? 'bool' : dtype);
  };
  for (const [name, run, oracle] of binary) await each(name, () => run(a, b), oracle);
  await each(
    'neg',
    () => pg.neg(a),
    (v) => -v,
  );
  await each(
    'abs',
    () => pg.abs(a),
    (v) => (v < 0n ? -v : v),
  );
  await each(
    'bitwiseNot',
    () => pg.bitwiseNot(a),
    (v) => ~v,
  );
  await each(
    'sign',
    () => pg.sign(a),
    (v) => (v < 0n ? -1n : v > 0n ? 1n : 0n),
  );
  await each(
    'chain',
    () => pg.where(pg.less(a, b), a.mul(b).sub(a), a.add(b).mul(3)),
    (p, q) => {
      const step = (v: bigint): bigint => wrap(dtype, v);
      return p < q ? step(step(p * q) - p) : step(step(p + q) * 3n);
    },
  );
  const counts = x.map((_, i) => BigInt(i % bits));
  const shifts = pg.tensor(counts, { dtype });
  await each(
    'leftShift',
    () => pg.leftShift(a, shifts),
    (v, n) => v << n,
    counts,
  );
  await each(
    'rightShift',
    () => pg.rightShift(a, shifts),
    (v, n) => v >> n,
    counts,
  );
  const divisors = y.map((v) => (v === 0n ? 3n : v));
  const d = pg.tensor(divisors, { dtype });
  await each('floorDivide', () => pg.floorDivide(a, d), floorDivide, divisors);
  await each('remainder', () => pg.remainder(a, d), floorModulo, divisors);
  for (const t of [a, b, shifts, d]) t.dispose();
}

export async function checkReductions(dtype: Integer): Promise<void> {
  const { bits, signed } = integerFormat(dtype) as { bits: number; signed: boolean };
  // 7 rows; long enough that sums are taken in vectors.
  const rows = 7;
  const x = draw(dtype, rows * length, 'rows');
  const t = pg.tensor(x, { dtype, shape: [rows, length] });
  const row = (r: number): bigint[] => x.slice(r * length, (r + 1) * length);
  const all = Array.from({ length: rows }, (_, r) => row(r));
  const wide: DType = bits >= 32 ? dtype : signed ? 'int32' : 'uint32';
  const sum = (v: readonly bigint[]): bigint => v.reduce((p, q) => p + q, 0n);
  const check = (name: string, run: () => Tensor, of: (v: readonly bigint[]) => bigint, as: DType): Promise<void> =>
    expectValues(
      `${name} of ${dtype}`,
      pg.scope(run),
      all.map((v) => wrap(as, of(v))),
      as,
    );
  await check('sum', () => t.sum(1), sum, wide);
  await check(
    'prod',
    () => t.prod(1),
    (v) => v.reduce((p, q) => p * q, 1n),
    wide,
  );
  await check('max', () => t.max(1), largest, dtype);
  await check('min', () => t.min(1), least, dtype);
  await check(
    'argMax',
    () => t.argMax(1),
    (v) => BigInt(v.indexOf(largest(v))),
    'int32',
  );
  await check(
    'argMin',
    () => t.argMin(1),
    (v) => BigInt(v.indexOf(least(v))),
    'int32',
  );
  const whole = [wrap(wide, sum(x))];
  await expectValues(
    `sum of all ${dtype}`,
    pg.scope(() => t.sum()),
    whole,
    wide,
  );
  // The long way: partial results, filled up with what changes nothing.
  const long = pg.tensor(
    Array.from({ length: 9001 }, (_, i) => x[i % x.length]!),
    { dtype },
  );
  await expectValues(
    `min of many ${dtype}`,
    pg.scope(() => long.min()),
    [least(x)],
    dtype,
  );
  await expectValues(
    `max of many ${dtype}`,
    pg.scope(() => long.max()),
    [largest(x)],
    dtype,
  );
  const square = pg.scope(() => pg.matmul(t, t.transpose()));
  const dots = all.flatMap((p) => all.map((q) => wrap(dtype, sum(p.map((v, i) => v * q[i]!)))));
  await expectValues(`matmul of ${dtype}`, square, dots, dtype);
  t.dispose();
  long.dispose();
}

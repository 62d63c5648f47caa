/** Random calls of elementwise operations of two operands, which broadcast; the second may be a number. */
import type { DType } from '@polygrad/core';
import { integerFormat } from '../oracle/formats.ts';
import { type NDArray, nd, zip } from '../oracle/ndarray.ts';
import * as special from '../oracle/special.ts';
import { hold } from './evaluate.ts';
import { floatOf, isFloat, isInteger, type Made, meet, type Operation, type Pool, ref } from './pool.ts';
import type { Arg, Noise } from './program.ts';

interface BinaryRow {
  readonly name: string;
  readonly f: (a: number, b: number, dtype: DType) => number;
  readonly of: 'floats' | 'numbers' | 'integers' | 'any' | 'bool' | 'bits';
  readonly noise?: Noise;
  readonly smooth?: boolean;
  readonly result?: 'bool' | 'float';
  readonly domain?: (a: number, b: number, dtype: DType) => boolean;
  /** The second operand as it broadcasts with the first, where it is not aligned at the last axes. */
  readonly second?: (a: NDArray, b: NDArray) => NDArray;
}

const remainder = (a: number, b: number): number => {
  const r = a % b;
  return r !== 0 && r < 0 !== b < 0 ? r + b : r;
};
/** Exact: 1 / 0.1 rounds to 10, but 0.1 fits only 9 times. */
const floorDivide = (a: number, b: number): number => {
  const r = remainder(a, b);
  return Number.isFinite(r) && Number.isFinite(b) ? Math.round((a - r) / b) : Math.floor(a / b);
};
/** Divisors are no zero, and quotients of integers no -INT_MIN. */
const divides = (_a: number, b: number, dtype: DType): boolean => isFloat(dtype) || b !== 0;
const bits =
  (f: (a: bigint, b: bigint) => bigint) =>
  (a: number, b: number): number =>
    Number(f(BigInt(a), BigInt(b)));
const atLarge =
  (f: (a: number, b: number) => number, whole: (a: bigint, b: bigint) => bigint) =>
  (a: number, b: number, dtype: DType): number => {
    const y = f(a, b);
    const format = integerFormat(dtype);
    if (format === null || Number.isSafeInteger(y)) return y;
    const exact = whole(BigInt(a), BigInt(b));
    return Number(format.signed ? BigInt.asIntN(format.bits, exact) : BigInt.asUintN(format.bits, exact));
  };

const binaries: readonly BinaryRow[] = [
  { name: 'add', f: (a, b) => a + b, of: 'numbers', noise: 'out', smooth: true },
  {
    name: 'mul',
    f: atLarge(
      (a, b) => a * b,
      (a, b) => a * b,
    ),
    of: 'numbers',
    noise: 'out',
    smooth: true,
  },
  { name: 'sub', f: (a, b) => a - b, of: 'numbers', noise: 'out', smooth: true },
  {
    name: 'div',
    f: (a, b) => a / b,
    of: 'numbers',
    noise: 'out',
    smooth: true,
    result: 'float',
    domain: (_, b) => Math.abs(b) > 1e-2,
  },
  { name: 'maximum', f: (a, b) => Math.max(a, b), of: 'numbers', smooth: true },
  { name: 'minimum', f: (a, b) => Math.min(a, b), of: 'numbers', smooth: true },
  { name: 'floorDivide', f: floorDivide, of: 'numbers', domain: divides },
  { name: 'remainder', f: remainder, of: 'numbers', noise: 'out', domain: divides },
  { name: 'fmod', f: (a, b) => a % b, of: 'numbers', domain: divides },
  {
    name: 'pow',
    f: special.pow,
    of: 'floats',
    noise: 'out',
    smooth: true,
    domain: (a, b) => a > 0.05 && Math.abs(b) < 8,
  },
  {
    name: 'atan2',
    f: Math.atan2,
    of: 'floats',
    noise: 'out',
    smooth: true,
    // Below the negative axis the angle jumps, and devices need not keep the sign of zero.
    domain: (a, b) => Math.abs(a) + Math.abs(b) > 0.01 && (b > 0 || Math.abs(a) > 1e-3),
  },
  {
    name: 'hypot',
    f: (a, b) => Math.hypot(a, b),
    of: 'floats',
    noise: 'all',
    smooth: true,
    domain: (a, b) => Math.abs(a) + Math.abs(b) > 0.01,
  },
  {
    name: 'logAddExp',
    f: (a, b) => Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))),
    of: 'floats',
    noise: 'all',
    smooth: true,
    domain: (a, b) => Number.isFinite(a) && Number.isFinite(b),
  },
  {
    name: 'copysign',
    f: (a, b) => (b < 0 || Object.is(b, -0) ? -Math.abs(a) : Math.abs(a)),
    of: 'floats',
    domain: (_, b) => b !== 0,
  },
  {
    name: 'xlogy',
    f: (a, b) => (a === 0 && !Number.isNaN(b) ? 0 : a * Math.log(b)),
    of: 'floats',
    noise: 'all',
    smooth: true,
    domain: (_, b) => b > 1e-2,
  },
  {
    name: 'prelu',
    f: (a, b) => (a > 0 ? a : a * b),
    of: 'floats',
    noise: 'out',
    smooth: true,
    // One weight per channel, which is axis 1.
    second: (a, b) =>
      b.shape.length === 1 && a.shape.length > 2 && b.shape[0] === a.shape[1]
        ? nd([...b.shape, ...a.shape.slice(2).map(() => 1)], b.data)
        : b,
  },
  { name: 'equal', f: (a, b) => Number(a === b), of: 'any', result: 'bool' },
  { name: 'less', f: (a, b) => Number(a < b), of: 'numbers', result: 'bool' },
  { name: 'greaterEqual', f: (a, b) => Number(a >= b), of: 'numbers', result: 'bool' },
  { name: 'notEqual', f: (a, b) => Number(a !== b), of: 'any', result: 'bool' },
  { name: 'lessEqual', f: (a, b) => Number(a <= b), of: 'numbers', result: 'bool' },
  { name: 'greater', f: (a, b) => Number(a > b), of: 'numbers', result: 'bool' },
  { name: 'logicalAnd', f: (a, b) => Number(a !== 0 && b !== 0), of: 'any', result: 'bool' },
  { name: 'logicalOr', f: (a, b) => Number(a !== 0 || b !== 0), of: 'any', result: 'bool' },
  { name: 'logicalXor', f: (a, b) => Number((a !== 0) !== (b !== 0)), of: 'any', result: 'bool' },
  { name: 'bitwiseAnd', f: bits((a, b) => a & b), of: 'bits' },
  { name: 'bitwiseOr', f: bits((a, b) => a | b), of: 'bits' },
  { name: 'bitwiseXor', f: bits((a, b) => a ^ b), of: 'bits' },
  {
    name: 'leftShift',
    f: bits((a, b) => a << b),
    of: 'integers',
    domain: (_, b, dtype) => b >= 0 && b < (integerFormat(dtype)?.bits ?? 0),
  },
  {
    name: 'rightShift',
    f: bits((a, b) => a >> b),
    of: 'integers',
    domain: (_, b, dtype) => b >= 0 && b < (integerFormat(dtype)?.bits ?? 0),
  },
];

const fitsBinary = ({ of }: BinaryRow, dtype: DType): boolean =>
  of === 'floats'
    ? isFloat(dtype)
    : of === 'integers'
      ? isInteger(dtype)
      : of === 'numbers'
        ? dtype !== 'bool'
        : of === 'bits'
          ? !isFloat(dtype)
          : true;

/** A number that stands for an element of the dtype. */
export function weak(pool: Pool, dtype: DType): number {
  const whole = pool.c.pick([2, 1, 3, 0, 5, 7]);
  if (dtype.startsWith('u') || isInteger(dtype)) return dtype.startsWith('u') || pool.c.nat(2) === 0 ? whole : -whole;
  return pool.c.pick([2, 0.5, -1.5, 1, 0, 3, -0.25]);
}

function binaryCall(row: BinaryRow, pool: Pool): Made | null {
  const a = pool.pick((v) => fitsBinary(row, v.dtype));
  if (a === null) return null;
  const number = pool.c.seldom(4) && a.dtype !== 'bool';
  const b = number ? null : pool.partner(a, (v) => fitsBinary(row, v.dtype) && meet(a.dtype, v.dtype) !== null);
  const value = b === null ? hold(a.dtype, weak(pool, a.dtype)) : null;
  if (b === null && a.dtype === 'bool') return null;
  const common = b === null ? a.dtype : (meet(a.dtype, b.dtype) as DType);
  const right = b ?? { shape: [], data: [value as number] };
  const swapped = b === null && pool.c.seldom(3);
  const second = row.second ?? ((_, y) => y);
  const [l, r] = swapped ? [right, second(right, a)] : [a, second(a, right)];
  const held = (x: number): number => hold(common, x) ?? x;
  const f = (x: number, y: number): number => row.f(held(x), held(y), common);
  const fine = zip((x, y) => Number(row.domain === undefined || row.domain(held(x), held(y), common)), l, r).data.every(
    (x) => x === 1,
  );
  if (!fine) return null;
  const args: Arg[] = b === null ? (swapped ? [value as number, ref(a)] : [ref(a), value as number]) : [ref(a), ref(b)];
  const constant: NDArray = { shape: [], data: [value ?? 0] };
  return {
    args,
    dtype: row.result === 'bool' ? 'bool' : row.result === 'float' ? floatOf(common) : common,
    formula: (x, y) => {
      const [left, given] = swapped ? [constant, x as NDArray] : [x as NDArray, y ?? constant];
      return zip(f, left, second(left, given));
    },
    noise: row.noise ?? 'none',
  };
}

export const binary: readonly Operation[] = binaries.map(
  (row): Operation => ({
    name: row.name,
    ...(row.smooth ? { smooth: true } : {}),
    make: (pool) => binaryCall(row, pool),
  }),
);

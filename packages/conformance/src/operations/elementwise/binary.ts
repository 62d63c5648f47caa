/** Elementwise operations of two operands, which broadcast. Sources of formulas are in the docstrings of the functions. */
import { numeric } from '../../spec.ts';
import type { DType } from '@polygrad/core';
import { integerFormat } from '../../oracle/formats.ts';
import { nd, type NDArray } from '../../oracle/ndarray.ts';
import { awayFromZero, integer, uniform } from '../../oracle/random.ts';
import * as special from '../../oracle/special.ts';
import { type Draw, few, many, off, type Row, type RowCase } from './row.ts';
import { isCloseCall, preluSpecs } from './several.ts';

export interface BinaryRow extends Row {
  readonly f: (a: number, b: number, dtype: DType) => number;
  readonly of: 'floats' | 'numbers' | 'integers' | 'any' | 'bool' | 'bits';
  /** The dtype of its result, if that is not the common one of the operands. */
  readonly result?: 'bool' | 'float';
  /** Where random programs call it. */
  readonly domain?: (a: number, b: number, dtype: DType) => boolean;
  /** The second operand as it broadcasts with the first, if it is not aligned at the last axes. */
  readonly second?: (a: NDArray, b: NDArray) => NDArray;
}

const isInteger = (dtype: DType): boolean => integerFormat(dtype) !== null;

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
const divides = (_a: number, b: number, dtype: DType): boolean => !isInteger(dtype) || b !== 0;
const bits =
  (f: (a: bigint, b: bigint) => bigint) =>
  (a: number, b: number): number =>
    Number(f(BigInt(a), BigInt(b)));
/** Of integers modulo their number, where float64 does not hold the result. */
const wrapped =
  (f: (a: number, b: number) => number, whole: (a: bigint, b: bigint) => bigint) =>
  (a: number, b: number, dtype: DType): number => {
    const y = f(a, b);
    const format = integerFormat(dtype);
    if (format === null || Number.isSafeInteger(y)) return y;
    const exact = whole(BigInt(a), BigInt(b));
    return Number(format.signed ? BigInt.asIntN(format.bits, exact) : BigInt.asUintN(format.bits, exact));
  };

const any = uniform(-3, 3);
const kinked = awayFromZero(0.1, 3);
const whole = integer(-9, 9);
const divisor: Draw = (r) => (r() < 0.5 ? -1 : 1) * integer(1, 5)(r);
const small = integer(-2, 2);
const natural = integer(0, 40);
const bool = integer(0, 1);
/** Pairs whose quotient is no integer, or nearly one. */
const fractions: readonly Draw[] = [
  (r) => Math.round(any(r) * 8) / 8 + 1 / 16,
  (r) => (r() < 0.5 ? -1 : 1) * (r() < 0.5 ? 0.75 : 1.25),
];
const words: readonly DType[] = ['int32', 'uint32'];

const wholes = (draw: readonly Draw[], dtypes: readonly DType[], name?: string): readonly RowCase[] =>
  many(draw, { dtypes, order: 0, ...(name === undefined ? {} : { name }) });

/** Integers added and multiplied are small enough for every dtype. */
const ofNaturals = (name: string): readonly RowCase[] =>
  wholes([natural, natural], ['float32', 'float64', 'int32', 'uint32'], `${name} int`);

const comparison = (name: string, f: (a: number, b: number) => boolean, of: 'any' | 'numbers'): BinaryRow => ({
  name,
  f: (a, b) => Number(f(a, b)),
  of,
  result: 'bool',
  cases: wholes([small, small], numeric),
});
const logical = (name: string, f: (a: boolean, b: boolean) => boolean): BinaryRow => ({
  name,
  f: (a, b) => Number(f(a !== 0, b !== 0)),
  of: 'any',
  result: 'bool',
  cases: [...wholes([bool, bool], ['bool']), ...few([small, small], { name: `${name} of numbers`, order: 0 })],
});
const bitwise = (name: string, f: (a: bigint, b: bigint) => bigint): BinaryRow => ({
  name,
  f: bits(f),
  of: 'bits',
  cases: wholes([natural, natural], words),
});
const shifted = (name: string, f: (a: bigint, b: bigint) => bigint): BinaryRow => ({
  name,
  f: bits(f),
  of: 'integers',
  domain: (_, b, dtype) => b >= 0 && b < (integerFormat(dtype)?.bits ?? 0),
  cases: wholes([natural, integer(0, 8)], words),
});

export const binaryRows: readonly BinaryRow[] = [
  {
    name: 'add',
    f: (a, b) => a + b,
    of: 'numbers',
    noise: 'out',
    smooth: true,
    cases: [...many(), ...ofNaturals('add')],
  },
  {
    name: 'mul',
    f: wrapped(
      (a, b) => a * b,
      (a, b) => a * b,
    ),
    of: 'numbers',
    noise: 'out',
    smooth: true,
    cases: [...many(), ...ofNaturals('mul')],
  },
  { name: 'sub', f: (a, b) => a - b, of: 'numbers', noise: 'out', smooth: true, cases: many() },
  {
    name: 'div',
    f: (a, b) => a / b,
    of: 'numbers',
    noise: 'out',
    smooth: true,
    result: 'float',
    domain: (_, b) => Math.abs(b) > 1e-2,
    cases: many([any, kinked]),
  },
  {
    name: 'maximum',
    f: (a, b) => Math.max(a, b),
    of: 'numbers',
    smooth: true,
    cases: [...many(), ...wholes([whole, whole], ['int32'], 'maximum int')],
  },
  { name: 'minimum', f: (a, b) => Math.min(a, b), of: 'numbers', smooth: true, cases: many() },
  {
    name: 'floorDivide',
    notes: { orders: '0 everywhere' },
    f: floorDivide,
    of: 'numbers',
    domain: divides,
    cases: [...wholes([whole, divisor], numeric), ...few(fractions, { name: 'floorDivide of fractions' })],
  },
  {
    name: 'remainder',
    f: remainder,
    of: 'numbers',
    noise: 'out',
    domain: divides,
    cases: [...wholes([whole, divisor], numeric), ...few(fractions, { name: 'remainder of fractions' })],
  },
  { name: 'fmod', f: (a, b) => a % b, of: 'numbers', domain: divides, cases: few(fractions) },
  {
    name: 'pow',
    f: special.pow,
    of: 'floats',
    noise: 'out',
    smooth: true,
    domain: (a, b) => a > 0.05 && Math.abs(b) < 8,
    cases: many([uniform(0.1, 4), uniform(-2, 2)]),
  },
  {
    name: 'atan2',
    f: Math.atan2,
    of: 'floats',
    noise: 'out',
    smooth: true,
    // Below the negative axis the angle jumps, and devices need not keep the sign of zero.
    domain: (a, b) => Math.abs(a) + Math.abs(b) > 0.01 && (b > 0 || Math.abs(a) > 1e-3),
    cases: many([kinked, kinked]),
  },
  {
    name: 'hypot',
    f: (a, b) => Math.hypot(a, b),
    of: 'floats',
    noise: 'all',
    smooth: true,
    domain: (a, b) => Math.abs(a) + Math.abs(b) > 0.01,
    cases: few([off([0]), off([0])]),
  },
  {
    name: 'logAddExp',
    f: (a, b) => (a === b ? a + Math.LN2 : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)))),
    of: 'floats',
    noise: 'all',
    smooth: true,
    domain: (a, b) => Number.isFinite(a) && Number.isFinite(b),
    cases: few(),
  },
  {
    name: 'copysign',
    f: (a, b) => (b < 0 || Object.is(b, -0) ? -Math.abs(a) : Math.abs(a)),
    of: 'floats',
    domain: (_, b) => b !== 0,
    cases: few([off([0]), off([0])]),
  },
  {
    name: 'xlogy',
    f: (a, b) => (a === 0 && !Number.isNaN(b) ? 0 : a * Math.log(b)),
    of: 'floats',
    noise: 'all',
    smooth: true,
    domain: (_, b) => b > 1e-2,
    cases: few([any, uniform(0.2, 3)]),
  },
  {
    name: 'prelu',
    specs: preluSpecs,
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
  comparison('equal', (a, b) => a === b, 'any'),
  comparison('less', (a, b) => a < b, 'numbers'),
  comparison('greaterEqual', (a, b) => a >= b, 'numbers'),
  comparison('notEqual', (a, b) => a !== b, 'any'),
  comparison('lessEqual', (a, b) => a <= b, 'numbers'),
  comparison('greater', (a, b) => a > b, 'numbers'),
  logical('logicalAnd', (a, b) => a && b),
  logical('logicalOr', (a, b) => a || b),
  logical('logicalXor', (a, b) => a !== b),
  bitwise('bitwiseAnd', (a, b) => a & b),
  bitwise('bitwiseOr', (a, b) => a | b),
  bitwise('bitwiseXor', (a, b) => a ^ b),
  shifted('leftShift', (a, b) => a << b),
  shifted('rightShift', (a, b) => a >> b),
  {
    name: 'isClose',
    calls: [isCloseCall],
    options: { rtol: 0, atol: 1 },
    drawn: false,
    f: (a, b) => Number(Math.abs(a - b) <= 1),
    of: 'floats',
    result: 'bool',
    cases: few([integer(-3, 3), integer(-3, 3)], { order: 0 }),
  },
];

/** Random calls of elementwise operations. */
import type { DType } from '@polygrad/core';
import { integerFormat } from '../oracle/formats.ts';
import { map, type NDArray, zip } from '../oracle/ndarray.ts';
import * as special from '../oracle/special.ts';
import { hold } from './evaluate.ts';
import {
  broadcast,
  floatOf,
  isFloat,
  isInteger,
  isNumber,
  meet,
  type Made,
  type Operation,
  type Pool,
  ref,
} from './pool.ts';
import type { Arg, Noise, Value } from './program.ts';

type Unary = (x: number) => number;
const truth = (x: boolean): number => (x ? 1 : 0);
const logistic: Unary = (x) => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)));
const softplus: Unary = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const cdf: Unary = (x) => (x < -4 ? special.erfc(-x / Math.SQRT2) / 2 : (1 + special.erf(x / Math.SQRT2)) / 2);

interface UnaryRow {
  readonly name: string;
  readonly f: Unary;
  /** Float functions make float32 of integers; the others keep the dtype. */
  readonly of: 'float' | 'floats only' | 'numbers' | 'signed';
  readonly noise: Noise;
  readonly smooth?: boolean;
  readonly domain?: (x: number) => boolean;
  readonly result?: DType;
}

const each = (name: string, f: Unary, domain?: (x: number) => boolean): UnaryRow => ({
  name,
  f,
  of: 'float',
  noise: 'out',
  smooth: true,
  ...(domain ? { domain } : {}),
});
const made = (name: string, f: Unary, domain?: (x: number) => boolean): UnaryRow => ({
  ...each(name, f, domain),
  of: 'floats only',
  noise: 'all',
});
const jump = (name: string, f: Unary): UnaryRow => ({ name, f, of: 'floats only', noise: 'none' });
const positive = (x: number): boolean => x > 1e-3;
const inside = (x: number): boolean => Math.abs(x) < 0.999;
const modest = (x: number): boolean => Math.abs(x) < 30;

const unaries: readonly UnaryRow[] = [
  { name: 'neg', f: (x) => -x, of: 'signed', noise: 'none', smooth: true },
  { name: 'abs', f: Math.abs, of: 'numbers', noise: 'none', smooth: true },
  { name: 'sign', f: Math.sign, of: 'numbers', noise: 'none' },
  { name: 'square', f: (x) => x * x, of: 'numbers', noise: 'out', smooth: true },
  each('exp', Math.exp, modest),
  each('sin', Math.sin),
  each('cos', Math.cos),
  each('tanh', Math.tanh),
  each('sqrt', Math.sqrt, positive),
  each('log', Math.log, positive),
  each(
    'reciprocal',
    (x) => 1 / x,
    (x) => Math.abs(x) > 1e-2,
  ),
  each('exp2', (x) => 2 ** x, modest),
  each('expm1', Math.expm1, modest),
  each('log1p', Math.log1p, (x) => x > -0.99),
  each('log2', Math.log2, positive),
  each('rsqrt', (x) => 1 / Math.sqrt(x), positive),
  each('tan', Math.tan, modest),
  each('atan', Math.atan),
  each('asin', Math.asin, inside),
  each('acos', Math.acos, inside),
  each('sinh', Math.sinh, modest),
  each('cosh', Math.cosh, modest),
  each('erf', special.erf),
  made('log10', Math.log10, positive),
  made('cbrt', Math.cbrt, (x) => x !== 0),
  made('asinh', Math.asinh),
  made('acosh', Math.acosh, (x) => x > 1.01),
  made('atanh', Math.atanh, inside),
  made('sigmoid', logistic),
  made('silu', (x) => x * logistic(x)),
  made('softplus', softplus),
  made('logSigmoid', (x) => -softplus(-x)),
  made('softsign', (x) => x / (1 + Math.abs(x))),
  made('tanhShrink', (x) => x - Math.tanh(x)),
  made('mish', (x) => x * Math.tanh(softplus(x))),
  made('gelu', (x) => x * cdf(x), modest),
  made('elu', (x) => (x > 0 ? x : Math.expm1(x))),
  made('celu', (x) => (x > 0 ? x : Math.expm1(x))),
  made('selu', (x) => 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * Math.expm1(x))),
  made('erfc', special.erfc, modest),
  made('hardSwish', (x) => (x * Math.min(6, Math.max(0, x + 3))) / 6),
  made('hardSigmoid', (x) => Math.min(1, Math.max(0, x / 6 + 0.5))),
  made('sinc', (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x))),
  { ...jump('relu', (x) => Math.max(x, 0)), smooth: true },
  { ...jump('relu6', (x) => Math.min(6, Math.max(x, 0))), smooth: true },
  { ...jump('hardTanh', (x) => Math.min(1, Math.max(x, -1))), smooth: true },
  { ...made('hardShrink', (x) => (Math.abs(x) > 0.5 || Number.isNaN(x) ? x : 0)), noise: 'none' },
  jump('floor', Math.floor),
  jump('ceil', Math.ceil),
  jump('trunc', Math.trunc),
  jump('round', special.roundHalfEven),
  { ...jump('frac', (x) => x - Math.trunc(x)), smooth: true },
  { ...jump('isNaN', (x) => truth(Number.isNaN(x))), result: 'bool' },
  { ...jump('isFinite', (x) => truth(Number.isFinite(x))), result: 'bool' },
  { ...jump('nanToNum', (x) => (Number.isNaN(x) ? 0 : x)), noise: 'none' },
];

const fitsUnary = ({ of, domain }: UnaryRow, v: Value): boolean =>
  (of === 'float'
    ? isNumber(v)
    : of === 'floats only'
      ? isFloat(v.dtype)
      : of === 'signed'
        ? isNumber(v) && !v.dtype.startsWith('u')
        : isNumber(v)) &&
  (domain === undefined || v.data.every((x) => domain(x) || Number.isNaN(x)));

const unaryOperations = unaries.map(
  (row): Operation => ({
    name: row.name,
    ...(row.smooth ? { smooth: true } : {}),
    make: (pool) => {
      const x = pool.pick(
        (v) =>
          fitsUnary(row, v) &&
          (row.name !== 'nanToNum' || v.data.every((y) => !(Math.abs(y) === Number.POSITIVE_INFINITY))),
      );
      if (x === null) return null;
      return {
        args: [ref(x)],
        dtype: row.result ?? (row.of === 'float' ? floatOf(x.dtype) : x.dtype),
        formula: (a) => map(a as NDArray, row.f),
        noise: row.noise,
      };
    },
  }),
);

interface BinaryRow {
  readonly name: string;
  readonly f: (a: number, b: number, dtype: DType) => number;
  readonly of: 'floats' | 'numbers' | 'integers' | 'any' | 'bool' | 'bits';
  readonly noise?: Noise;
  readonly smooth?: boolean;
  readonly result?: 'bool' | 'float';
  readonly domain?: (a: number, b: number, dtype: DType) => boolean;
}

const floorDivide = (a: number, b: number, dtype: DType): number =>
  Math.floor(isFloat(dtype) ? (hold(dtype, a / b) as number) : a / b);
const remainder = (a: number, b: number): number => {
  const r = a % b;
  return r !== 0 && r < 0 !== b < 0 ? r + b : r;
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
    domain: (a, b) => Math.abs(a) + Math.abs(b) > 0.01,
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
  { name: 'equal', f: (a, b) => truth(a === b), of: 'any', result: 'bool' },
  { name: 'less', f: (a, b) => truth(a < b), of: 'numbers', result: 'bool' },
  { name: 'greaterEqual', f: (a, b) => truth(a >= b), of: 'numbers', result: 'bool' },
  { name: 'notEqual', f: (a, b) => truth(a !== b), of: 'any', result: 'bool' },
  { name: 'lessEqual', f: (a, b) => truth(a <= b), of: 'numbers', result: 'bool' },
  { name: 'greater', f: (a, b) => truth(a > b), of: 'numbers', result: 'bool' },
  { name: 'logicalAnd', f: (a, b) => truth(a !== 0 && b !== 0), of: 'any', result: 'bool' },
  { name: 'logicalXor', f: (a, b) => truth((a !== 0) !== (b !== 0)), of: 'any', result: 'bool' },
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
function weak(pool: Pool, dtype: DType): number {
  const whole = pool.c.pick([2, 1, 3, 0, 5, 7]);
  if (dtype.startsWith('u') || isInteger(dtype)) return dtype.startsWith('u') || pool.c.nat(2) === 0 ? whole : -whole;
  return pool.c.pick([2, 0.5, -1.5, 1, 0, 3, -0.25]);
}

function binary(row: BinaryRow, pool: Pool): Made | null {
  const a = pool.pick((v) => fitsBinary(row, v.dtype));
  if (a === null) return null;
  const number = pool.c.seldom(4) && a.dtype !== 'bool';
  const b = number ? null : pool.partner(a, (v) => fitsBinary(row, v.dtype) && meet(a.dtype, v.dtype) !== null);
  const value = b === null ? hold(a.dtype, weak(pool, a.dtype)) : null;
  if (b === null && a.dtype === 'bool') return null;
  const common = b === null ? a.dtype : (meet(a.dtype, b.dtype) as DType);
  const right = b ?? { shape: [], data: [value as number] };
  const swapped = b === null && pool.c.seldom(3);
  const [l, r] = swapped ? [right, a] : [a, right];
  const held = (x: number): number => hold(common, x) ?? x;
  const f = (x: number, y: number): number => row.f(held(x), held(y), common);
  const fine = zip((x, y) => truth(row.domain === undefined || row.domain(held(x), held(y), common)), l, r).data.every(
    (x) => x === 1,
  );
  if (!fine) return null;
  const args: Arg[] = b === null ? (swapped ? [value as number, ref(a)] : [ref(a), value as number]) : [ref(a), ref(b)];
  const constant: NDArray = { shape: [], data: [value ?? 0] };
  return {
    args,
    dtype: row.result === 'bool' ? 'bool' : row.result === 'float' ? floatOf(common) : common,
    formula: (x, y) => zip(f, swapped ? constant : (x as NDArray), swapped ? (x as NDArray) : (y ?? constant)),
    noise: row.noise ?? 'none',
  };
}

const binaryOperations = binaries.map(
  (row): Operation => ({
    name: row.name,
    ...(row.smooth ? { smooth: true } : {}),
    make: (pool) => binary(row, pool),
  }),
);

/** A value of a dtype in any float dtype or integer dtype and back. */
function castTo(from: DType, to: DType, x: number): number | null {
  if (to === 'bool') return truth(x !== 0);
  const format = integerFormat(to);
  if (format === null) return hold(to, x);
  if (!isFloat(from)) return hold(to, x);
  if (Number.isNaN(x)) return 0;
  const [low, high] = format.signed
    ? [-(2 ** (format.bits - 1)), 2 ** (format.bits - 1) - 1]
    : [0, 2 ** format.bits - 1];
  const cut = Math.min(high, Math.max(low, Math.trunc(x)));
  return Number.isSafeInteger(cut) ? cut : null;
}

const dtypes: readonly DType[] = [
  'float32',
  'int32',
  'bool',
  'float16',
  'bfloat16',
  'float64',
  'int8',
  'uint8',
  'int64',
  'uint16',
  'int16',
  'uint32',
  'uint64',
];

const others: readonly Operation[] = [
  {
    name: 'cast',
    make: (pool) => {
      const x = pool.pick();
      if (x === null) return null;
      const to = pool.c.pick(dtypes);
      if (x.data.some((v) => castTo(x.dtype, to, v) === null)) return null;
      return {
        args: [ref(x), to],
        dtype: to,
        formula: (a) => map(a as NDArray, (v) => castTo(x.dtype, to, v) ?? 2 ** 60),
        noise: isFloat(to) && isFloat(x.dtype) ? 'out' : 'none',
      };
    },
  },
  {
    name: 'where',
    smooth: true,
    make: (pool) => {
      const a = pool.pick();
      if (a === null) return null;
      const b = pool.partner(a, (v) => v.dtype === a.dtype);
      const m = pool.partner(a, (v) => v.dtype === 'bool');
      if (b === null || m === null) return null;
      return broadcast(m.shape, a.shape, b.shape) !== null
        ? {
            args: [ref(m), ref(a), ref(b)],
            dtype: a.dtype,
            formula: (c, x, y) => zip((p, q, r) => (p !== 0 ? q : r), c as NDArray, x as NDArray, y as NDArray),
          }
        : null;
    },
  },
  {
    name: 'maskedFill',
    smooth: true,
    make: (pool) => {
      const a = pool.pick(isNumber);
      const m = a === null ? null : pool.pick((v) => v.dtype === 'bool' && fitsInto(v.shape, a.shape));
      if (a === null || m === null) return null;
      const value = hold(a.dtype, weak(pool, a.dtype)) as number;
      return {
        args: [ref(a), ref(m), value],
        dtype: a.dtype,
        formula: (x, c) => zip((q, p) => (p !== 0 ? value : q), x as NDArray, c as NDArray),
      };
    },
  },
  {
    name: 'clip',
    smooth: true,
    make: (pool) => {
      const a = pool.pick(isNumber);
      if (a === null) return null;
      const ends = [weak(pool, a.dtype), weak(pool, a.dtype)].sort((x, y) => x - y);
      const [low, high] = ends.map((x) => hold(a.dtype, x)) as [number, number];
      return {
        args: [ref(a), low, high],
        dtype: a.dtype,
        formula: (x) => map(x as NDArray, (v) => Math.min(high, Math.max(low, v))),
      };
    },
  },
  {
    name: 'fma',
    smooth: true,
    make: (pool) => {
      const a = pool.pick((v) => isFloat(v.dtype));
      const b = a && pool.partner(a, (v) => v.dtype === a.dtype);
      const c = a && pool.partner(a, (v) => v.dtype === a.dtype);
      if (a === null || b === null || c === null || broadcast(a.shape, b.shape, c.shape) === null) return null;
      return {
        args: [ref(a), ref(b), ref(c)],
        dtype: a.dtype,
        formula: (x, y, z) => zip((p, q, r) => p * q + r, x as NDArray, y as NDArray, z as NDArray),
        noise: 'all',
      };
    },
  },
  {
    name: 'lerp',
    smooth: true,
    make: (pool) => {
      const a = pool.pick((v) => isFloat(v.dtype));
      const b = a && pool.partner(a, (v) => v.dtype === a.dtype);
      if (a === null || b === null) return null;
      const w = pool.c.pick([0.5, 0.25, 0, 1]);
      return {
        args: [ref(a), ref(b), w],
        dtype: a.dtype,
        formula: (x, y) => zip((p, q) => p + w * (q - p), x as NDArray, y as NDArray),
        noise: 'all',
      };
    },
  },
  {
    name: 'isClose',
    make: (pool) => {
      const a = pool.pick((v) => v.dtype === 'float32' || v.dtype === 'float64');
      const b = a && pool.partner(a, (v) => v.dtype === a.dtype);
      if (a === null || b === null) return null;
      const close = (x: number, y: number): number =>
        truth(
          x === y ||
            Math.abs(x - y) <= 0.1 + 0.1 * (Math.abs(y) === Number.POSITIVE_INFINITY ? Number.NaN : Math.abs(y)),
        );
      return {
        args: [ref(a), ref(b), { rtol: 0.1, atol: 0.1 }],
        dtype: 'bool',
        formula: (x, y) => zip(close, x as NDArray, y as NDArray),
      };
    },
  },
];

/** True if the small shape stretches to the large one. */
export function fitsInto(small: readonly number[], large: readonly number[]): boolean {
  return small.length <= large.length && small.every((n, i) => n === 1 || n === large[large.length - small.length + i]);
}

export const elementwise: readonly Operation[] = [...unaryOperations, ...binaryOperations, ...others];

/** Elementwise operations of one operand. Sources of formulas are in the docstrings of the functions. */
import * as pg from '@polygrad/core';
import type { DType } from '@polygrad/core';
import { map } from '../../oracle/ndarray.ts';
import { awayFromZero, integer, sample, uniform } from '../../oracle/random.ts';
import * as special from '../../oracle/special.ts';
import { clamp, logistic, softplus } from '../../oracle/special.ts';
import type { OpSpec } from '../../spec.ts';
import { castCall } from './cast.ts';
import { inIntervals } from './gamma.ts';
import { type Draw, few, many, off, type Row, type RowCase } from './row.ts';

type Unary = (x: number) => number;

export interface UnaryRow extends Row {
  readonly f: Unary;
  /** Float functions make float32 of integers; the others keep the dtype. */
  readonly of: 'float' | 'floats only' | 'numbers' | 'signed' | 'integers' | 'bool';
  /** Where random programs call it: the formula is accurate there, and the function not too steep. */
  readonly domain?: (x: number) => boolean;
  /** The dtype of its result, if that is not the operand's. */
  readonly result?: DType;
  /** How large the terms are that the function adds, where they cancel. */
  readonly terms?: Unary;
}

const { POSITIVE_INFINITY: inf } = Number;
const tanhGelu: Unary = (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
const cdf: Unary = (x) => (x < -4 ? special.erfc(-x / Math.SQRT2) / 2 : (1 + special.erf(x / Math.SQRT2)) / 2);
const sinc: Unary = (x) => (x === 0 ? 1 : Math.abs(x) === inf ? 0 : Math.sin(Math.PI * x) / (Math.PI * x));
const softsign: Unary = (x) => (Math.abs(x) === inf ? Math.sign(x) : x / (1 + Math.abs(x)));
const elu =
  (alpha: number): Unary =>
  (x) =>
    x > 0 ? x : alpha * Math.expm1(x);
const celu =
  (alpha: number): Unary =>
  (x) =>
    x > 0 ? x : alpha * Math.expm1(x / alpha);
const leaky =
  (slope: number): Unary =>
  (x) =>
    x > 0 ? x : slope * x;

const positive = (x: number): boolean => x > 1e-3;
const inside = (x: number): boolean => Math.abs(x) < 0.999;
const modest = (x: number): boolean => Math.abs(x) < 30;
const digamma: Unary = (x) => special.polygamma(0, x);
const gammaDomain = (x: number): boolean => x > 0.05 && x < 1e4;

const kinked = awayFromZero(0.1, 3);
const above = uniform(0.1, 4);
const unit = uniform(-0.9, 0.9);
const any = uniform(-3, 3);
/** Numbers with a NaN here and there. */
const spotted: Draw = (r) => {
  const value = any(r);
  return r() < 0.25 ? Number.NaN : value;
};
const strange: Draw = (r) => [1.5, -2.5, inf, -inf, Number.NaN][Math.floor(r() * 5)]!;
/** And the same of integers. */
const ofIntegers = (name: string): RowCase => ({
  name: `${name} int`,
  draw: [integer(-9, 9)],
  dtypes: ['int32'],
  order: 0,
  shapes: 'many',
});

type More = Pick<UnaryRow, 'domain' | 'terms' | 'cases' | 'specs' | 'options' | 'drawn' | 'notes'>;

/** NaN here and there in floats, each replaced by 9. */
const withNine: OpSpec<1> = {
  name: 'nanToNum',
  dtypes: ['float32', 'float64'],
  instances: [{ label: '[3,5]', draw: (r) => [sample(r, [3, 5], spotted)] }],
  run: ([x]) => pg.nanToNum(x, { nan: 9 }),
  oracle: ([x]) => map(x, (v) => (Number.isNaN(v) ? 9 : v)),
};

/** A function that kernels compute as one operation. */
const each = (name: string, f: Unary, more: More = {}): UnaryRow => ({
  name,
  f,
  of: 'float',
  noise: 'out',
  smooth: true,
  cases: many(),
  ...more,
});
/** One made of others. */
const made = (name: string, f: Unary, more: More = {}): UnaryRow => ({
  name,
  f,
  of: 'floats only',
  noise: 'all',
  smooth: true,
  ...more,
});
/** One that is constant between its jumps. */
const jump = (name: string, f: Unary, more: More = {}): UnaryRow => ({
  name,
  f,
  of: 'floats only',
  noise: 'none',
  ...more,
});
/** A test of floats. */
const test = (name: string, f: (x: number) => boolean, cases: readonly RowCase[]): UnaryRow => ({
  ...jump(name, (x) => Number(f(x)), { cases }),
  result: 'bool',
});

export const unaryRows: readonly UnaryRow[] = [
  {
    name: 'neg',
    f: (x) => -x,
    of: 'signed',
    noise: 'none',
    smooth: true,
    cases: [...many(), ofIntegers('neg')],
  },
  {
    name: 'abs',
    f: Math.abs,
    of: 'numbers',
    noise: 'none',
    smooth: true,
    cases: [...many(kinked), ofIntegers('abs')],
  },
  { name: 'sign', f: Math.sign, of: 'numbers', noise: 'none', cases: many(kinked) },
  { name: 'square', f: (x) => x * x, of: 'numbers', noise: 'out', smooth: true, cases: many() },
  each('exp', Math.exp, { domain: modest }),
  each('sin', Math.sin),
  each('cos', Math.cos),
  each('tanh', Math.tanh),
  each('sqrt', Math.sqrt, { domain: positive, cases: many(above) }),
  each('log', Math.log, { domain: positive, cases: many(above) }),
  each('reciprocal', (x) => 1 / x, { domain: (x) => Math.abs(x) > 1e-2, cases: many(kinked) }),
  each('exp2', (x) => 2 ** x, { domain: modest }),
  each('expm1', Math.expm1, { domain: modest }),
  each('log1p', Math.log1p, { domain: (x) => x > -0.99, cases: many(uniform(-0.9, 4)) }),
  each('log2', Math.log2, { domain: positive, cases: many(above) }),
  each('rsqrt', (x) => 1 / Math.sqrt(x), { domain: positive, cases: many(above) }),
  each('tan', Math.tan, { domain: modest, cases: many(uniform(-1.2, 1.2)) }),
  each('atan', Math.atan),
  each('asin', Math.asin, { domain: inside, cases: many(unit) }),
  each('acos', Math.acos, { domain: inside, cases: many(unit) }),
  each('sinh', Math.sinh, { domain: modest }),
  each('cosh', Math.cosh, { domain: modest }),
  each('erf', special.erf),
  made('log10', Math.log10, { domain: positive, cases: few(uniform(0.1, 200)) }),
  made('cbrt', Math.cbrt, { domain: (x) => x !== 0, cases: few(awayFromZero(0.1, 9)) }),
  made('asinh', Math.asinh, { cases: [...few(), ...few(uniform(-1e-3, 1e-3), { name: 'asinh around zero' })] }),
  made('acosh', Math.acosh, { domain: (x) => x > 1.01, cases: few(uniform(1.05, 9)) }),
  made('atanh', Math.atanh, { domain: inside, cases: few(uniform(-0.95, 0.95)) }),
  made('sigmoid', logistic, { cases: many() }),
  made('silu', (x) => x * logistic(x), { cases: many() }),
  made('softplus', softplus, { cases: many() }),
  made('logSigmoid', (x) => -softplus(-x), { cases: few() }),
  made('softsign', softsign, { cases: few(off([0])) }),
  made('tanhShrink', (x) => x - Math.tanh(x), { terms: Math.abs, cases: few() }),
  made('mish', (x) => x * Math.tanh(softplus(x)), { cases: few() }),
  // 1 + erf(x / sqrt(2)), and 1 + tanh, lose their digits far below zero.
  made('gelu', (x) => x * cdf(x), { domain: modest, terms: Math.abs, cases: many() }),
  made('elu', elu(1), { cases: many(kinked) }),
  made('celu', celu(1)),
  made('selu', (x) => 1.0507009873554805 * elu(1.6732632423543772)(x), { cases: few(off([0])) }),
  made('erfc', special.erfc, { domain: modest, specs: [inIntervals('erfc', special.erfc)] }),
  made('hardSwish', (x) => (x * clamp(x + 3, 0, 6)) / 6, { cases: few(off([-3, 3])) }),
  made('hardSigmoid', (x) => clamp(x / 6 + 0.5, 0, 1), { cases: few(off([-3, 3])) }),
  made('gelu', tanhGelu, {
    domain: modest,
    terms: Math.abs,
    options: { approximate: 'tanh' },
    cases: many(any, { name: 'gelu tanh' }),
  }),
  made('elu', elu(0.5), { options: { alpha: 0.5 }, cases: few(off([0]), { name: 'elu with alpha' }) }),
  made('celu', celu(2), { options: { alpha: 2 }, cases: few(off([0])) }),
  made('leakyRelu', leaky(0.01), { cases: many(kinked) }),
  made('leakyRelu', leaky(-0.5), { options: { slope: -0.5 } }),
  made('softShrink', (x) => (Number.isNaN(x) ? x : Math.sign(x) * Math.max(0, Math.abs(x) - 0.5)), {
    cases: few(off([-0.5, 0.5])),
  }),
  {
    ...made('threshold', (x) => (x <= 0.25 ? -2 : x), { options: { threshold: 0.25, value: -2 } }),
    noise: 'none',
    cases: few(off([0.25])),
  },
  made('erfinv', special.erfinv, { domain: (x) => Math.abs(x) < 0.99, specs: [inIntervals('erfinv', special.erfinv)] }),
  made('lgamma', special.lgamma, { domain: gammaDomain, specs: [inIntervals('lgamma', special.lgamma)] }),
  made('digamma', digamma, { domain: gammaDomain, specs: [inIntervals('digamma', digamma)] }),
  made('sinc', sinc, { cases: few() }),
  { ...jump('relu', (x) => Math.max(x, 0), { cases: many(kinked) }), smooth: true },
  { ...jump('relu6', (x) => clamp(x, 0, 6), { cases: few(off([0, 6], uniform(-9, 9))) }), smooth: true },
  { ...jump('hardTanh', (x) => clamp(x, -1, 1), { cases: few(off([-1, 1])) }), smooth: true },
  {
    ...made('hardShrink', (x) => (Math.abs(x) > 0.5 || Number.isNaN(x) ? x : 0)),
    noise: 'none',
    cases: few(off([-0.5, 0.5])),
  },
  { ...jump('hardTanh', (x) => clamp(x, -2, 0.5), { options: { low: -2, high: 0.5 } }), smooth: true },
  { name: 'bitwiseNot', f: (x) => Number(~BigInt(x)), of: 'integers', noise: 'none' },
  {
    name: 'logicalNot',
    f: (x) => Number(x === 0),
    of: 'bool',
    noise: 'none',
    result: 'bool',
    cases: many(integer(0, 1), { dtypes: ['bool'], order: 0 }),
  },
  test('isInf', (x) => Math.abs(x) === inf, few(strange, { order: 0 })),
  jump('floor', Math.floor, { cases: many() }),
  jump('ceil', Math.ceil, { cases: many() }),
  jump('trunc', Math.trunc, { cases: many() }),
  jump('round', special.roundHalfEven, { cases: many() }),
  { ...jump('frac', (x) => x - Math.trunc(x), { cases: few(off([-2, -1, 0, 1, 2])) }), smooth: true },
  test(
    'isNaN',
    Number.isNaN,
    many((r) => (r() < 0.3 ? Number.NaN : any(r)), { order: 0 }),
  ),
  test('isFinite', Number.isFinite, few(strange, { order: 0 })),
  // Infinities become the largest numbers of a dtype.
  { ...jump('nanToNum', (x) => (Number.isNaN(x) ? 0 : x), { domain: (x) => Math.abs(x) !== inf, specs: [withNine] }) },
  jump('nanToNum', (x) => (Number.isNaN(x) ? 3 : clamp(x, -100, 100)), {
    options: { nan: 3, posInf: 100, negInf: -100 },
    drawn: false,
    cases: few(strange, { order: 0 }),
  }),
  made('softplus', (x) => softplus(2.5 * x) / 2.5, {
    options: { beta: 2.5 },
    drawn: false,
    cases: few(any, { name: 'softplus with beta' }),
  }),
  {
    ...jump('cast', Math.trunc, { options: 'int32', drawn: false }),
    calls: [castCall],
    notes: { orders: '1: the cast back' },
    result: 'int32',
    cases: many(uniform(-100, 100), { name: 'cast to int32', order: 0 }),
  },
  {
    ...jump('cast', (x) => x, { options: 'float64', drawn: false }),
    result: 'float64',
    cases: many(integer(-9, 9), { name: 'cast to float64', dtypes: ['float32', 'int32'], order: 0 }),
  },
];

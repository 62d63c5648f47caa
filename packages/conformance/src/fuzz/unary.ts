/** Random calls of elementwise operations of one operand. */
import type { DType } from '@polygrad/core';
import { map, type NDArray } from '../oracle/ndarray.ts';
import * as special from '../oracle/special.ts';
import { floatOf, isFloat, isInteger, isNumber, type Operation, ref } from './pool.ts';
import type { Arg, Noise, Value } from './program.ts';
import { logistic, softplus } from '../oracle/special.ts';

type Unary = (x: number) => number;
const tanhGelu: Unary = (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
const cdf: Unary = (x) => (x < -4 ? special.erfc(-x / Math.SQRT2) / 2 : (1 + special.erf(x / Math.SQRT2)) / 2);

interface UnaryRow {
  readonly name: string;
  readonly f: Unary;
  /** Float functions make float32 of integers; the others keep the dtype. */
  readonly of: 'float' | 'floats only' | 'numbers' | 'signed' | 'integers' | 'bool';
  readonly noise: Noise;
  readonly smooth?: boolean;
  readonly domain?: (x: number) => boolean;
  readonly result?: DType;
  readonly rest?: readonly Arg[];
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
  { ...made('gelu', tanhGelu, modest), rest: [{ approximate: 'tanh' }] },
  { ...made('elu', (x) => (x > 0 ? x : 0.5 * Math.expm1(x))), rest: [{ alpha: 0.5 }] },
  { ...made('celu', (x) => (x > 0 ? x : 2 * Math.expm1(x / 2))), rest: [{ alpha: 2 }] },
  made('leakyRelu', (x) => (x > 0 ? x : 0.01 * x)),
  { ...made('leakyRelu', (x) => (x > 0 ? x : -0.5 * x)), rest: [{ slope: -0.5 }] },
  made('softShrink', (x) => (Number.isNaN(x) ? x : Math.sign(x) * Math.max(0, Math.abs(x) - 0.5))),
  { ...made('threshold', (x) => (x <= 0.25 ? -2 : x)), noise: 'none', rest: [{ threshold: 0.25, value: -2 }] },
  made('erfinv', special.erfinv, (x) => Math.abs(x) < 0.99),
  made('lgamma', special.lgamma, (x) => x > 0.05 && x < 1e4),
  made(
    'digamma',
    (x) => special.polygamma(0, x),
    (x) => x > 0.05 && x < 1e4,
  ),
  made('sinc', (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x))),
  { ...jump('relu', (x) => Math.max(x, 0)), smooth: true },
  { ...jump('relu6', (x) => Math.min(6, Math.max(x, 0))), smooth: true },
  { ...jump('hardTanh', (x) => Math.min(1, Math.max(x, -1))), smooth: true },
  { ...made('hardShrink', (x) => (Math.abs(x) > 0.5 || Number.isNaN(x) ? x : 0)), noise: 'none' },
  { ...jump('hardTanh', (x) => Math.min(0.5, Math.max(x, -2))), smooth: true, rest: [{ low: -2, high: 0.5 }] },
  { name: 'bitwiseNot', f: (x) => Number(~BigInt(x)), of: 'integers', noise: 'none' },
  { name: 'logicalNot', f: (x) => Number(x === 0), of: 'bool', noise: 'none' },
  { ...jump('isInf', (x) => Number(Math.abs(x) === Number.POSITIVE_INFINITY)), result: 'bool' },
  jump('floor', Math.floor),
  jump('ceil', Math.ceil),
  jump('trunc', Math.trunc),
  jump('round', special.roundHalfEven),
  { ...jump('frac', (x) => x - Math.trunc(x)), smooth: true },
  { ...jump('isNaN', (x) => Number(Number.isNaN(x))), result: 'bool' },
  { ...jump('isFinite', (x) => Number(Number.isFinite(x))), result: 'bool' },
  { ...jump('nanToNum', (x) => (Number.isNaN(x) ? 0 : x)), noise: 'none' },
];

const fitsUnary = ({ of, domain }: UnaryRow, v: Value): boolean =>
  (of === 'bool'
    ? v.dtype === 'bool'
    : of === 'integers'
      ? isInteger(v.dtype)
      : of === 'float'
        ? isNumber(v)
        : of === 'floats only'
          ? isFloat(v.dtype)
          : of === 'signed'
            ? isNumber(v) && !v.dtype.startsWith('u')
            : isNumber(v)) &&
  (domain === undefined || v.data.every((x) => domain(x) || Number.isNaN(x)));

export const unary: readonly Operation[] = unaries.map(
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
        args: [ref(x), ...(row.rest ?? [])],
        dtype: row.result ?? (row.of === 'float' ? floatOf(x.dtype) : x.dtype),
        formula: (a) => map(a as NDArray, row.f),
        noise: row.noise,
      };
    },
  }),
);

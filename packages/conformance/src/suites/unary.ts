/** Elementwise operations of one operand. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { zip } from '../oracle/ndarray.ts';
import { awayFromZero, integer, type Random, sample, uniform } from '../oracle/random.ts';
import { erf, logistic, roundHalfEven } from '../oracle/special.ts';
import type { OpSpec } from '../spec.ts';
import { anyShapes } from './shapes.ts';

type Draw = (r: Random) => number;
const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-3, 3);
const positive = uniform(0.1, 4);
const kinked = awayFromZero(0.1, 3);
const whole = integer(-9, 9);

interface Unary {
  readonly name: string;
  readonly run: (x: Tensor) => Tensor;
  readonly f: (x: number) => number;
  readonly draw?: Draw;
  readonly dtypes?: readonly DType[];
  /** Orders of derivative to check; 2 if left out, 0 for none. */
  readonly order?: 0 | 1 | 2;
  readonly result?: DType;
}

const unary: readonly Unary[] = [
  { name: 'neg', run: pg.neg, f: (x) => -x },
  { name: 'neg int', run: pg.neg, f: (x) => -x, draw: whole, dtypes: ['int32'], order: 0 },
  { name: 'abs', run: pg.abs, f: Math.abs, draw: kinked },
  { name: 'abs int', run: pg.abs, f: Math.abs, draw: whole, dtypes: ['int32'], order: 0 },
  { name: 'sign', run: pg.sign, f: Math.sign, draw: kinked },
  { name: 'square', run: pg.square, f: (x) => x * x },
  { name: 'sqrt', run: pg.sqrt, f: Math.sqrt, draw: positive },
  { name: 'rsqrt', run: pg.rsqrt, f: (x) => 1 / Math.sqrt(x), draw: positive },
  { name: 'reciprocal', run: pg.reciprocal, f: (x) => 1 / x, draw: kinked },
  { name: 'exp', run: pg.exp, f: Math.exp },
  { name: 'exp2', run: pg.exp2, f: (x) => 2 ** x },
  { name: 'expm1', run: pg.expm1, f: Math.expm1 },
  { name: 'log', run: pg.log, f: Math.log, draw: positive },
  { name: 'log2', run: pg.log2, f: Math.log2, draw: positive },
  { name: 'log1p', run: pg.log1p, f: Math.log1p, draw: uniform(-0.9, 4) },
  { name: 'sin', run: pg.sin, f: Math.sin },
  { name: 'cos', run: pg.cos, f: Math.cos },
  { name: 'tan', run: pg.tan, f: Math.tan, draw: uniform(-1.2, 1.2) },
  { name: 'asin', run: pg.asin, f: Math.asin, draw: uniform(-0.9, 0.9) },
  { name: 'acos', run: pg.acos, f: Math.acos, draw: uniform(-0.9, 0.9) },
  { name: 'atan', run: pg.atan, f: Math.atan },
  { name: 'sinh', run: pg.sinh, f: Math.sinh },
  { name: 'cosh', run: pg.cosh, f: Math.cosh },
  { name: 'tanh', run: pg.tanh, f: Math.tanh },
  { name: 'erf', run: pg.erf, f: erf },
  { name: 'floor', run: pg.floor, f: Math.floor },
  { name: 'ceil', run: pg.ceil, f: Math.ceil },
  { name: 'trunc', run: pg.trunc, f: Math.trunc },
  { name: 'round', run: pg.round, f: roundHalfEven },
  { name: 'relu', run: pg.relu, f: (x) => Math.max(x, 0), draw: kinked },
  { name: 'leakyRelu', run: (x) => pg.leakyRelu(x), f: (x) => (x > 0 ? x : 0.01 * x), draw: kinked },
  { name: 'elu', run: (x) => pg.elu(x), f: (x) => (x > 0 ? x : Math.expm1(x)), draw: kinked },
  { name: 'sigmoid', run: pg.sigmoid, f: logistic },
  { name: 'softplus', run: (x) => pg.softplus(x), f: (x) => Math.log1p(Math.exp(x)) },
  { name: 'silu', run: pg.silu, f: (x) => x * logistic(x) },
  { name: 'gelu', run: (x) => pg.gelu(x), f: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)) },
  {
    name: 'gelu tanh',
    run: (x) => pg.gelu(x, { approximate: 'tanh' }),
    f: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  },
  {
    name: 'isNaN',
    run: pg.isNaN,
    f: (x) => (Number.isNaN(x) ? 1 : 0),
    draw: (r) => (r() < 0.3 ? Number.NaN : any(r)),
    result: 'bool',
    order: 0,
  },
  {
    name: 'logicalNot',
    run: pg.logicalNot,
    f: (x) => (x === 0 ? 1 : 0),
    draw: integer(0, 1),
    dtypes: ['bool'],
    result: 'bool',
    order: 0,
  },
  {
    name: 'cast to int32',
    run: (x) => pg.cast(x, 'int32'),
    f: Math.trunc,
    draw: uniform(-100, 100),
    result: 'int32',
    order: 0,
  },
  {
    name: 'cast to float64',
    run: (x) => pg.cast(x, 'float64'),
    f: (x) => x,
    draw: whole,
    dtypes: ['float32', 'int32'],
    result: 'float64',
    order: 0,
  },
];

export function unarySpecs(): OpSpec[] {
  return unary.map((u) => ({
    name: u.name,
    dtypes: u.dtypes ?? floats,
    instances: anyShapes.map(({ label, shape, small }) => ({
      label,
      small,
      draw: (r: Random) => [sample(r, shape, u.draw ?? any)],
    })),
    run: ([x]) => u.run(x as Tensor),
    oracle: ([x]) => zip(u.f, x as never),
    ...(u.result ? { result: u.result } : {}),
    ...(u.order === 0 ? {} : { gradient: { of: [0], order: u.order ?? 2 } }),
  }));
}

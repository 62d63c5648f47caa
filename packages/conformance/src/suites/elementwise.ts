/** Elementwise operations of one, two and three operands. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { broadcastShapes, count, zip } from '../oracle/ndarray.ts';
import { awayFromZero, integer, type Random, sample, uniform } from '../oracle/random.ts';
import { erf, pow, roundHalfEven } from '../oracle/special.ts';
import type { OpSpec } from '../spec.ts';
import { anyShapes, broadcastPairs } from './shapes.ts';

type Draw = (r: Random) => number;
const floats: readonly DType[] = ['float32', 'float64'];
const numeric: readonly DType[] = ['float32', 'float64', 'int32'];
const all: readonly DType[] = ['float32', 'float64', 'int32', 'uint32'];
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

const logistic = (x: number): number => 1 / (1 + Math.exp(-x));
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

interface Binary {
  readonly name: string;
  readonly run: (a: Tensor, b: Tensor) => Tensor;
  readonly f: (a: number, b: number) => number;
  readonly left?: Draw;
  readonly right?: Draw;
  readonly dtypes?: readonly DType[];
  readonly order?: 0 | 1 | 2;
  readonly result?: DType;
}

const truth = (x: boolean): number => (x ? 1 : 0);
const few = integer(-2, 2);
const natural = integer(0, 40);
const binary: readonly Binary[] = [
  { name: 'add', run: pg.add, f: (a, b) => a + b },
  { name: 'add int', run: pg.add, f: (a, b) => a + b, left: natural, right: natural, dtypes: all, order: 0 },
  { name: 'sub', run: pg.sub, f: (a, b) => a - b },
  { name: 'mul', run: pg.mul, f: (a, b) => a * b },
  { name: 'mul int', run: pg.mul, f: (a, b) => a * b, left: natural, right: natural, dtypes: all, order: 0 },
  { name: 'div', run: pg.div, f: (a, b) => a / b, right: kinked },
  {
    name: 'floorDivide',
    run: pg.floorDivide,
    f: (a, b) => Math.floor(a / b),
    left: whole,
    right: awayInt(),
    dtypes: numeric,
    order: 0,
  },
  {
    name: 'remainder',
    run: pg.remainder,
    f: (a, b) => a - b * Math.floor(a / b),
    left: whole,
    right: awayInt(),
    dtypes: numeric,
    order: 0,
  },
  { name: 'pow', run: pg.pow, f: pow, left: positive, right: uniform(-2, 2) },
  { name: 'atan2', run: pg.atan2, f: Math.atan2, left: kinked, right: kinked },
  { name: 'maximum', run: pg.maximum, f: Math.max },
  { name: 'minimum', run: pg.minimum, f: Math.min },
  { name: 'maximum int', run: pg.maximum, f: Math.max, left: whole, right: whole, dtypes: ['int32'], order: 0 },
  {
    name: 'less',
    run: pg.less,
    f: (a, b) => truth(a < b),
    left: few,
    right: few,
    dtypes: numeric,
    result: 'bool',
    order: 0,
  },
  {
    name: 'lessEqual',
    run: pg.lessEqual,
    f: (a, b) => truth(a <= b),
    left: few,
    right: few,
    dtypes: numeric,
    result: 'bool',
    order: 0,
  },
  {
    name: 'equal',
    run: pg.equal,
    f: (a, b) => truth(a === b),
    left: few,
    right: few,
    dtypes: numeric,
    result: 'bool',
    order: 0,
  },
  {
    name: 'notEqual',
    run: pg.notEqual,
    f: (a, b) => truth(a !== b),
    left: few,
    right: few,
    dtypes: numeric,
    result: 'bool',
    order: 0,
  },
  {
    name: 'greater',
    run: pg.greater,
    f: (a, b) => truth(a > b),
    left: few,
    right: few,
    dtypes: numeric,
    result: 'bool',
    order: 0,
  },
  {
    name: 'logicalAnd',
    run: pg.logicalAnd,
    f: (a, b) => truth(a !== 0 && b !== 0),
    left: integer(0, 1),
    right: integer(0, 1),
    dtypes: ['bool'],
    result: 'bool',
    order: 0,
  },
  {
    name: 'logicalOr',
    run: pg.logicalOr,
    f: (a, b) => truth(a !== 0 || b !== 0),
    left: integer(0, 1),
    right: integer(0, 1),
    dtypes: ['bool'],
    result: 'bool',
    order: 0,
  },
  {
    name: 'bitwiseXor',
    run: pg.bitwiseXor,
    f: (a, b) => a ^ b,
    left: natural,
    right: natural,
    dtypes: ['int32', 'uint32'],
    order: 0,
  },
  {
    name: 'leftShift',
    run: pg.leftShift,
    f: (a, b) => a << b,
    left: natural,
    right: integer(0, 8),
    dtypes: ['int32', 'uint32'],
    order: 0,
  },
];

function awayInt(): Draw {
  return (r) => (r() < 0.5 ? -1 : 1) * integer(1, 5)(r);
}

export function elementwiseSpecs(): OpSpec[] {
  const specs: OpSpec[] = unary.map((u) => ({
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
  for (const b of binary) {
    specs.push({
      name: b.name,
      dtypes: b.dtypes ?? floats,
      instances: broadcastPairs.map(([l, r]) => ({
        label: `[${l}] with [${r}]`,
        small: count(broadcastShapes(l, r)) <= 12,
        draw: (random: Random) => [sample(random, l, b.left ?? any), sample(random, r, b.right ?? any)],
      })),
      run: ([x, y]) => b.run(x as Tensor, y as Tensor),
      oracle: ([x, y]) => zip(b.f, x as never, y as never),
      ...(b.result ? { result: b.result } : {}),
      ...(b.order === 0 ? {} : { gradient: { of: [0, 1], order: b.order ?? 2 } }),
    });
  }
  specs.push(whereSpec(), clipSpec(), fmaSpec());
  return specs;
}

function whereSpec(): OpSpec {
  return {
    name: 'where',
    dtypes: numeric,
    inputDTypes: { 0: 'bool' },
    instances: [
      { c: [], a: [3], b: [] },
      { c: [5], a: [5], b: [5] },
      { c: [2, 1], a: [1, 3], b: [2, 3] },
      { c: [67], a: [67], b: [1] },
    ].map(({ c, a, b }) => ({
      label: `[${c}] [${a}] [${b}]`,
      small: count(broadcastShapes(c, a, b)) <= 12,
      draw: (r: Random) => [sample(r, c, integer(0, 1)), sample(r, a, whole), sample(r, b, whole)],
    })),
    run: ([c, a, b]) => pg.where(c as Tensor, a as Tensor, b as Tensor),
    oracle: ([c, a, b]) => zip((p, x, y) => (p ? (x as number) : (y as number)), c as never, a as never, b as never),
    gradient: { of: [1, 2], order: 2 },
  };
}

function clipSpec(): OpSpec {
  return {
    name: 'clip',
    dtypes: floats,
    instances: anyShapes.map(({ label, shape, small }) => ({
      label,
      small,
      draw: (r: Random) => [sample(r, shape, any)],
    })),
    run: ([x]) => pg.clip(x as Tensor, -1, 1.5),
    oracle: ([x]) => zip((v) => Math.min(Math.max(v, -1), 1.5), x as never),
    gradient: { of: [0], order: 2 },
  };
}

function fmaSpec(): OpSpec {
  return {
    name: 'fma',
    dtypes: floats,
    instances: [
      [[5], [5], [5]],
      [[67], [], [67]],
      [[2, 1], [3], [2, 3]],
      [[0], [1], []],
    ].map((shapes) => ({
      label: shapes.map((shape) => `[${shape}]`).join(' '),
      small: true,
      draw: (r: Random) => shapes.map((shape) => sample(r, shape, any)),
    })),
    run: ([a, b, c]) => pg.fma(a as Tensor, b as Tensor, c as Tensor),
    oracle: ([a, b, c]) =>
      zip((x, y, z) => (x as number) * (y as number) + (z as number), a as never, b as never, c as never),
    gradient: { of: [0, 1, 2], order: 2 },
  };
}

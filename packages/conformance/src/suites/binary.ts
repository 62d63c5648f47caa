/** Elementwise operations of two operands, which broadcast against each other. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { broadcastShapes, count, zip } from '../oracle/ndarray.ts';
import { awayFromZero, integer, type Random, sample, uniform } from '../oracle/random.ts';
import { pow } from '../oracle/special.ts';
import type { OpSpec } from '../spec.ts';
import { broadcastPairs } from './shapes.ts';

type Draw = (r: Random) => number;
const floats: readonly DType[] = ['float32', 'float64'];
const numeric: readonly DType[] = ['float32', 'float64', 'int32'];
const all: readonly DType[] = ['float32', 'float64', 'int32', 'uint32'];
const any = uniform(-3, 3);
const positive = uniform(0.1, 4);
const kinked = awayFromZero(0.1, 3);
const whole = integer(-9, 9);

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
    f: (a, b) => Number(a < b),
    left: few,
    right: few,
    dtypes: numeric,
    result: 'bool',
    order: 0,
  },
  {
    name: 'lessEqual',
    run: pg.lessEqual,
    f: (a, b) => Number(a <= b),
    left: few,
    right: few,
    dtypes: numeric,
    result: 'bool',
    order: 0,
  },
  {
    name: 'equal',
    run: pg.equal,
    f: (a, b) => Number(a === b),
    left: few,
    right: few,
    dtypes: numeric,
    result: 'bool',
    order: 0,
  },
  {
    name: 'notEqual',
    run: pg.notEqual,
    f: (a, b) => Number(a !== b),
    left: few,
    right: few,
    dtypes: numeric,
    result: 'bool',
    order: 0,
  },
  {
    name: 'greater',
    run: pg.greater,
    f: (a, b) => Number(a > b),
    left: few,
    right: few,
    dtypes: numeric,
    result: 'bool',
    order: 0,
  },
  {
    name: 'logicalAnd',
    run: pg.logicalAnd,
    f: (a, b) => Number(a !== 0 && b !== 0),
    left: integer(0, 1),
    right: integer(0, 1),
    dtypes: ['bool'],
    result: 'bool',
    order: 0,
  },
  {
    name: 'logicalOr',
    run: pg.logicalOr,
    f: (a, b) => Number(a !== 0 || b !== 0),
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

export function binarySpecs(): OpSpec[] {
  return binary.map((b) => ({
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
  }));
}

/** Elementwise operations without slopes: tests of floats, comparisons, bits. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { broadcastShapes, count, type NDArray, zip } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';
import { clamp } from '../oracle/special.ts';

type Draw = (r: Random) => number;
const floats: readonly DType[] = ['float32', 'float64'];
const shapes = [[], [7], [2, 5], [4, 33]];
const pairs = [
  [[], []],
  [[5], [5]],
  [
    [3, 1],
    [1, 4],
  ],
  [[67], []],
] as const;

const any = uniform(-3, 3);
const whole = integer(0, 30);
const special: Draw = (r) =>
  [1.5, -2.5, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN][Math.floor(r() * 5)] as number;

interface Unary {
  readonly name: string;
  readonly run: (x: Tensor) => Tensor;
  readonly f: (x: number) => number;
  readonly draw?: Draw;
  readonly result?: DType;
}

const unary: readonly Unary[] = [
  {
    name: 'isInf',
    run: pg.isInf,
    f: (x) => Number(Math.abs(x) === Number.POSITIVE_INFINITY),
    draw: special,
    result: 'bool',
  },
  {
    name: 'isFinite',
    run: pg.isFinite,
    f: (x) => Number(Number.isFinite(x)),
    draw: special,
    result: 'bool',
  },
  {
    name: 'nanToNum',
    run: (x) => pg.nanToNum(x, { nan: 3, posInf: 100, negInf: -100 }),
    f: (x) => (Number.isNaN(x) ? 3 : clamp(x, -100, 100)),
    draw: special,
  },
];

interface Binary {
  readonly name: string;
  readonly run: (a: Tensor, b: Tensor) => Tensor;
  readonly f: (a: number, b: number) => number;
  readonly left?: Draw;
  readonly right?: Draw;
  readonly dtypes?: readonly DType[];
  readonly result?: DType;
}

const integers: readonly DType[] = ['int32', 'uint32'];
const few = integer(0, 2);
const binary: readonly Binary[] = [
  {
    name: 'greaterEqual',
    run: pg.greaterEqual,
    f: (a, b) => Number(a >= b),
    left: few,
    right: few,
    result: 'bool',
  },
  {
    name: 'isClose',
    run: (a, b) => pg.isClose(a, b, { rtol: 0, atol: 1 }),
    f: (a, b) => Number(Math.abs(a - b) <= 1),
    left: integer(-3, 3),
    right: integer(-3, 3),
    result: 'bool',
  },
  {
    name: 'logicalXor',
    run: pg.logicalXor,
    f: (a, b) => Number((a !== 0) !== (b !== 0)),
    left: few,
    right: few,
    result: 'bool',
  },
  {
    name: 'bitwiseAnd',
    run: pg.bitwiseAnd,
    f: (a, b) => a & b,
    left: whole,
    right: whole,
    dtypes: integers,
  },
  { name: 'bitwiseOr', run: pg.bitwiseOr, f: (a, b) => a | b, left: whole, right: whole, dtypes: integers },
  {
    name: 'rightShift',
    run: pg.rightShift,
    f: (a, b) => a >> b,
    left: whole,
    right: integer(0, 4),
    dtypes: integers,
  },
];

export function predicateSpecs(): OpSpec[] {
  return [
    ...unary.map(
      ({ name, run, f, draw = any, result }): OpSpec => ({
        name,
        dtypes: floats,
        instances: shapes.map((shape) => ({
          label: `[${shape}]`,
          small: count(shape) <= 12,
          draw: (r) => [sample(r, shape, draw)],
        })),
        run: ([x]) => run(x as Tensor),
        oracle: ([x]) => zip(f, x as NDArray),
        ...(result ? { result } : {}),
      }),
    ),
    ...binary.map(
      ({ name, run, f, left = any, right = any, dtypes = floats, result }): OpSpec => ({
        name,
        dtypes,
        instances: pairs.map(([l, r]) => ({
          label: `[${l}] with [${r}]`,
          small: count(broadcastShapes(l, r)) <= 12,
          draw: (random) => [sample(random, l, left), sample(random, r, right)],
        })),
        run: ([a, b]) => run(a as Tensor, b as Tensor),
        oracle: ([a, b]) => zip(f, a as NDArray, b as NDArray),
        ...(result ? { result } : {}),
      }),
    ),
  ];
}

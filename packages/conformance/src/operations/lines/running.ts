/** Running results along an axis, from either end, and differences of neighbours. */
import * as pg from '@polygrad/core';
import type { DType } from '@polygrad/core';
import { alongLines, linesOf } from '../../oracle/lines.ts';
import { count, nd, type NDArray } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, samples, uniform } from '../../oracle/random.ts';
import { logSum } from '../../oracle/sums.ts';
import { isFloat, isNumber, type Made, type Pool, ref, wide } from '../../programs/pool.ts';
import type { Noise } from '../../programs/program.ts';
import { floats, type Inputs, type OpSpec, type Options, spec } from '../../spec.ts';
import { functionOf, type OperationRow, smooth } from '../row.ts';
import { any, instancesOf, lineCases } from './lines.ts';

interface RunningCase {
  /** The operation's name if left out. */
  readonly name?: string;
  readonly draw?: (r: Random) => number;
  readonly dtypes?: readonly DType[];
  /** Ways that shapes are tried with; from the front alone if left out. */
  readonly ways?: readonly Options[];
  /** 2 if left out. */
  readonly order?: 0 | 2;
}

interface RunningRow {
  readonly name: string;
  /** Before the first element, and from what was before and an element. */
  readonly first: number;
  readonly step: (before: number, x: number) => number;
  readonly of: 'numbers' | 'floats';
  readonly result?: (dtype: DType) => DType;
  readonly noise?: Noise;
  readonly exclusive?: boolean;
  /** Each element sums or multiplies those before it. */
  readonly sums?: boolean;
  readonly cases: readonly RunningCase[];
}

const ends: readonly Options[] = [{}, { reverse: true }];
const allWays: readonly Options[] = [...ends, { exclusive: true }, { reverse: true, exclusive: true }];
const withZeros = (r: Random): number => (r() < 0.3 ? 0 : 0.6 + 0.8 * r());

const rows: readonly RunningRow[] = [
  {
    name: 'cumSum',
    first: 0,
    step: (a, b) => a + b,
    of: 'numbers',
    result: wide,
    noise: 'steps',
    exclusive: true,
    sums: true,
    cases: [{ ways: allWays }, { name: 'cumSum int', draw: integer(-9, 9), dtypes: ['int32'], order: 0 }],
  },
  {
    name: 'cumProd',
    first: 1,
    step: (a, b) => a * b,
    of: 'floats',
    noise: 'steps',
    exclusive: true,
    sums: true,
    cases: [
      { draw: uniform(0.6, 1.4), ways: allWays },
      { name: 'cumProd with zeros', draw: withZeros, ways: allWays },
    ],
  },
  {
    name: 'cumMax',
    first: Number.NEGATIVE_INFINITY,
    step: Math.max,
    of: 'numbers',
    cases: [{ ways: ends }, { name: 'cumMax int', draw: integer(-9, 9), dtypes: ['int32'], order: 0 }],
  },
  {
    name: 'cumMin',
    first: Number.POSITIVE_INFINITY,
    step: Math.min,
    of: 'numbers',
    cases: [{ ways: ends }, { name: 'cumMin uint', draw: integer(0, 9), dtypes: ['uint32'], order: 0 }],
  },
  {
    name: 'logCumSumExp',
    first: Number.NEGATIVE_INFINITY,
    step: (a, b) => logSum([a, b]),
    of: 'floats',
    noise: 'steps',
    cases: [{ ways: ends }, { name: 'logCumSumExp far apart', draw: uniform(-300, 300), order: 0 }],
  },
];

function running({ first, step }: RunningRow, { reverse, exclusive }: Options): (line: number[]) => number[] {
  return (line) => {
    let value = first;
    const inOrder = reverse ? [...line].reverse() : line;
    const result = inOrder.map((x) => {
      const before = value;
      value = step(value, x);
      return exclusive ? before : value;
    });
    return reverse ? result.reverse() : result;
  };
}

function specOf(
  row: RunningRow,
  { name = row.name, draw = any, dtypes = floats, ways, order = 2 }: RunningCase,
): OpSpec<1> {
  return {
    name,
    dtypes,
    instances: instancesOf(draw, ways),
    run: ([x], o) => functionOf(row.name)(x, o),
    oracle: ([x], o) => alongLines(x, o.axis as number, running(row, o)),
    ...(row.result === undefined ? {} : { result: row.result }),
    ...(row.sums && order > 0 ? { terms: ([x]: Inputs<1, NDArray>) => 2 * count(x.shape) } : {}),
    ...(order === 0 ? {} : { gradient: { of: [0], order } }),
  };
}

function runningCall(row: RunningRow, pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length > 0 && (row.of === 'floats' ? isFloat(v.dtype) : isNumber(v)));
  if (x === null) return null;
  const [axis, written] = pool.axis(x.shape.length);
  const reverse = pool.c.seldom(3);
  const exclusive = row.exclusive === true && pool.c.seldom(3);
  const dtype = row.result?.(x.dtype) ?? x.dtype;
  return {
    args: [ref(x), { axis: written, ...(reverse ? { reverse } : {}), ...(exclusive ? { exclusive } : {}) }],
    dtype,
    formula: (a) => alongLines(a, axis, running(row, { reverse, exclusive })),
    noise: row.noise ?? 'none',
    ordered: row.noise === undefined || !isFloat(dtype),
  };
}

function diffSpecs(): OpSpec[] {
  const differences = (line: number[], n: number): number[] =>
    n === 0
      ? line
      : differences(
          line.slice(1).map((x, i) => x - line[i]!),
          n - 1,
        );
  return [
    spec<1>({
      name: 'diff',
      dtypes: ['float32', 'float64', 'int32'],
      instances: lineCases
        .filter(({ shape }) => shape.length > 0)
        .flatMap(({ shape, axis }) =>
          [1, 2, 0].map((n) => ({
            label: `[${shape}] along ${axis} ${n} times`,
            small: count(shape) <= 24 && count(shape) > 0,
            options: { axis, n },
            draw: (r: Random) => [sample(r, shape, integer(-9, 9))],
          })),
        ),
      run: ([x], o) => pg.diff(x, o),
      oracle: ([x], o) => alongLines(x, o.axis as number, (line) => differences(line, o.n as number)),
      gradient: { of: [0], order: 2 },
    }),
    spec<3>({
      name: 'diff with ends',
      dtypes: ['float32', 'float64', 'int32'],
      instances: [1, 2, 0].map((n) => ({
        label: `[2, 4] with [2, 1] and [2, 2] ${n} times`,
        small: true,
        options: { n },
        draw: (r: Random) =>
          samples(
            r,
            [
              [2, 4],
              [2, 1],
              [2, 2],
            ],
            integer(-9, 9),
          ),
      })),
      run: ([x, prepend, append], o) => pg.diff(x, { n: o.n as number, prepend, append }),
      // Without a difference nothing is joined: NumPy and PyTorch.
      oracle: ([x, before, after], o) => {
        const rows = [0, 1].map((i) => {
          const row = (a: NDArray | undefined): number[] =>
            a ? Array.from(a.data).slice((i * a.data.length) / 2, ((i + 1) * a.data.length) / 2) : [];
          return o.n === 0 ? row(x) : differences([...row(before), ...row(x), ...row(after)], o.n as number);
        }) as [number[], number[]];
        return nd([2, rows[0].length], rows.flat());
      },
    }),
  ];
}

function diffCall(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length > 0 && isNumber(v));
  if (x === null) return null;
  const [axis, written] = pool.axis(x.shape.length);
  const size = x.shape[axis]!;
  if (size === 0) return null;
  return {
    args: [ref(x), { axis: written }],
    dtype: x.dtype,
    formula: (a) => linesOf(a, axis, size - 1, (l) => l.slice(1).map((v, i) => v - l[i]!)),
    noise: 'out',
  };
}

export const runningRows: readonly OperationRow[] = [
  ...rows.map(
    (row): OperationRow => ({
      name: row.name,
      specs: row.cases.map((given) => specOf(row, given)),
      calls: smooth((pool) => runningCall(row, pool)),
    }),
  ),
  { name: 'diff', specs: diffSpecs(), calls: smooth(diffCall) },
];

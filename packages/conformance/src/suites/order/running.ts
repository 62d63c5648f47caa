/** Running results along an axis, from either end, and differences of neighbours. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { alongLines } from '../../oracle/lines.ts';
import { count, type NDArray, nd } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../../oracle/random.ts';
import type { OpSpec, Options } from '../../spec.ts';
import { any, floats, instancesOf, lineCases } from './lines.ts';

/** A running result: `step` from the one before and the element. */
function running(first: number, step: (before: number, x: number) => number, o: Options): (line: number[]) => number[] {
  return (line) => {
    let value = first;
    const inOrder = o.reverse ? [...line].reverse() : line;
    const result = inOrder.map((x) => {
      const before = value;
      value = step(value, x);
      return o.exclusive ? before : value;
    });
    return o.reverse ? result.reverse() : result;
  };
}

interface Scan {
  readonly name: string;
  readonly run: (x: Tensor, o: { axis: number }) => Tensor;
  readonly first: number;
  readonly step: (before: number, x: number) => number;
  readonly draw?: (r: Random) => number;
  readonly dtypes?: readonly DType[];
  readonly options?: readonly Options[];
  readonly order?: 0 | 2;
  readonly sums?: boolean;
  readonly result?: OpSpec['result'];
}

const ways: readonly Options[] = [{}, { reverse: true }];
const allWays: readonly Options[] = [...ways, { exclusive: true }, { reverse: true, exclusive: true }];
const withZeros = (r: Random): number => (r() < 0.3 ? 0 : 0.6 + 0.8 * r());
const add = (a: number, b: number): number => a + b;
const logAdd = (a: number, b: number): number =>
  a === -Infinity ? b : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));

const scans: readonly Scan[] = [
  { name: 'cumSum', run: pg.cumSum, first: 0, step: add, options: allWays, sums: true },
  {
    name: 'cumSum int',
    run: pg.cumSum,
    first: 0,
    step: add,
    draw: integer(-9, 9),
    dtypes: ['int32'],
    result: (dtype) => (dtype.endsWith('64') ? dtype : 'int32'),
    order: 0,
  },
  {
    name: 'cumProd',
    run: pg.cumProd,
    first: 1,
    step: (a, b) => a * b,
    draw: uniform(0.6, 1.4),
    options: allWays,
    sums: true,
  },
  {
    name: 'cumProd with zeros',
    run: pg.cumProd,
    first: 1,
    step: (a, b) => a * b,
    draw: withZeros,
    options: allWays,
    sums: true,
  },
  { name: 'cumMax', run: pg.cumMax, first: -Infinity, step: Math.max, options: ways },
  { name: 'cumMin', run: pg.cumMin, first: Infinity, step: Math.min, options: ways },
  {
    name: 'cumMax int',
    run: pg.cumMax,
    first: -Infinity,
    step: Math.max,
    draw: integer(-9, 9),
    dtypes: ['int32'],
    order: 0,
  },
  {
    name: 'cumMin uint',
    run: pg.cumMin,
    first: Infinity,
    step: Math.min,
    draw: integer(0, 9),
    dtypes: ['uint32'],
    order: 0,
  },
  { name: 'logCumSumExp', run: pg.logCumSumExp, first: -Infinity, step: logAdd, options: ways },
  {
    name: 'logCumSumExp far apart',
    run: pg.logCumSumExp,
    first: -Infinity,
    step: logAdd,
    draw: uniform(-300, 300),
    order: 0,
  },
];

export function scanSpecs(): OpSpec[] {
  return scans.map((s) => ({
    name: s.name,
    dtypes: s.dtypes ?? floats,
    instances: instancesOf(s.draw ?? any, s.options),
    run: ([x], o) => s.run(x as Tensor, o as never),
    oracle: ([x], o) => alongLines(x as NDArray, o.axis as number, running(s.first, s.step, o)),
    ...(s.result === undefined ? {} : { result: s.result }),
    ...(s.sums ? { terms: ([x]: NDArray[]) => 2 * count((x as NDArray).shape) } : {}),
    ...(s.order === 0 ? {} : { gradient: { of: [0], order: 2 as const } }),
  }));
}

export function diffSpecs(): OpSpec[] {
  const differences = (line: number[], n: number): number[] =>
    n === 0
      ? line
      : differences(
          line.slice(1).map((x, i) => x - (line[i] as number)),
          n - 1,
        );
  return [
    {
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
      run: ([x], o) => pg.diff(x as Tensor, o),
      oracle: ([x], o) => alongLines(x as NDArray, o.axis as number, (line) => differences(line, o.n as number)),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'diff with ends',
      dtypes: ['float32', 'float64', 'int32'],
      instances: [1, 2, 0].map((n) => ({
        label: `[2, 4] with [2, 1] and [2, 2] ${n} times`,
        small: true,
        options: { n },
        draw: (r: Random) =>
          [
            [2, 4],
            [2, 1],
            [2, 2],
          ].map((shape) => sample(r, shape, integer(-9, 9))),
      })),
      run: ([x, prepend, append], o) =>
        pg.diff(x as Tensor, { n: o.n as number, prepend: prepend as Tensor, append: append as Tensor }),
      // Without a difference nothing is joined: NumPy and PyTorch.
      oracle: ([x, before, after], o) => {
        const rows = [0, 1].map((i) => {
          const row = (a: NDArray | undefined): number[] =>
            a ? Array.from(a.data).slice((i * a.data.length) / 2, ((i + 1) * a.data.length) / 2) : [];
          return o.n === 0 ? row(x) : differences([...row(before), ...row(x), ...row(after)], o.n as number);
        }) as [number[], number[]];
        return nd([2, rows[0].length], rows.flat());
      },
    },
  ];
}

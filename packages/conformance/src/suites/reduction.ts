/** Reductions, argument reductions, and the row operations made of them (softmax, norms, log-sum-exp). */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { count, map, type NDArray, reduce, zip } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';
import { reductionCases } from './shapes.ts';
import { average, spread, total } from '../oracle/sums.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-2, 2);
type Fold = (values: number[]) => number;
type Options = { axis: number[]; keepDims: boolean };

interface Reduction {
  readonly name: string;
  readonly run: (x: Tensor, options: Options) => Tensor;
  readonly f: Fold;
  readonly draw?: (r: Random) => number;
  readonly dtypes?: readonly DType[];
  readonly result?: OpSpec['result'];
  readonly order?: 0 | 1 | 2;
  /** False where a reduction over nothing has no value. */
  readonly empty?: boolean;
  readonly least?: number;
}

const reductions: readonly Reduction[] = [
  { name: 'sum', run: pg.sum, f: total },
  {
    name: 'sum int',
    run: pg.sum,
    f: total,
    draw: integer(-9, 9),
    dtypes: ['int32'],
    result: (dtype) => (dtype.endsWith('64') ? dtype : 'int32'),
    order: 0,
  },
  { name: 'mean', run: pg.mean, f: average, empty: false },
  { name: 'prod', run: pg.prod, f: (v) => v.reduce((a, b) => a * b, 1), draw: uniform(0.6, 1.4) },
  { name: 'max', run: pg.max, f: (v) => Math.max(...v), empty: false },
  { name: 'min', run: pg.min, f: (v) => Math.min(...v), empty: false },
  {
    name: 'max int',
    run: pg.max,
    f: (v) => Math.max(...v),
    draw: integer(-9, 9),
    dtypes: ['int32'],
    order: 0,
    empty: false,
  },
  { name: 'variance', run: (x, o) => pg.variance(x, { ...o, correction: 0 }), f: (v) => spread(v), empty: false },
  {
    name: 'variance unbiased',
    run: (x, o) => pg.variance(x, { ...o, correction: 1 }),
    f: (v) => spread(v, 1),
    empty: false,
    least: 2,
  },
  {
    name: 'std',
    run: (x, o) => pg.std(x, { ...o, correction: 0 }),
    f: (v) => Math.sqrt(spread(v)),
    empty: false,
    least: 2,
  },
  { name: 'logSumExp', run: pg.logSumExp, f: (v) => Math.log(total(v.map(Math.exp))) },
  { name: 'norm', run: pg.norm, f: (v) => Math.hypot(...v), empty: false },
  {
    name: 'any',
    run: pg.any,
    f: (v) => (v.some((x) => x !== 0) ? 1 : 0),
    draw: integer(0, 1),
    dtypes: ['bool'],
    result: 'bool',
    order: 0,
  },
  {
    name: 'all',
    run: pg.all,
    f: (v) => (v.every((x) => x !== 0) ? 1 : 0),
    draw: integer(0, 1),
    dtypes: ['bool'],
    result: 'bool',
    order: 0,
  },
];

/** Both the all-axes and the keepDims forms are covered by the list of cases. */
export function reductionSpecs(): OpSpec[] {
  const specs: OpSpec[] = reductions.map((r) => ({
    name: r.name,
    dtypes: r.dtypes ?? floats,
    instances: reductionCases
      .filter(({ shape, axes }) => {
        const each = axes.reduce((p, axis) => p * (shape[axis] as number), 1);
        return (r.empty !== false || count(shape) > 0) && each >= (r.least ?? 0);
      })
      .flatMap(({ shape, axes }) =>
        [false, true].map((keepDims) => ({
          label: `[${shape}] over [${axes}]${keepDims ? ' keepDims' : ''}`,
          small: count(shape) <= 24 && count(shape) > 0,
          options: { axis: [...axes], keepDims },
          draw: (random: Random) => [sample(random, shape, r.draw ?? any)],
        })),
      ),
    run: ([x], options) => r.run(x as Tensor, options as never),
    oracle: ([x], o) => reduce(x as NDArray, (o as unknown as Options).axis, r.f, (o as unknown as Options).keepDims),
    terms: ([x]) => count((x as NDArray).shape),
    ...(r.result ? { result: r.result } : {}),
    ...(r.order === 0 ? {} : { gradient: { of: [0], order: r.order ?? 2 } }),
  }));
  specs.push(
    argSpec('argMax', pg.argMax, (a, b) => a > b),
    argSpec('argMin', pg.argMin, (a, b) => a < b),
  );
  return [...specs, ...rowSpecs()];
}

function argSpec(name: string, run: typeof pg.argMax, better: (a: number, b: number) => boolean): OpSpec {
  const first: Fold = (v) => {
    let best = 0;
    v.forEach((x, i) => {
      const current = v[best] as number;
      if (!Number.isNaN(current) && (Number.isNaN(x) || better(x, current))) best = i;
    });
    return best;
  };
  return {
    name,
    dtypes: ['float32', 'float64', 'int32'],
    result: 'int32',
    // The last is found in chunks.
    instances: [[7], [3, 5], [67], [2, 3, 4], [4, 33], [33, 4], [2 ** 18 + 3]].flatMap((shape) =>
      shape.map((_, axis) => ({
        label: `[${shape}] over ${axis}`,
        options: { axis },
        draw: (r: Random) => [sample(r, shape, integer(-3, 3))],
      })),
    ),
    run: ([x], o) => run(x as Tensor, o as { axis: number }),
    oracle: ([x], o) => reduce(x as NDArray, [o.axis as number], first),
  };
}

/** Operations along one axis whose result has the input's shape. */
function rowSpecs(): OpSpec[] {
  const along = (x: NDArray, axis: number, f: Fold): NDArray => reduce(x, [axis], f, true);
  const softmax = (x: NDArray, axis: number): NDArray => {
    const e = zip(
      (v, m) => Math.exp((v as number) - (m as number)),
      x,
      along(x, axis, (v) => Math.max(...v)),
    );
    return zip((v, s) => (v as number) / (s as number), e, along(e, axis, total));
  };
  const normalized = (x: NDArray, axis: number): NDArray => {
    const mean = along(x, axis, average);
    const variance = along(x, axis, (v) => spread(v));
    return zip((v, m, s) => ((v as number) - (m as number)) / Math.sqrt((s as number) + 1e-5), x, mean, variance);
  };
  const list: {
    name: string;
    run: (x: Tensor, axis: number) => Tensor;
    f: (x: NDArray, axis: number) => NDArray;
    last?: boolean;
  }[] = [
    { name: 'softmax', run: (x, axis) => pg.softmax(x, { axis }), f: softmax },
    {
      name: 'logSoftmax',
      run: (x, axis) => pg.logSoftmax(x, { axis }),
      f: (x, axis) => map(softmax(x, axis), Math.log),
    },
    {
      name: 'layerNorm',
      run: (x) => pg.layerNorm(x, { normalizedShape: [x.shape[x.ndim - 1] as number] }),
      f: normalized,
      last: true,
    },
  ];
  return list.map(({ name, run, f, last }) => ({
    name,
    dtypes: floats,
    instances: [[1], [7], [2, 3], [3, 67], [2, 3, 4], [5, 130]].flatMap((shape) =>
      shape
        .map((_, axis) => axis)
        .filter((axis) => !last || axis === shape.length - 1)
        .map((axis) => ({
          label: `[${shape}] along ${axis}`,
          small: count(shape) <= 24 && count(shape) > 1,
          options: { axis },
          draw: (r: Random) => [sample(r, shape, any)],
        })),
    ),
    run: ([x], o) => run(x as Tensor, o.axis as number),
    oracle: ([x], o) => f(x as NDArray, o.axis as number),
    gradient: { of: [0], order: 2 },
  }));
}

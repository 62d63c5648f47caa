/** Softmax and its relatives, whose rows keep their length, and the gate that halves it. */
import * as pg from '@polygrad/core';
import { alongLines } from '../../oracle/lines.ts';
import { at, build, count, type NDArray } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { logistic } from '../../oracle/special.ts';
import { logSum } from '../../oracle/sums.ts';
import { sums, tame, vectors } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Noise, Value } from '../../programs/program.ts';
import { floats, type OpSpec, spec } from '../../spec.ts';
import { functionOf, type OperationRow, smooth } from '../row.ts';
import { any } from './lines.ts';

type Line = (line: number[]) => number[];
const softmax: Line = (v) => {
  const s = logSum(v);
  return v.map((x) => Math.exp(x - s));
};

const logSoftmax: Line = (v) => {
  const s = logSum(v);
  return v.map((x) => x - s);
};

const softmin: Line = (v) => softmax(v.map((x) => -x));

const specOf = (name: 'softmax' | 'logSoftmax', f: Line): OpSpec<1> => ({
  name,
  dtypes: floats,
  instances: [[1], [7], [2, 3], [3, 67], [2, 3, 4], [5, 130]].flatMap((shape) =>
    shape.map((_, axis) => ({
      label: `[${shape}] along ${axis}`,
      small: count(shape) <= 24 && count(shape) > 1,
      options: { axis },
      draw: (r: Random) => [sample(r, shape, any)],
    })),
  ),
  run: ([x], o) => functionOf(name)(x, o),
  oracle: ([x], o) => alongLines(x, o.axis as number, f),
  gradient: { of: [0], order: 2 },
});

const softminSpec: OpSpec<1> = {
  name: 'softmin',
  dtypes: floats,
  instances: [{ label: '[3,4]', small: true, draw: (r: Random) => [sample(r, [3, 4], uniform(-3, 3))] }],
  run: ([x]) => pg.softmin(x, 1),
  oracle: ([x]) => alongLines(x, 1, softmin),
  gradient: { of: [0], order: 2 },
};

/** Along an axis of moderate floats. */
export const lineCall =
  (
    f: Line,
    { noise = 'all', fits = () => true }: { readonly noise?: Noise; readonly fits?: (v: Value) => boolean } = {},
  ) =>
  (pool: Pool): Made | null => {
    const x = pool.pick((v) => v.shape.length > 0 && tame(v) && fits(v));
    if (x === null) return null;
    const [axis, written] = pool.axis(x.shape.length);
    return {
      args: [ref(x), { axis: written }],
      dtype: x.dtype,
      formula: (a) => alongLines(a, axis, f),
      noise,
      ordered: false,
    };
  };

/** The first half along an axis, times the logistic function of the second. */
function gated(x: NDArray, axis: number): NDArray {
  const half = x.shape[axis]! / 2;
  const shape = x.shape.map((n, i) => (i === axis ? half : n));
  return build(shape, (index) => {
    const gate = index.map((v, i) => (i === axis ? v + half : v));
    return at(x, index) * logistic(at(x, gate));
  });
}

function glu(pool: Pool): Made | null {
  const x = vectors(pool, 1, 4, (v) => v.shape.some((n) => n % 2 === 0));
  if (x === null) return null;
  const axis = pool.c.pick(x.shape.flatMap((n, i) => (n % 2 === 0 ? [i] : [])));
  return {
    args: [ref(x), { axis }],
    dtype: x.dtype,
    formula: (a) => gated(a, axis),
    ...sums(x.dtype),
  };
}

export const softmaxRows: readonly OperationRow[] = [
  { name: 'softmax', specs: [specOf('softmax', softmax)], calls: smooth(lineCall(softmax)) },
  {
    name: 'logSoftmax',
    specs: [specOf('logSoftmax', logSoftmax)],
    // The difference of x and the logarithm rounds as those do.
    calls: smooth(lineCall(logSoftmax, { noise: 'steps' })),
  },
  { name: 'softmin', specs: [softminSpec], calls: smooth(lineCall(softmin)) },
  {
    name: 'glu',
    specs: [
      spec<1>({
        name: 'glu',
        dtypes: floats,
        instances: [0, 1].map((axis) => ({
          label: `[4,6] along ${axis}`,
          small: true,
          options: { axis },
          draw: (r: Random) => [sample(r, [4, 6], uniform(-3, 3))],
        })),
        run: ([x], o) => pg.glu(x, { axis: o.axis as number }),
        oracle: ([x], o) => gated(x, o.axis as number),
        gradient: { of: [0], order: 2 },
      }),
    ],
    calls: smooth(glu),
  },
];

/** Normalisation over the last axes. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { alongLines } from '../../oracle/lines.ts';
import { at, build, count, type NDArray, reshape } from '../../oracle/ndarray.ts';
import { normalizeBy } from '../../oracle/normalization.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { average, spread } from '../../oracle/sums.ts';
import { tame } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import { floats, type Instance, type OpSpec, type Options, spec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';

const any = uniform(-1, 1);
const positive = uniform(0.5, 2);
const eps = 1e-3;

/** Without options: along the last axis, by the usual 1e-5. */
const plainSpec: OpSpec<1> = {
  name: 'layerNorm',
  dtypes: floats,
  instances: [[1], [7], [2, 3], [3, 67], [2, 3, 4], [5, 130]].map((shape) => ({
    label: `[${shape}] along ${shape.length - 1}`,
    small: count(shape) <= 24 && count(shape) > 1,
    options: { axis: shape.length - 1 },
    draw: (r: Random) => [sample(r, shape, uniform(-2, 2))],
  })),
  run: ([x]) => pg.layerNorm(x, { normalizedShape: [x.shape.at(-1) as number] }),
  oracle: ([x], o) => alongLines(x, o.axis as number, layerNorm(1e-5)),
  gradient: { of: [0], order: 2 },
};

function layerNorm(by: number) {
  return (v: number[]): number[] => {
    const [mean, deviation] = [average(v), Math.sqrt(spread(v) + by)];
    return v.map((x) => (x - mean) / deviation);
  };
}

const rmsNorm = (v: number[]): number[] => {
  const size = Math.sqrt(average(v.map((y) => y * y)) + 0.1);
  return v.map((x) => x / size);
};

function layerSpecs(): [OpSpec, OpSpec] {
  const shapes = [
    { x: [4], last: 1 },
    { x: [3, 5], last: 1 },
    { x: [2, 2, 3], last: 2 },
    { x: [0, 3], last: 1 },
    { x: [7, 129], last: 1 },
  ];
  const instances: Instance<3>[] = shapes.map(({ x, last }) => ({
    label: `[${x}] over ${last}`,
    small: count(x) > 0 && count(x) <= 60,
    options: { last },
    draw: (r: Random) => [sample(r, x, any), sample(r, x.slice(-last), positive), sample(r, x.slice(-last), any)],
  }));
  const finish = (normal: NDArray, w: NDArray, b: NDArray): NDArray =>
    build(normal.shape, (i) => {
      const tail = i.slice(i.length - w.shape.length);
      return at(normal, i) * at(w, tail) + at(b, tail);
    });
  const row = (last: unknown) => (index: number[]) => String(index.slice(0, index.length - (last as number)));
  const options = (x: Tensor, w: Tensor, b: Tensor, o: Options) => ({
    normalizedShape: x.shape.slice(-(o.last as number)),
    weight: w,
    bias: b,
    eps,
  });
  return [
    spec<3>({
      name: 'layerNorm with options',
      dtypes: floats,
      instances,
      run: ([x, w, b], o) => pg.layerNorm(x, options(x, w, b, o)),
      oracle: ([x, w, b], o) => finish(normalizeBy(x, eps, row(o.last)), w, b),
      gradient: { of: [0, 1, 2], order: 2 },
    }),
    spec<3>({
      name: 'rmsNorm with options',
      dtypes: floats,
      instances,
      run: ([x, w, b], o) => pg.rmsNorm(x, options(x, w, b, o)),
      oracle: ([x, w, b], o) => {
        const a = x;
        const last = a.shape.slice(-(o.last as number));
        const normal = build(a.shape, (index) => {
          const lead = index.slice(0, index.length - last.length);
          let sum = 0;
          for (let q = 0; q < count(last); q++)
            sum += a.data[lead.reduce((f, v, k) => f * a.shape[k]! + v, 0) * count(last) + q]! ** 2;
          return at(a, index) / Math.sqrt(sum / count(last) + eps);
        });
        return finish(normal, w, b);
      },
      gradient: { of: [0, 1, 2], order: 2 },
    }),
  ];
}

/** Over one to three axes, the last ones. */
const lastAxes =
  (f: (v: number[]) => number[]) =>
  (pool: Pool): Made | null => {
    const x = pool.pick((v) => v.shape.length > 0 && tame(v) && count(v.shape) > 0);
    if (x === null) return null;
    const over = pool.c.between(1, Math.min(3, x.shape.length));
    const size = x.shape.slice(-over);
    const flat = [...x.shape.slice(0, -over), count(size)];
    return {
      args: [ref(x), { normalizedShape: size, eps: 0.1 }],
      dtype: x.dtype,
      formula: (a) => reshape(alongLines(reshape(a, flat), flat.length - 1, f), x.shape),
      noise: 'all',
      ordered: false,
    };
  };

const [layerSpec, rmsSpec] = layerSpecs();

export const layerNormRows: readonly OperationRow[] = [
  { name: 'layerNorm', specs: [plainSpec, layerSpec], calls: smooth(lastAxes(layerNorm(0.1))) },
  { name: 'rmsNorm', specs: [rmsSpec], calls: smooth(lastAxes(rmsNorm)) },
];

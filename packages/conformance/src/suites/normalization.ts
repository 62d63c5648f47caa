/** Normalisation in both layouts with every option, and graph convolution in both forms of the graph. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { denseEdges, graphConvolution, localResponse, normalizeBy, perChannel } from '../oracle/normalization.ts';
import { at, build, count, type NDArray, nd } from '../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../oracle/random.ts';
import type { Instance, OpSpec, Options } from '../spec.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-1, 1);
const positive = uniform(0.5, 2);
const eps = 1e-3;

const images: readonly (readonly [readonly number[], 'nchw' | 'nhwc'])[] = [
  [[3, 4], 'nchw'],
  [[2, 4, 3], 'nchw'],
  [[2, 2, 3, 2], 'nchw'],
  [[2, 3, 2, 4], 'nhwc'],
  [[2, 1, 4], 'nhwc'],
  [[4, 8, 9, 7], 'nchw'],
  [[3, 9, 7, 8], 'nhwc'],
];

const channelAxis = (shape: readonly number[], layout: unknown): number => (layout === 'nhwc' ? shape.length - 1 : 1);

/** Images with one weight and one bias per channel. */
function imageInstances(list = images): Instance[] {
  return list.map(([x, layout]) => ({
    label: `[${x}] ${layout}`,
    small: count(x) <= 60,
    options: { layout },
    draw: (r: Random) => {
      const channels = [x[channelAxis(x, layout)] as number];
      return [sample(r, x, any), sample(r, channels, positive), sample(r, channels, any)];
    },
  }));
}

type Layout = 'nchw' | 'nhwc';
const layoutOf = (o: Options): { layout: Layout } => ({ layout: o.layout as Layout });

function batchSpecs(): OpSpec[] {
  const key = (o: Options, shape: readonly number[]) => (index: number[]) =>
    String(index[channelAxis(shape, o.layout)]);
  return [
    {
      name: 'batchNorm in training',
      dtypes: floats,
      instances: imageInstances(),
      run: ([x, weight, bias], o) =>
        pg.batchNorm(x as Tensor, {
          ...layoutOf(o),
          weight: weight as Tensor,
          bias: bias as Tensor,
          eps,
          training: true,
        }),
      oracle: ([x, w, b], o) =>
        perChannel(normalizeBy(x as NDArray, eps, key(o, (x as NDArray).shape)), w as NDArray, b as NDArray, o.layout),
      gradient: { of: [0, 1, 2], order: 2 },
    },
    {
      name: 'batchNorm with running statistics',
      dtypes: floats,
      instances: imageInstances(),
      // The weights serve as variances too, the biases as means.
      run: ([x, weight, bias], o) =>
        pg.batchNorm(x as Tensor, {
          ...layoutOf(o),
          weight: weight as Tensor,
          bias: bias as Tensor,
          runningMean: bias as Tensor,
          runningVar: weight as Tensor,
          eps,
        }),
      oracle: ([x, w, b], o) => {
        const scale = nd(
          (w as NDArray).shape,
          (w as NDArray).data.map((v) => v / Math.sqrt(v + eps)),
        );
        const shift = nd(
          (b as NDArray).shape,
          (b as NDArray).data.map((v, i) => v - v * (scale.data[i] as number)),
        );
        return perChannel(x as NDArray, scale, shift, o.layout);
      },
      gradient: { of: [0, 1, 2], order: 2 },
    },
  ];
}

function groupSpecs(): OpSpec[] {
  const grouped = (name: string, groups: number | null, run: (x: Tensor, o: Affine) => Tensor): OpSpec => ({
    name,
    dtypes: floats,
    // One element per group has no variance to speak of.
    instances: imageInstances(
      images.filter(([shape]) => groups !== null || shape.length > 2).filter(([s]) => s[1] !== 1),
    ),
    run: ([x, weight, bias], o) =>
      run(x as Tensor, { ...layoutOf(o), weight: weight as Tensor, bias: bias as Tensor, eps }),
    oracle: ([x, w, b], o) => {
      const { shape } = x as NDArray;
      const axis = channelAxis(shape, o.layout);
      const channels = shape[axis] as number;
      const perGroup = channels / (groups ?? channels);
      const normal = normalizeBy(x as NDArray, eps, (i) => `${i[0]} ${Math.floor((i[axis] as number) / perGroup)}`);
      return perChannel(normal, w as NDArray, b as NDArray, o.layout);
    },
    gradient: { of: [0, 1, 2], order: 2 },
  });
  return [
    grouped('groupNorm of 2', 2, (x, o) => pg.groupNorm(x, { ...o, groups: 2 })),
    grouped('groupNorm of 1', 1, (x, o) => pg.groupNorm(x, { ...o, groups: 1 })),
    grouped('instanceNorm', null, (x, o) => pg.instanceNorm(x, o)),
  ];
}

interface Affine {
  readonly layout: Layout;
  readonly weight: Tensor;
  readonly bias: Tensor;
  readonly eps: number;
}

function layerSpecs(): OpSpec[] {
  const shapes = [
    { x: [4], last: 1 },
    { x: [3, 5], last: 1 },
    { x: [2, 2, 3], last: 2 },
    { x: [0, 3], last: 1 },
    { x: [7, 129], last: 1 },
  ];
  const instances: Instance[] = shapes.map(({ x, last }) => ({
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
    {
      name: 'layerNorm with options',
      dtypes: floats,
      instances,
      run: ([x, w, b], o) => pg.layerNorm(x as Tensor, options(x as Tensor, w as Tensor, b as Tensor, o)),
      oracle: ([x, w, b], o) => finish(normalizeBy(x as NDArray, eps, row(o.last)), w as NDArray, b as NDArray),
      gradient: { of: [0, 1, 2], order: 2 },
    },
    {
      name: 'rmsNorm with options',
      dtypes: floats,
      instances,
      run: ([x, w, b], o) => pg.rmsNorm(x as Tensor, options(x as Tensor, w as Tensor, b as Tensor, o)),
      oracle: ([x, w, b], o) => {
        const a = x as NDArray;
        const last = a.shape.slice(-(o.last as number));
        const normal = build(a.shape, (index) => {
          const lead = index.slice(0, index.length - last.length);
          let sum = 0;
          for (let q = 0; q < count(last); q++)
            sum +=
              (a.data[lead.reduce((f, v, k) => f * (a.shape[k] as number) + v, 0) * count(last) + q] as number) ** 2;
          return at(a, index) / Math.sqrt(sum / count(last) + eps);
        });
        return finish(normal, w as NDArray, b as NDArray);
      },
      gradient: { of: [0, 1, 2], order: 2 },
    },
    {
      name: 'localResponseNorm',
      dtypes: floats,
      instances: images.flatMap(([x, layout]) =>
        [1, 2, 5].map((size) => ({
          label: `[${x}] ${layout} of ${size}`,
          small: count(x) <= 60,
          options: { layout, size },
          draw: (r: Random) => [sample(r, x, any)],
        })),
      ),
      run: ([x], o) =>
        pg.localResponseNorm(x as Tensor, { ...layoutOf(o), size: o.size as number, alpha: 0.5, beta: 0.75, k: 2 }),
      oracle: ([x], o) =>
        localResponse(x as NDArray, { size: o.size as number, alpha: 0.5, beta: 0.75, k: 2 }, o.layout),
      gradient: { of: [0], order: 2 },
    },
  ];
}

function graphSpecs(): OpSpec[] {
  const cases = [
    { x: [3, 2], w: [2, 1] },
    { x: [3, 2], w: [2, 3], selfLoops: true },
    { x: [2, 4, 2], w: [2, 2], selfLoops: true, normalize: 'symmetric' as const },
    { x: [4, 1], w: [1, 2], normalize: 'symmetric' as const },
    { x: [1, 1], w: [1, 1], selfLoops: true },
    { x: [33, 17], w: [17, 9], selfLoops: true, normalize: 'symmetric' as const },
  ];
  const instances = (middle: (r: Random, n: number) => NDArray): Instance[] =>
    cases.map(({ x, w, ...options }) => ({
      label: `[${x}] by [${w}] ${JSON.stringify(options)}`,
      small: count(x) <= 30,
      options,
      draw: (r: Random) => [
        sample(r, x, any),
        middle(r, x[x.length - 2] as number),
        sample(r, w, any),
        sample(r, w.slice(1), any),
      ],
    }));
  /** Edges of a graph in which node 0 has no incoming edge and some edges appear twice. */
  const edges = (n: number): { sources: number[]; targets: number[] } => {
    const all = Array.from({ length: 2 * n }, (_, e) => [(e * 5 + 1) % n, n === 1 ? 0 : 1 + ((e * 3) % (n - 1))]);
    return { sources: all.map(([s]) => s as number), targets: all.map(([, t]) => t as number) };
  };
  const terms = (inputs: NDArray[]): number => count((inputs[0] as NDArray).shape) + 1;
  return [
    {
      name: 'graphConv',
      dtypes: floats,
      // 16-bit floats are rounded after each of several products.
      more: [],
      instances: instances((r, n) => sample(r, [n, n], positive)),
      run: ([x, a, w, bias], o) => pg.graphConv(x as Tensor, a as Tensor, w as Tensor, { ...o, bias: bias as Tensor }),
      oracle: ([x, a, w, b], o) => graphConvolution(x as NDArray, a as NDArray, w as NDArray, b as NDArray, o),
      terms,
      gradient: { of: [0, 1, 2, 3], order: 2 },
    },
    {
      name: 'graphConv by edges',
      dtypes: floats,
      // 16-bit floats are rounded after each of several products.
      more: [],
      instances: instances((r, n) => sample(r, [2 * n], positive)),
      run: ([x, weights, w, bias], o) => {
        const { sources, targets } = edges((x as Tensor).shape[(x as Tensor).ndim - 2] as number);
        const list = {
          sources: pg.tensor(sources, { dtype: 'int32' }),
          targets: pg.tensor(targets, { dtype: 'int32' }),
        };
        return pg.graphConv(x as Tensor, { ...list, weights: weights as Tensor }, w as Tensor, {
          ...o,
          bias: bias as Tensor,
        });
      },
      oracle: ([x, weights, w, b], o) => {
        const n = (x as NDArray).shape[(x as NDArray).shape.length - 2] as number;
        const { sources, targets } = edges(n);
        const dense = denseEdges(sources, targets, weights as NDArray, n);
        return graphConvolution(x as NDArray, dense, w as NDArray, b as NDArray, o);
      },
      terms,
      gradient: { of: [0, 1, 2, 3], order: 2 },
    },
  ];
}

export function normalizationSpecs(): OpSpec[] {
  return [...batchSpecs(), ...groupSpecs(), ...layerSpecs(), ...graphSpecs()];
}

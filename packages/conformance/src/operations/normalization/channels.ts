/** Normalisation over channels of images, groups of them and batches, in both layouts with every option. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { build, count, nd } from '../../oracle/ndarray.ts';
import { localResponse, normalizeBy, perChannel } from '../../oracle/normalization.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { drawn, parts, sums } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import { floats, type Instance, type OpSpec, type Options, spec } from '../../spec.ts';
import { image } from '../images/image.ts';
import { type OperationRow, smooth } from '../row.ts';

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
function imageInstances(list = images): Instance<3>[] {
  return list.map(([x, layout]) => ({
    label: `[${x}] ${layout}`,
    small: count(x) <= 60,
    options: { layout },
    draw: (r: Random) => {
      const channels = [x[channelAxis(x, layout)]!];
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
    spec<3>({
      name: 'batchNorm in training',
      dtypes: floats,
      instances: imageInstances(),
      run: ([x, weight, bias], o) =>
        pg.batchNorm(x, {
          ...layoutOf(o),
          weight: weight,
          bias: bias,
          eps,
          training: true,
        }),
      oracle: ([x, w, b], o) => perChannel(normalizeBy(x, eps, key(o, x.shape)), w, b, o.layout),
      gradient: { of: [0, 1, 2], order: 2 },
    }),
    runningSpec('batchNorm', pg.batchNorm),
  ];
}

/** By statistics that are given. */
function runningSpec(
  op: 'batchNorm' | 'instanceNorm',
  run: (x: Tensor, options: pg.BatchNormOptions) => Tensor,
): OpSpec<3> {
  return {
    name: `${op} with running statistics`,
    dtypes: floats,
    instances: imageInstances(),
    // The weights serve as variances too, the biases as means.
    run: ([x, weight, bias], o) =>
      run(x, {
        ...layoutOf(o),
        weight: weight,
        bias: bias,
        runningMean: bias,
        runningVar: weight,
        eps,
        ...(op === 'instanceNorm' && { useInputStats: false }),
      }),
    oracle: ([x, w, b], o) => {
      const scale = nd(
        w.shape,
        w.data.map((v) => v / Math.sqrt(v + eps)),
      );
      const shift = nd(
        b.shape,
        b.data.map((v, i) => v - v * scale.data[i]!),
      );
      return perChannel(x, scale, shift, o.layout);
    },
    gradient: { of: [0, 1, 2], order: 2 },
  };
}

interface Affine {
  readonly layout: Layout;
  readonly weight: Tensor;
  readonly bias: Tensor;
  readonly eps: number;
}

function groupSpecs(): [OpSpec, OpSpec, OpSpec] {
  const grouped = (name: string, groups: number | null, run: (x: Tensor, o: Affine) => Tensor): OpSpec<3> => ({
    name,
    dtypes: floats,
    // One element per group has no variance to speak of.
    instances: imageInstances(
      images.filter(([shape]) => groups !== null || shape.length > 2).filter(([s]) => s[1] !== 1),
    ),
    run: ([x, weight, bias], o) => run(x, { ...layoutOf(o), weight: weight, bias: bias, eps }),
    oracle: ([x, w, b], o) => {
      const { shape } = x;
      const axis = channelAxis(shape, o.layout);
      const channels = shape[axis]!;
      const perGroup = channels / (groups ?? channels);
      const normal = normalizeBy(x, eps, (i) => `${i[0]} ${Math.floor(i[axis]! / perGroup)}`);
      return perChannel(normal, w, b, o.layout);
    },
    gradient: { of: [0, 1, 2], order: 2 },
  });
  return [
    grouped('groupNorm of 2', 2, (x, o) => pg.groupNorm(x, { ...o, groups: 2 })),
    grouped('groupNorm of 1', 1, (x, o) => pg.groupNorm(x, { ...o, groups: 1 })),
    grouped('instanceNorm', null, (x, o) => pg.instanceNorm(x, o)),
  ];
}

const responseSpec: OpSpec<1> = {
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
  run: ([x], o) => pg.localResponseNorm(x, { ...layoutOf(o), size: o.size as number, alpha: 0.5, beta: 0.75, k: 2 }),
  oracle: ([x], o) => localResponse(x, { size: o.size as number, alpha: 0.5, beta: 0.75, k: 2 }, o.layout),
  gradient: { of: [0], order: 2 },
};

/** Norms over groups of channels, single channels and batches, now and then with weights. */
function norm(kind: 'groupNorm' | 'instanceNorm' | 'batchNorm') {
  return (pool: Pool): Made | null => {
    const found = image(pool, pool.c.pick([2, 1, 0]), 600);
    if (found === null || (kind === 'instanceNorm' && found.spatial.length === 0)) return null;
    const { x, layout, channels, written } = found;
    const groups = pool.c.pick([1, 2, channels].filter((g) => channels % g === 0));
    const weighted = pool.c.nat(2) === 0;
    const [weight, bias] = weighted
      ? [drawn(pool, x.dtype, [channels]), drawn(pool, x.dtype, [channels])]
      : [null, null];
    const running = kind === 'batchNorm' && pool.c.nat(2) === 0;
    // In training batchNorm refuses one value per channel.
    if (kind === 'batchNorm' && !running && x.data.length < 2 * channels) return null;
    const [mean, variance] = running
      ? [drawn(pool, x.dtype, [channels]), parts(pool, x.dtype, [channels])]
      : [null, null];
    const channelOf = (index: readonly number[]): number => (layout === 'nhwc' ? index.at(-1) : index[1]) as number;
    const key = (index: readonly number[]): string => {
      const c = channelOf(index);
      if (kind === 'batchNorm') return String(c);
      return `${index[0]}:${kind === 'instanceNorm' ? c : Math.floor(c / (channels / groups))}`;
    };
    const options = {
      ...written,
      eps: 0.1,
      ...(kind === 'groupNorm' ? { groups } : {}),
      ...(kind === 'batchNorm' && !running ? { training: true } : {}),
      ...(weight && bias ? { weight: ref(weight), bias: ref(bias) } : {}),
      ...(mean && variance ? { runningMean: ref(mean), runningVar: ref(variance) } : {}),
    };
    return {
      args: [ref(x), options],
      dtype: x.dtype,
      formula: (a, ...given) => {
        const [m, v] = running ? given.slice(-2) : [];
        const normal =
          m && v
            ? build(a.shape, (index) => {
                const c = channelOf(index);
                const flat = index.reduce((f, i, axis) => f * a.shape[axis]! + i, 0);
                return (a.data[flat]! - m.data[c]!) / Math.sqrt(v.data[c]! + 0.1);
              })
            : normalizeBy(a, 0.1, key);
        return weighted ? perChannel(normal, given[0]!, given[1]!, layout) : normal;
      },
      ...sums(x.dtype),
    };
  };
}

function localResponseNorm(pool: Pool): Made | null {
  const found = image(pool, pool.c.pick([2, 1]), 600);
  if (found === null) return null;
  const { x, layout, written } = found;
  const options = { size: pool.c.pick([3, 2, 1, 5]), alpha: 0.5, beta: pool.c.pick([0.75, 0.5]), k: 1 };
  return {
    args: [ref(x), { ...options, ...written }],
    dtype: x.dtype,
    formula: (a) => localResponse(a, options, layout),
    ...sums(x.dtype),
  };
}

const [groupOf2, groupOf1, instanceSpec] = groupSpecs();

export const channelNormRows: readonly OperationRow[] = [
  { name: 'batchNorm', specs: batchSpecs(), calls: smooth(norm('batchNorm')) },
  { name: 'groupNorm', specs: [groupOf2, groupOf1], calls: smooth(norm('groupNorm')) },
  {
    name: 'instanceNorm',
    specs: [instanceSpec, runningSpec('instanceNorm', pg.instanceNorm)],
    calls: smooth(norm('instanceNorm')),
  },
  { name: 'localResponseNorm', specs: [responseSpec], calls: smooth(localResponseNorm) },
];

/** Random calls of norms over channels, groups of them and batches, now and then with weights. */
import { build, type NDArray } from '../oracle/ndarray.ts';
import { localResponse, normalizeBy, perChannel } from '../oracle/normalization.ts';
import { image } from './images.ts';
import { drawn, parts, sums } from './operands.ts';
import { type Made, type Operation, type Pool, ref } from './pool.ts';

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
      op: kind,
      args: [ref(x), options],
      dtype: x.dtype,
      formula: (a, ...given) => {
        const [m, v] = running ? given.slice(-2) : [];
        const normal =
          m && v
            ? build((a as NDArray).shape, (index) => {
                const c = channelOf(index);
                const flat = index.reduce((f, i, axis) => f * ((a as NDArray).shape[axis] as number) + i, 0);
                return (
                  (((a as NDArray).data[flat] as number) - (m.data[c] as number)) /
                  Math.sqrt((v.data[c] as number) + 0.1)
                );
              })
            : normalizeBy(a as NDArray, 0.1, key);
        return weighted ? perChannel(normal, given[0] as NDArray, given[1] as NDArray, layout) : normal;
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
    formula: (a) => localResponse(a as NDArray, options, layout),
    ...sums(x.dtype),
  };
}

export const imageNorms: readonly Operation[] = [
  { name: 'groupNorm', smooth: true, make: norm('groupNorm') },
  { name: 'instanceNorm', smooth: true, make: norm('instanceNorm') },
  { name: 'batchNorm', smooth: true, make: norm('batchNorm') },
  { name: 'localResponseNorm', smooth: true, make: localResponseNorm },
];

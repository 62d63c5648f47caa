/** Operations whose elements depend on others of an axis: counts, and means that leave NaN out. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { type NDArray, reduce } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';
import { total } from '../oracle/sums.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-3, 3);
const few = integer(0, 2);

export function axisSpecs(): OpSpec[] {
  const one = (label: string, shape: readonly number[], draw = any, small = true) => ({
    label,
    small,
    draw: (r: Random) => [sample(r, shape, draw)],
  });
  return [
    {
      name: 'nanMean',
      dtypes: floats,
      instances: [one('[3,4]', [3, 4]), one('[5,9] with NaN', [5, 9], (r) => (r() < 0.2 ? Number.NaN : any(r)), false)],
      run: ([x]) => pg.nanMean(x as Tensor, { axis: 0 }),
      oracle: ([x]) =>
        reduce(x as NDArray, [0], (all) => {
          const kept = all.filter((v) => !Number.isNaN(v));
          return total(kept) / kept.length;
        }),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'countNonZero',
      dtypes: ['float32', 'int32'],
      instances: [one('[3,40]', [3, 40], few, false)],
      run: ([x]) => pg.countNonZero(x as Tensor, { axis: 1 }),
      oracle: ([x]) => reduce(x as NDArray, [1], (all) => all.filter((v) => v !== 0).length),
      result: 'int32',
    },
  ];
}

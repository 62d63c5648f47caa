/** Composed functions whose operands are not all tensors of one shape: numbers, weights per channel, three operands, halves of an axis. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { at, build, count, map, type NDArray, zip } from '../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../oracle/random.ts';
import { type Draw, off } from '../operations/row.ts';
import type { OpSpec } from '../spec.ts';
import { logistic } from '../oracle/special.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-3, 3);

const unary: readonly {
  readonly name: string;
  readonly run: (x: Tensor) => Tensor;
  readonly f: (x: number) => number;
  readonly draw?: Draw;
}[] = [
  { name: 'prelu with one weight', run: (x) => pg.prelu(x, 0.3), f: (x) => (x > 0 ? x : 0.3 * x), draw: off([0]) },
  {
    name: 'heaviside',
    run: (x) => pg.heaviside(pg.round(x) as Tensor, 0.25),
    f: (x) => (Math.round(x) === 0 ? 0.25 : Number(x > 0)),
    draw: off([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]),
  },
];

const several: readonly {
  readonly name: string;
  readonly run: (xs: Tensor[]) => Tensor;
  readonly f: (...xs: number[]) => number;
  readonly draw: readonly Draw[];
}[] = [
  {
    name: 'lerp',
    run: ([a, b, w]) => pg.lerp(a as Tensor, b as Tensor, w as Tensor),
    f: (a = 0, b = 0, w = 0) => a + w * (b - a),
    draw: [any, any, uniform(-0.5, 1.5)],
  },
  {
    name: 'addcmul',
    run: ([a, b, c]) => pg.addcmul(a as Tensor, b as Tensor, c as Tensor, { value: 0.5 }),
    f: (a = 0, b = 0, c = 0) => a + 0.5 * b * c,
    draw: [any, any, any],
  },
  {
    name: 'addcdiv',
    run: ([a, b, c]) => pg.addcdiv(a as Tensor, b as Tensor, c as Tensor, { value: 0.5 }),
    f: (a = 0, b = 0, c = 0) => a + (0.5 * b) / c,
    draw: [any, any, off([0, 0.1, -0.1, 0.2, -0.2])],
  },
];

export function composedSpecs(): OpSpec[] {
  const shapes = [[], [7], [2, 3], [67]];
  const specs: OpSpec[] = unary.map(({ name, run, f, draw }) => ({
    name,
    dtypes: floats,
    instances: shapes.map((shape) => ({
      label: `[${shape}]`,
      small: count(shape) < 10,
      draw: (r: Random) => [sample(r, shape, draw ?? any)],
    })),
    run: ([x]) => run(x as Tensor),
    oracle: ([x]) => map(x as NDArray, f),
    gradient: { of: [0], order: 2 },
  }));
  for (const { name, run, f, draw } of several) {
    specs.push({
      name,
      dtypes: floats,
      instances: [
        [[7], [7], [7]],
        [[2, 1], [3], [2, 3]],
        [[67], [], [1]],
      ].map((each) => ({
        label: each
          .slice(0, draw.length)
          .map((shape) => `[${shape}]`)
          .join(' '),
        small: each[0]?.[0] !== 67,
        draw: (r: Random) => draw.map((d, i) => sample(r, each[i] as number[], d)),
      })),
      run,
      oracle: (xs) => zip(f, ...xs),
      gradient: { of: draw.map((_, i) => i), order: 2 },
    });
  }
  return [...specs, ...axisSpecs()];
}

function axisSpecs(): OpSpec[] {
  return [
    {
      name: 'prelu with a weight per channel',
      dtypes: floats,
      instances: [
        [2, 3],
        [2, 3, 4],
        [1, 3, 2, 3],
      ].map((shape) => ({
        label: `[${shape}]`,
        small: true,
        draw: (r: Random) => [sample(r, shape, off([0])), sample(r, [3], uniform(0.1, 0.9))],
      })),
      run: ([x, w]) => pg.prelu(x as Tensor, w as Tensor),
      oracle: ([x, w]) =>
        build((x as NDArray).shape, (index) => {
          const v = at(x as NDArray, index);
          return v > 0 ? v : v * at(w as NDArray, [index[1] as number]);
        }),
      gradient: { of: [0, 1], order: 2 },
    },
    {
      name: 'glu',
      dtypes: floats,
      instances: [0, 1].map((axis) => ({
        label: `[4,6] along ${axis}`,
        small: true,
        options: { axis },
        draw: (r: Random) => [sample(r, [4, 6], any)],
      })),
      run: ([x], o) => pg.glu(x as Tensor, { axis: o.axis as number }),
      oracle: ([x], o) => {
        const axis = o.axis as number;
        const half = ((x as NDArray).shape[axis] as number) / 2;
        return build(
          (x as NDArray).shape.map((n, i) => (i === axis ? half : n)),
          (index) =>
            at(x as NDArray, index) *
            logistic(
              at(
                x as NDArray,
                index.map((v, i) => (i === axis ? v + half : v)),
              ),
            ),
        );
      },
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'softmin',
      dtypes: floats,
      instances: [{ label: '[3,4]', small: true, draw: (r: Random) => [sample(r, [3, 4], any)] }],
      run: ([x]) => pg.softmin(x as Tensor, 1),
      oracle: ([x]) =>
        build([3, 4], ([i, j]) => {
          const e = [0, 1, 2, 3].map((k) => Math.exp(-at(x as NDArray, [i as number, k])));
          return (e[j as number] as number) / e.reduce((a, b) => a + b, 0);
        }),
      gradient: { of: [0], order: 2 },
    },
  ];
}

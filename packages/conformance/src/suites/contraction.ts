/** Matrix products, convolutions and pooling. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { conv, convTranspose, matmul, pool } from '../oracle/linear.ts';
import { count, type NDArray, permute, zip } from '../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-1, 1);

const products: readonly (readonly [readonly number[], readonly number[]])[] = [
  [
    [2, 3],
    [3, 2],
  ],
  [
    [1, 1],
    [1, 1],
  ],
  [[3], [3]],
  [[3], [3, 2]],
  [[2, 3], [3]],
  [
    [0, 3],
    [3, 2],
  ],
  [
    [2, 0],
    [0, 3],
  ],
  [
    [5, 7],
    [7, 9],
  ],
  [
    [17, 33],
    [33, 19],
  ],
  [
    [64, 64],
    [64, 64],
  ],
  [
    [65, 67],
    [67, 63],
  ],
  [
    [1, 130],
    [130, 71],
  ],
  [
    [71, 130],
    [130, 1],
  ],
  [
    [4, 3, 5],
    [4, 5, 2],
  ],
  [
    [2, 1, 3, 5],
    [4, 5, 2],
  ],
];

interface ConvCase {
  readonly x: readonly number[];
  readonly w: readonly number[];
  readonly stride?: number;
  readonly padding?: number;
  readonly dilation?: number;
  readonly groups?: number;
}

const convolutions: readonly ConvCase[] = [
  { x: [1, 1, 3, 3], w: [1, 1, 2, 2] },
  { x: [2, 1, 4, 4], w: [2, 1, 3, 3], padding: 1 },
  { x: [1, 2, 5, 4], w: [2, 2, 3, 3], stride: 2, padding: 1 },
  { x: [1, 2, 5, 5], w: [1, 2, 2, 2], dilation: 2 },
  { x: [1, 4, 3, 3], w: [4, 2, 2, 2], groups: 2 },
  { x: [1, 2, 6, 6], w: [2, 1, 3, 3], groups: 2, stride: 2, padding: 2, dilation: 2 },
  { x: [3, 5, 9, 11], w: [7, 5, 3, 3], padding: 1 },
  { x: [2, 8, 14, 14], w: [16, 8, 3, 3], padding: 1 },
  { x: [2, 3, 13, 13], w: [4, 3, 5, 5], stride: 3, padding: 2 },
  { x: [2, 6, 7, 7], w: [6, 1, 3, 3], padding: 1, groups: 6 },
  { x: [2, 3, 8, 8], w: [5, 3, 1, 1] },
];

export function contractionSpecs(): OpSpec[] {
  const pair = (l: readonly number[], r: readonly number[]) => (random: Random) => [
    sample(random, l, any),
    sample(random, r, any),
  ];
  return [
    {
      name: 'matmul',
      dtypes: floats,
      instances: products.map(([l, r]) => ({
        label: `[${l}] by [${r}]`,
        small: count(l) <= 64 && count(r) <= 64 && count(l) > 0,
        draw: pair(l, r),
      })),
      run: ([a, b]) => pg.matmul(a as Tensor, b as Tensor),
      oracle: ([a, b]) => matmul(a as NDArray, b as NDArray),
      terms: ([a]) => (a as NDArray).shape[(a as NDArray).shape.length - 1] as number,
      gradient: { of: [0, 1], order: 2 },
    },
    {
      name: 'gemm',
      dtypes: floats,
      instances: [false, true].flatMap((transA) =>
        [false, true].map((transB) => ({
          label: `${transA ? 'T' : 'N'}${transB ? 'T' : 'N'}`,
          small: true,
          options: { transA, transB },
          draw: (r: Random) => [
            sample(r, transA ? [5, 3] : [3, 5], any),
            sample(r, transB ? [2, 5] : [5, 2], any),
            sample(r, [3, 2], any),
          ],
        })),
      ),
      run: ([a, b, c], o) => pg.gemm(a as Tensor, b as Tensor, { ...o, alpha: 0.5, beta: 2, c: c as Tensor }),
      oracle: ([a, b, c], o) => {
        const left = o.transA ? permute(a as NDArray, [1, 0]) : (a as NDArray);
        const right = o.transB ? permute(b as NDArray, [1, 0]) : (b as NDArray);
        return zip((p, q) => 0.5 * (p as number) + 2 * (q as number), matmul(left, right), c as NDArray);
      },
      terms: () => 6,
      gradient: { of: [0, 1, 2], order: 2 },
    },
    {
      name: 'linear with bias and relu',
      dtypes: floats,
      instances: [
        [2, 3, 4],
        [33, 17, 65],
      ].map(([m, k, n]) => ({
        label: `${m}x${k}x${n}`,
        small: (m as number) < 5,
        draw: (r: Random) => [
          sample(r, [m as number, k as number], any),
          sample(r, [k as number, n as number], any),
          sample(r, [n as number], any),
        ],
      })),
      run: ([x, w, b]) => pg.relu(pg.add(pg.matmul(x as Tensor, w as Tensor), b as Tensor)),
      oracle: ([x, w, b]) =>
        zip((p, q) => Math.max((p as number) + (q as number), 0), matmul(x as NDArray, w as NDArray), b as NDArray),
      terms: ([x]) => ((x as NDArray).shape[1] as number) + 1,
      gradient: { of: [0, 1, 2], order: 2 },
    },
    {
      name: 'conv2d',
      dtypes: floats,
      instances: convolutions.map(({ x, w, ...options }) => ({
        label: `[${x}] by [${w}] ${JSON.stringify(options)}`,
        small: count(x) <= 80 && count(w) <= 64,
        options,
        draw: pair(x, w),
      })),
      run: ([x, w], o) => pg.conv2d(x as Tensor, w as Tensor, o),
      oracle: ([x, w], o) => conv(x as NDArray, w as NDArray, o),
      terms: ([, w]) => count((w as NDArray).shape.slice(1)),
      gradient: { of: [0, 1], order: 2 },
    },
    {
      name: 'conv1d',
      dtypes: floats,
      instances: [
        {
          label: '[2,3,9] by [4,3,3]',
          small: true,
          options: { padding: 1, stride: 2 },
          draw: pair([2, 3, 9], [4, 3, 3]),
        },
      ],
      run: ([x, w], o) => pg.conv1d(x as Tensor, w as Tensor, o),
      oracle: ([x, w], o) => conv(x as NDArray, w as NDArray, o),
      terms: () => 9,
      gradient: { of: [0, 1], order: 2 },
    },
    {
      name: 'conv3d',
      dtypes: floats,
      instances: [
        {
          label: '[1,2,3,4,3] by [2,2,2,2,2]',
          small: true,
          options: { padding: 1 },
          draw: pair([1, 2, 3, 4, 3], [2, 2, 2, 2, 2]),
        },
      ],
      run: ([x, w], o) => pg.conv3d(x as Tensor, w as Tensor, o),
      oracle: ([x, w], o) => conv(x as NDArray, w as NDArray, o),
      terms: () => 16,
      gradient: { of: [0, 1], order: 1 },
    },
    {
      name: 'convTranspose2d',
      dtypes: floats,
      instances: [
        { x: [1, 2, 3, 3], w: [2, 2, 2, 2], options: {} },
        { x: [1, 2, 3, 4], w: [2, 1, 3, 3], options: { stride: 2, padding: 1 } },
        { x: [2, 2, 3, 3], w: [2, 1, 2, 2], options: { stride: 2, groups: 2 } },
        { x: [1, 1, 3, 3], w: [1, 2, 2, 2], options: { dilation: 2, stride: 2, outputPadding: 1 } },
      ].map(({ x, w, options }) => ({
        label: `[${x}] by [${w}] ${JSON.stringify(options)}`,
        small: true,
        options,
        draw: pair(x, w),
      })),
      run: ([x, w], o) => pg.convTranspose2d(x as Tensor, w as Tensor, o),
      oracle: ([x, w], o) => convTranspose(x as NDArray, w as NDArray, o),
      terms: ([, w]) => count((w as NDArray).shape),
      gradient: { of: [0, 1], order: 2 },
    },
    ...poolSpecs(),
  ];
}

function poolSpecs(): OpSpec[] {
  const geometries = [
    { size: 2, stride: 2, padding: 0 },
    { size: 3, stride: 2, padding: 1 },
    { size: 3, stride: 1, padding: 0 },
  ];
  const instances = (shapes: readonly (readonly number[])[]) =>
    shapes.flatMap((shape) =>
      geometries.map((options) => ({
        label: `[${shape}] ${JSON.stringify(options)}`,
        small: count(shape) <= 40,
        options,
        draw: (r: Random) => [sample(r, shape, any)],
      })),
    );
  const shapes = [
    [1, 1, 4, 4],
    [1, 2, 5, 4],
    [2, 3, 14, 14],
    [2, 3, 9, 11],
  ];
  const window = (o: Readonly<Record<string, unknown>>) => ({
    stride: o.stride as number,
    padding: o.padding as number,
  });
  return [
    {
      name: 'maxPool2d',
      dtypes: floats,
      instances: instances(shapes),
      run: ([x], o) => pg.maxPool2d(x as Tensor, o.size as number, window(o)),
      oracle: ([x], o) => pool(x as NDArray, o.size as number, window(o), (v) => Math.max(...v)),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'avgPool2d',
      dtypes: floats,
      instances: instances(shapes),
      run: ([x], o) => pg.avgPool2d(x as Tensor, o.size as number, window(o)),
      oracle: ([x], o) => pool(x as NDArray, o.size as number, window(o), (v, n) => v.reduce((a, b) => a + b, 0) / n),
      gradient: { of: [0], order: 2 },
    },
  ];
}

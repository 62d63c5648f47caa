/** Images at other sizes and at any positions: interpolation, grid sampling, affine grids. */
import * as pg from '@polygrad/core';
import { count, nd, type NDArray } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { affine, type GridOptions, resize, type ResizeOptions, sampleGrid } from '../../oracle/sampling.ts';
import { drawn, sums } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Arg } from '../../programs/program.ts';
import { floats, type OpSpec, type Options } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { image } from './image.ts';

const any = uniform(-1, 1);

const resizes: readonly (ResizeOptions & { readonly x: readonly number[]; readonly layout?: string })[] = [
  { x: [1, 2, 5], size: [3], mode: 'nearest' },
  { x: [2, 1, 3], scaleFactor: 2.5, mode: 'nearest' },
  { x: [1, 3, 4, 2], scaleFactor: 2, mode: 'nearest', layout: 'nhwc' },
  { x: [1, 1, 4, 6], size: [2, 3], mode: 'nearest' },
  { x: [1, 1, 2, 3, 2], size: [3, 2, 4], mode: 'nearest' },
  { x: [1, 2, 5, 3], size: [3, 7], mode: 'nearestExact' },
  { x: [1, 2, 7], size: [3], mode: 'nearestExact' },
  { x: [1, 2, 5], size: [8], mode: 'linear' },
  { x: [1, 2, 5], size: [8], mode: 'linear', alignCorners: true },
  { x: [1, 2, 5], scaleFactor: 0.7, mode: 'linear' },
  { x: [1, 2, 5], size: [1], mode: 'linear', alignCorners: true },
  { x: [1, 2, 3, 4], size: [5, 2], mode: 'bilinear' },
  { x: [1, 3, 4, 2], size: [6, 4], mode: 'bilinear', layout: 'nhwc', alignCorners: true },
  { x: [1, 1, 3, 3], scaleFactor: [2, 1.4], mode: 'bilinear' },
  { x: [0, 1, 3, 3], size: [2, 2], mode: 'bilinear' },
  { x: [1, 1, 1, 1], size: [3, 2], mode: 'bilinear' },
  { x: [1, 1, 4, 3], size: [6, 5], mode: 'bicubic' },
  { x: [1, 3, 4, 2], size: [2, 7], mode: 'bicubic', layout: 'nhwc', alignCorners: true },
  { x: [1, 1, 2, 2], scaleFactor: 2.3, mode: 'bicubic' },
  { x: [1, 1, 2, 3, 2], size: [3, 2, 3], mode: 'trilinear' },
  { x: [1, 1, 2, 2, 2], scaleFactor: 2, mode: 'trilinear', alignCorners: true },
  { x: [2, 9, 11, 8], size: [18, 5], mode: 'bilinear', layout: 'nhwc' },
  { x: [2, 3, 16, 16], scaleFactor: 2, mode: 'bicubic' },
];

function interpolateSpec(): OpSpec<1> {
  return {
    name: 'interpolate',
    dtypes: floats,
    instances: resizes.map(({ x, ...options }) => ({
      label: `[${x}] ${JSON.stringify(options)}`,
      small: count(x) > 0 && count(x) <= 40,
      options: options as Options,
      draw: (r: Random) => [sample(r, x, any)],
    })),
    run: ([x], o) => pg.interpolate(x, o as pg.InterpolateOptions),
    oracle: ([x], o) => resize(x, o as unknown as ResizeOptions, o.layout),
    gradient: { of: [0], order: 2 },
  };
}

/** Positions that lie away from the places where the neighbours change, so that finite differences see one piece. */
function positions(
  r: Random,
  shape: readonly number[],
  sizes: readonly number[],
  align: boolean,
  reach: number,
): NDArray {
  const rank = sizes.length;
  const data = Array.from({ length: count(shape) }, (_, at) => {
    const n = sizes[rank - 1 - (at % rank)]!;
    const place = Math.floor((r() * 2 - 1) * reach * n + n / 2) + 0.2 + 0.25 * r();
    return Math.fround(align ? (n > 1 ? (2 * place) / (n - 1) - 1 : 0) : (2 * place + 1) / n - 1);
  });
  return nd(shape, data);
}

function gridSpecs(): OpSpec[] {
  const images = [
    { x: [1, 2, 3, 4], grid: [1, 2, 3, 2], layout: 'nchw' },
    { x: [2, 3, 2, 2], grid: [2, 2, 2, 2], layout: 'nhwc' },
    { x: [1, 1, 1, 1], grid: [1, 2, 2, 2], layout: 'nchw' },
    { x: [2, 9, 7, 8], grid: [2, 3, 5, 2], layout: 'nhwc' },
  ];
  const volumes = [{ x: [1, 1, 2, 3, 2], grid: [1, 1, 2, 3, 3], layout: 'nchw' }];
  const spec = (mode: 'bilinear' | 'nearest' | 'bicubic'): OpSpec<2> => ({
    name: `gridSample ${mode}`,
    dtypes: floats,
    instances: (['zeros', 'border', 'reflection'] as const).flatMap((paddingMode) =>
      (mode === 'bicubic' ? [paddingMode === 'reflection'] : [false, true]).flatMap((alignCorners) =>
        [
          ...images.filter(({ x }) => count(x) < 100 || (paddingMode === 'zeros' && !alignCorners)),
          ...(mode === 'bicubic' ? [] : volumes),
        ].map(({ x, grid, layout }) => ({
          label: `[${x}] at [${grid}] ${layout} ${paddingMode}${alignCorners ? ' aligned' : ''}`,
          // A single pixel is the same everywhere: nothing to differentiate by its position.
          small: count(x) > 1 && count(x) <= 30,
          options: { mode, paddingMode, alignCorners, layout },
          draw: (r: Random) => {
            const sizes = layout === 'nhwc' ? x.slice(1, -1) : x.slice(2);
            return [sample(r, x, any), positions(r, grid, sizes, alignCorners, 0.9)];
          },
        })),
      ),
    ),
    run: ([x, grid], o) => pg.gridSample(x, grid, o as pg.GridSampleOptions),
    oracle: ([x, grid], o) => sampleGrid(x, grid, o as unknown as GridOptions, o.layout),
    // Positions are off by some ulps of themselves, and slopes between neighbours are up to 4.
    terms: () => 64,
    gradient: { of: [0, 1], order: 2 },
  });
  return [spec('bilinear'), spec('nearest'), spec('bicubic')];
}

const modes: readonly (readonly string[])[] = [
  [],
  ['nearest', 'linear', 'nearestExact'],
  ['bilinear', 'nearest', 'bicubic', 'nearestExact'],
  ['nearest', 'trilinear'],
];

function interpolate(pool: Pool): Made | null {
  const rank = pool.c.pick([2, 1, 3]);
  const found = image(pool, rank, 300);
  if (found === null) return null;
  const { x, layout, spatial, written } = found;
  const mode = pool.c.pick(modes[rank] as readonly string[]);
  const factor = pool.c.pick([2, 1.5, 0.5, 3]);
  const scaled = pool.c.nat(2) === 0 && spatial.every((n) => Math.floor(n * factor) > 0);
  const options = {
    mode,
    ...(scaled ? { scaleFactor: factor } : { size: spatial.map(() => pool.c.pick([3, 1, 6, 4, 9])) }),
    ...(mode.startsWith('nearest') ? {} : pool.c.nat(2) === 0 ? { alignCorners: true } : {}),
  };
  return {
    args: [ref(x), { ...options, ...written }],
    dtype: x.dtype,
    formula: (a) => resize(a, options as ResizeOptions, layout),
    ...(mode.startsWith('nearest') ? {} : sums(x.dtype)),
  };
}

/** Positions away from where neighbours change; the image around them by every padding. */
function gridSample(pool: Pool): Made | null {
  const found = image(pool, 2, 200);
  if (found === null || (found.x.dtype !== 'float32' && found.x.dtype !== 'float64')) return null;
  const { x, layout, spatial, written } = found;
  const alignCorners = pool.c.nat(2) === 0;
  const options: GridOptions = {
    mode: pool.c.pick(['bilinear', 'nearest', 'bicubic']),
    paddingMode: pool.c.pick(['zeros', 'border', 'reflection']),
    alignCorners,
  };
  const shape = [x.shape[0]!, pool.c.pick([2, 1, 4]), pool.c.pick([3, 1]), 2];
  const salt = pool.c.nat(31);
  const data = Array.from({ length: count(shape) }, (_, i) => {
    const n = spatial[1 - (i % 2)]!;
    const at = ((i * 7 + salt) % (n + 4)) - 2 + 0.25 + ((i + salt) % 3) / 16;
    return alignCorners ? (n > 1 ? (2 * at) / (n - 1) - 1 : 0.125) : (2 * at + 1) / n - 1;
  });
  const grid = pool.input(x.dtype, shape, data);
  return {
    args: [ref(x), ref(grid), { ...options, ...written } as unknown as Arg],
    dtype: x.dtype,
    formula: (a, g) => sampleGrid(a, g, options, layout),
    ...sums(x.dtype),
  };
}

function affineGrid(pool: Pool): Made | null {
  const dtype = pool.pick((v) => v.dtype === 'float32' || v.dtype === 'float64')?.dtype;
  if (dtype === undefined) return null;
  const batch = pool.c.pick([1, 2]);
  const theta = drawn(pool, dtype, [batch, 2, 3]);
  const spatial = [pool.c.pick([3, 1, 4]), pool.c.pick([2, 5])];
  const alignCorners = pool.c.nat(2) === 0;
  return {
    args: [ref(theta), [batch, 1, ...spatial], { alignCorners }],
    dtype,
    formula: (t) => affine(t, spatial, alignCorners),
    ...sums(dtype),
  };
}

const affineSpec: OpSpec<1> = {
  name: 'affineGrid',
  dtypes: floats,
  instances: [
    { theta: [2, 2, 3], size: [2, 1, 3, 4], layout: 'nchw' },
    { theta: [1, 2, 3], size: [1, 1, 5, 3], layout: 'nhwc' },
    { theta: [1, 3, 4], size: [1, 2, 2, 3, 2], layout: 'nchw' },
  ].flatMap(({ theta, size, layout }) =>
    [false, true].map((alignCorners) => ({
      label: `[${theta}] for [${size}] ${layout}${alignCorners ? ' aligned' : ''}`,
      small: true,
      options: { size, layout, alignCorners },
      draw: (r: Random) => [sample(r, theta, any)],
    })),
  ),
  run: ([theta], o) =>
    pg.affineGrid(theta, o.size as number[], {
      alignCorners: o.alignCorners as boolean,
      layout: o.layout as 'nchw',
    }),
  oracle: ([theta], o) => {
    const size = o.size as number[];
    return affine(theta, o.layout === 'nhwc' ? size.slice(1, -1) : size.slice(2), o.alignCorners as boolean);
  },
  gradient: { of: [0], order: 2 },
};

export const samplingRows: readonly OperationRow[] = [
  { name: 'interpolate', specs: [interpolateSpec()], calls: smooth(interpolate) },
  { name: 'gridSample', specs: gridSpecs(), calls: smooth(gridSample) },
  { name: 'affineGrid', specs: [affineSpec], calls: smooth(affineGrid) },
];

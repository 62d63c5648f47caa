/** Methods of Tensors: pooling, and images at other sizes and places. Details, shapes and errors are told with the functions. */
import {
  type AdaptiveSettings,
  type AdaptiveSize,
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveMaxPool2d,
  globalAvgPool2d,
} from '../ops/adaptive-pooling.ts';
import { avgPool1d, avgPool2d, avgPool3d, lpPool2d } from '../ops/average-pooling.ts';
import { type GridSampleOptions, affineGrid, gridSample } from '../ops/grid-sample.ts';
import type { Layout, PerAxis } from '../ops/image.ts';
import { type InterpolateOptions, interpolate } from '../ops/interpolate.ts';
import {
  type UnpoolSettings,
  type WithIndices,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  maxUnpool2d,
} from '../ops/max-pooling.ts';
import type { PoolSettings, PoolWindow } from '../ops/pool-window.ts';
import type { Tensor } from '../tensor/types.ts';

export interface PoolingMethods {
  /** The largest of every window along one axis; with returnIndices their places too. */
  maxPool1d(window: PoolWindow, settings: PoolSettings & WithIndices): [Tensor, Tensor];
  maxPool1d(window: PoolWindow, settings?: PoolSettings): Tensor;
  /** The largest of every window of an image; with returnIndices their places too. */
  maxPool2d(window: PoolWindow, settings: PoolSettings & WithIndices): [Tensor, Tensor];
  maxPool2d(window: PoolWindow, settings?: PoolSettings): Tensor;
  /** The largest of every window of a volume; with returnIndices their places too. */
  maxPool3d(window: PoolWindow, settings: PoolSettings & WithIndices): [Tensor, Tensor];
  maxPool3d(window: PoolWindow, settings?: PoolSettings): Tensor;
  /** What maxPool2d took, back at its places; zeros elsewhere. */
  maxUnpool2d(indices: Tensor, window: PerAxis, settings?: UnpoolSettings): Tensor;
  /** The mean of every window along one axis. */
  avgPool1d(window: PoolWindow, settings?: PoolSettings): Tensor;
  /** The mean of every window of an image. */
  avgPool2d(window: PoolWindow, settings?: PoolSettings): Tensor;
  /** The mean of every window of a volume. */
  avgPool3d(window: PoolWindow, settings?: PoolSettings): Tensor;
  /** The norm of every window of an image. */
  lpPool2d(order: number, window: PoolWindow, settings?: PoolSettings): Tensor;
  /** Means of windows that make a result of the size. */
  adaptiveAvgPool1d(size: AdaptiveSize, settings?: AdaptiveSettings): Tensor;
  /** Means of windows that make an image of the size. */
  adaptiveAvgPool2d(size: AdaptiveSize, settings?: AdaptiveSettings): Tensor;
  /** The largest of windows that make an image of the size; with returnIndices their places too. */
  adaptiveMaxPool2d(size: AdaptiveSize, settings: AdaptiveSettings & WithIndices): [Tensor, Tensor];
  adaptiveMaxPool2d(size: AdaptiveSize, settings?: AdaptiveSettings): Tensor;
  /** The mean of every channel of an image. */
  globalAvgPool2d(options?: { readonly keepDims?: boolean; readonly layout?: Layout }): Tensor;
  /** The image at another size. */
  interpolate(options: InterpolateOptions): Tensor;
  /** The image at the places of a grid. */
  gridSample(grid: Tensor, options?: GridSampleOptions): Tensor;
  /** The grid that these matrices make of an image of the size: for gridSample. */
  affineGrid(size: readonly number[], options?: { readonly alignCorners?: boolean; readonly layout?: Layout }): Tensor;
}

type MaxPool = PoolingMethods['maxPool1d'];

/** The function as a method, whose result is another where the options ask for places: no method written in an object can say so. */
function maxPool(pool: typeof maxPool1d): MaxPool {
  return function (this: Tensor, window: PoolWindow, settings?: PoolSettings): Tensor | [Tensor, Tensor] {
    return pool(this, window, settings);
  } as MaxPool;
}

function adaptiveMaxPool(this: Tensor, size: AdaptiveSize, settings: AdaptiveSettings & WithIndices): [Tensor, Tensor];
function adaptiveMaxPool(this: Tensor, size: AdaptiveSize, settings?: AdaptiveSettings): Tensor;
function adaptiveMaxPool(this: Tensor, size: AdaptiveSize, settings?: AdaptiveSettings): Tensor | [Tensor, Tensor] {
  return adaptiveMaxPool2d(this, size, settings);
}

export const poolingMethods: PoolingMethods & ThisType<Tensor> = {
  maxPool1d: maxPool(maxPool1d),
  maxPool2d: maxPool(maxPool2d),
  maxPool3d: maxPool(maxPool3d),
  maxUnpool2d(indices, window, settings) {
    return maxUnpool2d(this, indices, window, settings);
  },
  avgPool1d(window, settings) {
    return avgPool1d(this, window, settings);
  },
  avgPool2d(window, settings) {
    return avgPool2d(this, window, settings);
  },
  avgPool3d(window, settings) {
    return avgPool3d(this, window, settings);
  },
  lpPool2d(order, window, settings) {
    return lpPool2d(this, order, window, settings);
  },
  adaptiveAvgPool1d(size, settings) {
    return adaptiveAvgPool1d(this, size, settings);
  },
  adaptiveAvgPool2d(size, settings) {
    return adaptiveAvgPool2d(this, size, settings);
  },
  adaptiveMaxPool2d: adaptiveMaxPool,
  globalAvgPool2d(options) {
    return globalAvgPool2d(this, options);
  },
  interpolate(options) {
    return interpolate(this, options);
  },
  gridSample(grid, options) {
    return gridSample(this, grid, options);
  },
  affineGrid(size, options) {
    return affineGrid(this, size, options);
  },
};

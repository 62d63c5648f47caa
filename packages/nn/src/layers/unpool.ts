/** Where max pooling found its values, unpooling, which puts them back there, and pooling by p-norms. */
import {
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  adaptiveMaxPool3d,
  lpPool1d,
  lpPool2d,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  maxUnpool1d,
  maxUnpool2d,
  maxUnpool3d,
  type PerAxis,
  type PoolSettings,
  type Tensor,
  type UnpoolSettings,
} from '@polygrad/core/functions';
import { checkNumber, checkOptions, misfit } from '../errors.ts';
import { Module } from '../module/module.ts';
import { AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d } from './adaptive-pool.ts';
import { MaxPool1d, MaxPool2d, MaxPool3d, WindowPool } from './pool.ts';

/** Options of `LPPool1d` and `LPPool2d`. */
export type LPPoolSettings = Omit<PoolSettings, 'countIncludePad' | 'dilation'>;
/** Options of `MaxUnpool1d`, `MaxUnpool2d` and `MaxUnpool3d`. */
export type MaxUnpoolSettings = Omit<UnpoolSettings, 'outputSize'>;

/**
 * The p-norm of each window of a line: the p-th root of the sum of |x|^p. Source: PyTorch `nn.LPPool1d`, which leaves the magnitude out.
 *
 * @example
 * new LPPool1d(2, 2).forward(zeros([1, 8, 28])).shape; // [1, 8, 14]
 */
export class LPPool1d extends WindowPool<LPPoolSettings> {
  readonly p: number;

  /**
   * @param p order of the norm, at least 1
   * @param kernelSize size of the window; also the stride unless the options say otherwise
   */
  constructor(p: number, kernelSize: PerAxis, options: LPPoolSettings = {}) {
    checkOptions('LPPool1d', options, 'stride padding ceilMode? layout');
    super(kernelSize, options);
    checkNumber('LPPool1d', 'p', p, 1);
    this.p = p;
  }

  forward(x: Tensor): Tensor {
    return lpPool1d(x, this.p, this.kernelSize, this.options);
  }
}

/**
 * The p-norm of each window: the p-th root of the sum of |x|^p. Source: PyTorch `nn.LPPool2d`, which leaves the magnitude out.
 *
 * @example
 * new LPPool2d(2, 2).forward(zeros([1, 8, 28, 28])).shape; // [1, 8, 14, 14]
 */
export class LPPool2d extends WindowPool<LPPoolSettings> {
  readonly p: number;

  /**
   * @param p order of the norm, at least 1
   * @param kernelSize size of the window; also the stride unless the options say otherwise
   */
  constructor(p: number, kernelSize: PerAxis, options: LPPoolSettings = {}) {
    checkOptions('LPPool2d', options, 'stride padding ceilMode? layout');
    super(kernelSize, options);
    checkNumber('LPPool2d', 'p', p, 1);
    this.p = p;
  }

  forward(x: Tensor): Tensor {
    return lpPool2d(x, this.p, this.kernelSize, this.options);
  }
}

/** A layer that takes largest values. */
export type MaxPooling = MaxPool1d | MaxPool2d | MaxPool3d | AdaptiveMaxPool1d | AdaptiveMaxPool2d | AdaptiveMaxPool3d;

/**
 * The largest values that a pooling layer takes, and where they lie in each image (int32), as MaxUnpool takes them. PyTorch's `return_indices`.
 *
 * @param layer MaxPool or AdaptiveMaxPool
 * @param x what the layer is for
 * @throws NnError for other layers; ShapeError for another number of axes
 * @example
 * const [top, places] = forwardWithIndices(new MaxPool1d(2), tensor([[[1, 3, 4, 2]]]));
 * places; // [[[1, 2]]]
 */
export function forwardWithIndices(layer: MaxPooling, x: Tensor): [values: Tensor, indices: Tensor] {
  const withIndices = <Options>(options: Options): Options & { readonly returnIndices: true } => ({
    ...options,
    returnIndices: true,
  });
  if (layer instanceof MaxPool1d) return maxPool1d(x, layer.kernelSize, withIndices(layer.options));
  if (layer instanceof MaxPool2d) return maxPool2d(x, layer.kernelSize, withIndices(layer.options));
  if (layer instanceof MaxPool3d) return maxPool3d(x, layer.kernelSize, withIndices(layer.options));
  if (layer instanceof AdaptiveMaxPool1d) return adaptiveMaxPool1d(x, layer.size, withIndices(layer.options));
  if (layer instanceof AdaptiveMaxPool2d) return adaptiveMaxPool2d(x, layer.size, withIndices(layer.options));
  if (layer instanceof AdaptiveMaxPool3d) return adaptiveMaxPool3d(x, layer.size, withIndices(layer.options));
  throw misfit('forwardWithIndices', 'layer', layer, 'a layer of max pooling');
}

/**
 * Maxima put back where MaxPool1d found them, zeros elsewhere. Source: PyTorch `nn.MaxUnpool1d`.
 *
 * @example
 * const [top, places] = forwardWithIndices(new MaxPool1d(2), zeros([1, 8, 28]));
 * new MaxUnpool1d(2).forward(top, places).shape; // [1, 8, 28]
 */
export class MaxUnpool1d extends Module<[x: Tensor, indices: Tensor, outputSize?: PerAxis]> {
  readonly kernelSize: PerAxis;
  readonly options: MaxUnpoolSettings;

  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: MaxUnpoolSettings = {}) {
    super();
    checkOptions('MaxUnpool1d', options, 'stride padding layout');
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /**
   * @param x maxima
   * @param indices where they lie, as `forwardWithIndices` gives them
   * @param outputSize spatial sizes of what was pooled (default: what the windows cover)
   */
  forward(x: Tensor, indices: Tensor, outputSize?: PerAxis): Tensor {
    const size = outputSize === undefined ? {} : { outputSize };
    return maxUnpool1d(x, indices, this.kernelSize, { ...this.options, ...size });
  }
}

/**
 * Maxima put back where MaxPool2d found them, zeros elsewhere. Source: PyTorch `nn.MaxUnpool2d`.
 *
 * @example
 * const [top, places] = forwardWithIndices(new MaxPool2d(2), zeros([1, 8, 28, 28]));
 * new MaxUnpool2d(2).forward(top, places).shape; // [1, 8, 28, 28]
 */
export class MaxUnpool2d extends Module<[x: Tensor, indices: Tensor, outputSize?: PerAxis]> {
  readonly kernelSize: PerAxis;
  readonly options: MaxUnpoolSettings;

  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: MaxUnpoolSettings = {}) {
    super();
    checkOptions('MaxUnpool2d', options, 'stride padding layout');
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /**
   * @param x maxima
   * @param indices where they lie, as `forwardWithIndices` gives them
   * @param outputSize spatial sizes of what was pooled (default: what the windows cover)
   */
  forward(x: Tensor, indices: Tensor, outputSize?: PerAxis): Tensor {
    const size = outputSize === undefined ? {} : { outputSize };
    return maxUnpool2d(x, indices, this.kernelSize, { ...this.options, ...size });
  }
}

/**
 * Maxima put back where MaxPool3d found them, zeros elsewhere. Source: PyTorch `nn.MaxUnpool3d`.
 *
 * @example
 * const [top, places] = forwardWithIndices(new MaxPool3d(2), zeros([1, 8, 4, 6, 6]));
 * new MaxUnpool3d(2).forward(top, places).shape; // [1, 8, 4, 6, 6]
 */
export class MaxUnpool3d extends Module<[x: Tensor, indices: Tensor, outputSize?: PerAxis]> {
  readonly kernelSize: PerAxis;
  readonly options: MaxUnpoolSettings;

  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: MaxUnpoolSettings = {}) {
    super();
    checkOptions('MaxUnpool3d', options, 'stride padding layout');
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /**
   * @param x maxima
   * @param indices where they lie, as `forwardWithIndices` gives them
   * @param outputSize spatial sizes of what was pooled (default: what the windows cover)
   */
  forward(x: Tensor, indices: Tensor, outputSize?: PerAxis): Tensor {
    const size = outputSize === undefined ? {} : { outputSize };
    return maxUnpool3d(x, indices, this.kernelSize, { ...this.options, ...size });
  }
}

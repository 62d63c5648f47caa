/** Layers that change the size of images: interpolation, channels that become pixels, and patches. They have no parameters. */
import {
  fold,
  interpolate,
  type InterpolateOptions,
  type PatchOptions,
  type PerAxis,
  pixelShuffle,
  pixelUnshuffle,
  type Tensor,
  unfold,
} from '@polygrad/core/functions';
import { checkInteger, checkOptions } from '../errors.ts';
import { Module } from '../module/module.ts';

/**
 * Lines, images or volumes at another size. Source: PyTorch `nn.Upsample`.
 *
 * @example
 * new Upsample({ scaleFactor: 2 }).forward(zeros([1, 3, 4, 5])).shape; // [1, 3, 8, 10]
 */
export class Upsample extends Module {
  readonly options: InterpolateOptions;

  /**
   * @param options size or scaleFactor; mode: 'nearest' (the default), 'nearestExact', 'linear', 'bilinear', 'bicubic' or 'trilinear'; alignCorners
   *   (false); layout
   */
  constructor(options: InterpolateOptions) {
    super();
    checkOptions('Upsample', options, 'size scaleFactor mode alignCorners? layout');
    this.options = options;
  }

  /** @param x shape [N, C, ...] */
  forward(x: Tensor): Tensor {
    return interpolate(x, this.options);
  }
}

/**
 * Channels that become pixels: [N, C r r, H, W] to [N, C, H r, W r]. Source: Shi et al. (2016); PyTorch `nn.PixelShuffle`.
 *
 * @example
 * new PixelShuffle(2).forward(zeros([1, 8, 3, 3])).shape; // [1, 2, 6, 6]
 */
export class PixelShuffle extends Module {
  readonly factor: number;

  constructor(factor: number) {
    super();
    checkInteger('PixelShuffle', 'factor', factor, 1);
    this.factor = factor;
  }

  forward(x: Tensor): Tensor {
    return pixelShuffle(x, this.factor);
  }
}

/**
 * Pixels that become channels: [N, C, H r, W r] to [N, C r r, H, W]. Source: PyTorch `nn.PixelUnshuffle`.
 *
 * @example
 * new PixelUnshuffle(2).forward(zeros([1, 2, 6, 6])).shape; // [1, 8, 3, 3]
 */
export class PixelUnshuffle extends Module {
  readonly factor: number;

  constructor(factor: number) {
    super();
    checkInteger('PixelUnshuffle', 'factor', factor, 1);
    this.factor = factor;
  }

  forward(x: Tensor): Tensor {
    return pixelUnshuffle(x, this.factor);
  }
}

/**
 * Patches of images as columns: [N, C, H, W] to [N, C kh kw, patches]. Source: PyTorch `nn.Unfold`.
 *
 * @example
 * new Unfold(2).forward(zeros([1, 3, 4, 4])).shape; // [1, 12, 9]
 */
export class Unfold extends Module {
  readonly kernelSize: PerAxis;
  readonly options: PatchOptions;

  /**
   * @param kernelSize size of a patch
   * @param options stride (1), padding (0), dilation (1)
   */
  constructor(kernelSize: PerAxis, options: PatchOptions = {}) {
    super();
    checkOptions('Unfold', options, 'stride padding dilation');
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return unfold(x, this.kernelSize, this.options);
  }
}

/**
 * Columns put back as patches, which are added where they overlap: [N, C kh kw, patches] to [N, C, H, W]. Source: PyTorch `nn.Fold`.
 *
 * @example
 * new Fold(4, 2).forward(ones([1, 12, 9])).shape; // [1, 3, 4, 4]
 */
export class Fold extends Module {
  readonly outputSize: PerAxis;
  readonly kernelSize: PerAxis;
  readonly options: PatchOptions;

  /**
   * @param outputSize height and width of the images
   * @param kernelSize size of a patch
   * @param options stride (1), padding (0), dilation (1)
   */
  constructor(outputSize: PerAxis, kernelSize: PerAxis, options: PatchOptions = {}) {
    super();
    checkOptions('Fold', options, 'stride padding dilation');
    this.outputSize = outputSize;
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return fold(x, this.outputSize, this.kernelSize, this.options);
  }
}

/** Layers that change only the shape. */
import { flatten, type Tensor } from '@polygrad/core/functions';
import { checkOptions } from '../errors.ts';
import { Module } from '../module/module.ts';

/**
 * Joins the axes from `start` to `end` into one. Source: PyTorch `nn.Flatten`.
 *
 * @example
 * new Flatten().forward(zeros([64, 16, 7, 7])).shape; // [64, 784]
 */
export class Flatten extends Module {
  readonly start: number;
  readonly end: number;

  /** Defaults join all axes but the first. */
  constructor(options: { readonly start?: number; readonly end?: number } = {}) {
    super();
    checkOptions('Flatten', options, 'start# end#');
    this.start = options.start ?? 1;
    this.end = options.end ?? -1;
  }

  forward(x: Tensor): Tensor {
    return flatten(x, { start: this.start, end: this.end });
  }
}

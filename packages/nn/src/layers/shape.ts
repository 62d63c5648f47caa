/** Layers that change only the shape. */
import { flatten, type Tensor, unflatten } from '@polygrad/core/functions';
import { checkList, checkOptions } from '../errors.ts';
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

/**
 * Splits one axis into several. Source: PyTorch `nn.Unflatten`.
 *
 * @example
 * new Unflatten(1, [2, 4]).forward(zeros([3, 8])).shape; // [3, 2, 4]
 */
export class Unflatten extends Module {
  readonly axis: number;
  readonly sizes: readonly number[];

  /**
   * @param axis the axis to split
   * @param sizes of the axes in its place
   */
  constructor(axis: number, sizes: readonly number[]) {
    super();
    checkList('Unflatten', 'sizes', sizes);
    this.axis = axis;
    this.sizes = [...sizes];
  }

  forward(x: Tensor): Tensor {
    return unflatten(x, this.axis, this.sizes);
  }
}

/**
 * What comes in goes out: a place holder in networks. Source: PyTorch `nn.Identity`.
 *
 * @example
 * new Identity().forward(tensor([1, 2])); // [1, 2]
 */
export class Identity extends Module {
  forward(x: Tensor): Tensor {
    return x;
  }
}

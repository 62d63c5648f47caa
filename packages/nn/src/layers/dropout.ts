/** Dropout: in training, some elements are zero and the others larger; in evaluation, nothing happens. */
import { dropout, type Tensor } from '@polygrad/core/functions';
import { checkFraction } from '../errors.ts';
import { Module } from '../module/module.ts';

/**
 * Sets each element to zero with probability `p` and divides the others by `1 - p`, while training. Source: Srivastava
 * et al. (2014); PyTorch `nn.Dropout`. Which elements go is determined by the core package's `seed`.
 *
 * @example
 * const layer = new Dropout(0.5).eval();
 * await layer.forward(ones([2])).data(); // Float32Array [1, 1]
 */
export class Dropout extends Module {
  readonly p: number;

  /** @param p share of elements that become zero (default 0.5) */
  constructor(p: number = 0.5) {
    super();
    checkFraction('Dropout', 'p', p);
    this.p = p;
  }

  forward(x: Tensor): Tensor {
    return this.training && this.p > 0 ? dropout(x, { p: this.p, training: true }) : x;
  }
}

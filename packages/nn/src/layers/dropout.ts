/** Dropout: in training, some elements are zero and the others larger; in evaluation, nothing happens. */
import { dropout, greater, ones, type Tensor, where } from '@polygrad/core/functions';
import { checkFraction, NnError } from '../errors.ts';
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

/** For each channel of each element of the batch: 0, or 1 / (1 - p). */
function channelMask(op: string, rank: number, x: Tensor, p: number): Tensor {
  if (rank > 0 && x.ndim !== rank + 2)
    throw new NnError(
      op,
      `x has shape [${x.shape.join(', ')}]; it must have ${rank + 2} axes: N, C and ${rank} spatial; add axes with unsqueeze()`,
      ['x'],
    );
  return dropout(ones([...x.shape.slice(0, 2), ...x.shape.slice(2).map(() => 1)], { dtype: x.dtype }), { p });
}

/** What Dropout1d to Dropout3d have in common. */
abstract class ChannelDropout extends Module {
  readonly p: number;
  readonly #rank: number;

  constructor(rank: number, p: number) {
    super();
    checkFraction(`Dropout${rank}d`, 'p', p);
    this.p = p;
    this.#rank = rank;
  }

  forward(x: Tensor): Tensor {
    return this.training && this.p > 0 ? x.mul(channelMask(`Dropout${this.#rank}d`, this.#rank, x, this.p)) : x;
  }
}

/**
 * Sets whole channels of lines to zero with probability `p` and divides the others by `1 - p`, while training. Source: Tompson et al. (2015);
 * PyTorch `nn.Dropout1d`.
 *
 * @example
 * new Dropout1d(0.5).forward(ones([2, 4, 5])).shape; // [2, 4, 5]
 */
export class Dropout1d extends ChannelDropout {
  /** @param p share of channels that become zero (default 0.5) */
  constructor(p: number = 0.5) {
    super(1, p);
  }
}

/**
 * Sets whole channels of images to zero with probability `p` and divides the others by `1 - p`, while training. Source: Tompson et al. (2015);
 * PyTorch `nn.Dropout2d`.
 *
 * @example
 * new Dropout2d(0.5).forward(ones([2, 4, 5, 5])).shape; // [2, 4, 5, 5]
 */
export class Dropout2d extends ChannelDropout {
  /** @param p share of channels that become zero (default 0.5) */
  constructor(p: number = 0.5) {
    super(2, p);
  }
}

/**
 * Sets whole channels of volumes to zero with probability `p` and divides the others by `1 - p`, while training. Source: Tompson et al. (2015);
 * PyTorch `nn.Dropout3d`.
 *
 * @example
 * new Dropout3d(0.5).forward(ones([2, 4, 3, 3, 3])).shape; // [2, 4, 3, 3, 3]
 */
export class Dropout3d extends ChannelDropout {
  /** @param p share of channels that become zero (default 0.5) */
  constructor(p: number = 0.5) {
    super(3, p);
  }
}

/** What SELU goes to far below zero: minus its scale times its alpha. */
const seluLimit = -1.0507009873554805 * 1.6732632423543772;

/** Elements where the mask is zero become that limit; then all are scaled and shifted so that mean 0 and variance 1 stay. */
function alphaDropped(x: Tensor, mask: Tensor, p: number): Tensor {
  const scale = 1 / Math.sqrt((1 - p) * (1 + p * seluLimit * seluLimit));
  return where(greater(mask, 0), x, seluLimit)
    .mul(scale)
    .add(-scale * seluLimit * p);
}

/**
 * Dropout for networks of SELU: what is dropped becomes SELU's lower limit, and mean 0 and variance 1 stay. Source: Klambauer et al. (2017);
 * PyTorch `nn.AlphaDropout`.
 *
 * @example
 * new AlphaDropout(0.5).eval().forward(ones([2])); // [1, 1]
 */
export class AlphaDropout extends Module {
  readonly p: number;

  /** @param p share of elements that are dropped (default 0.5) */
  constructor(p: number = 0.5) {
    super();
    checkFraction('AlphaDropout', 'p', p);
    this.p = p;
  }

  forward(x: Tensor): Tensor {
    if (!this.training || this.p === 0) return x;
    return alphaDropped(x, dropout(ones(x.shape, { dtype: x.dtype }), { p: this.p }), this.p);
  }
}

/**
 * AlphaDropout of whole channels. Source: PyTorch `nn.FeatureAlphaDropout`.
 *
 * @example
 * new FeatureAlphaDropout(0.5).forward(ones([2, 4, 5])).shape; // [2, 4, 5]
 */
export class FeatureAlphaDropout extends Module {
  readonly p: number;

  /** @param p share of channels that are dropped (default 0.5) */
  constructor(p: number = 0.5) {
    super();
    checkFraction('FeatureAlphaDropout', 'p', p);
    this.p = p;
  }

  /** @param x shape [N, C, ...] */
  forward(x: Tensor): Tensor {
    if (!this.training || this.p === 0) return x;
    return alphaDropped(x, channelMask('FeatureAlphaDropout', 0, x, this.p), this.p);
  }
}

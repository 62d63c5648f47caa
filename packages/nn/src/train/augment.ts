/**
 * Augmentation: random changes of a batch before each step of a training, on the device. Every image is changed on its own, by numbers of the
 * generator that `seed` starts, so a training repeats bit for bit.
 */
import {
  add,
  affineGrid,
  arange,
  bernoulli,
  broadcastTo,
  cos,
  div,
  flip,
  full,
  gather,
  getRandomState,
  greaterEqual,
  gridSample,
  less,
  logicalAnd,
  mul,
  oneHot,
  pad,
  permutation,
  rand,
  randint,
  reshape,
  sin,
  splitKey,
  stack,
  sub,
  take,
  type Tensor,
  tensor,
  where,
} from '@polygrad/core/functions';
import { checkFits, checkInteger, checkNumber, checkOptions, checkRequired, NnError } from '../errors.ts';

/** A change of a batch before its step: inputs and targets [rows, ...], as many rows as before. */
export type BatchTransform = (x: Tensor, y: Tensor) => readonly [x: Tensor, y: Tensor];

function checkProbability(op: string, value: number): void {
  checkFits(op, 'probability', value, value >= 0 && value <= 1, 'a number from 0 to 1');
}

/** Rows, channels, height and width of a batch of images. */
function sizeOf(op: string, x: Tensor): readonly [number, number, number, number] {
  if (x.shape.length !== 4)
    throw new NnError(op, `x has shape [${x.shape}]; images are [rows, channels, height, width]`, ['x']);
  return x.shape as unknown as readonly [number, number, number, number];
}

/** Options of `randomFlip`. */
export interface RandomFlipOptions {
  /** Default 0.5. */
  readonly probability?: number;
  /** The axis that is turned round; default -1, which mirrors images left to right. */
  readonly axis?: number;
}

/**
 * Mirrors some rows of a batch.
 *
 * @param options probability (0.5), axis (-1)
 * @throws NnError for options that do not fit
 * @example
 * const [x] = randomFlip({ probability: 1 })(tensor([[1, 2]]), tensor([0]));
 * x; // [[2, 1]]
 */
export function randomFlip(options: RandomFlipOptions = {}): BatchTransform {
  checkOptions('randomFlip', options, 'probability# axis#');
  const { probability = 0.5, axis = -1 } = options;
  checkProbability('randomFlip', probability);
  checkInteger('randomFlip', 'axis', axis, Number.MIN_SAFE_INTEGER);
  return (x, y) => {
    const which = axis < 0 ? axis + x.shape.length : axis;
    if (which < 1 || which >= x.shape.length)
      throw new NnError('randomFlip', `axis ${axis} of x [${x.shape}]; must be an axis after the first`, ['axis']);
    const turned = bernoulli(probability, [x.shape[0]!, ...x.shape.slice(1).map(() => 1)], { dtype: 'bool' });
    return [where(turned, flip(x, which), x), y];
  };
}

/** Options of `randomCrop`. */
export interface RandomCropOptions {
  /** Pixels put around each image before a part of the old size is cut out. Default 4. */
  readonly padding?: number;
  /** What they hold. Default 0. */
  readonly fill?: number;
}

/**
 * Moves each image by up to `padding` pixels in both directions: it is padded, and a part of its size is cut out. Source: He et al.,
 * "Deep residual learning for image recognition" (2015), section 4.2; torchvision `RandomCrop`.
 *
 * @param options padding (4), fill (0)
 * @throws NnError for options that do not fit, and inputs that are no images [rows, channels, height, width]
 * @example
 * randomCrop({ padding: 2 })(zeros([8, 3, 32, 32]), zeros([8]))[0].shape; // [8, 3, 32, 32]
 */
export function randomCrop(options: RandomCropOptions = {}): BatchTransform {
  checkOptions('randomCrop', options, 'padding# fill#');
  const { padding = 4, fill = 0 } = options;
  checkInteger('randomCrop', 'padding', padding, 0, 2 ** 20);
  checkNumber('randomCrop', 'fill', fill);
  return (x, y) => {
    const [n, c, h, w] = sizeOf('randomCrop', x);
    const around = [padding, padding] as const;
    const wide = pad(x, [[0, 0], [0, 0], around, around], { value: fill }); // prettier-ignore
    const [down, across] = [0, 1].map(() => randint(0, 2 * padding + 1, [n, 1, 1, 1], { dtype: 'int32' }));
    const rows = add(down!, reshape(arange(0, h, { dtype: 'int32' }), [1, 1, h, 1]));
    const columns = add(across!, reshape(arange(0, w, { dtype: 'int32' }), [1, 1, 1, w]));
    const cut = gather(wide, broadcastTo(rows, [n, c, h, w + 2 * padding]), 2);
    return [gather(cut, broadcastTo(columns, [n, c, h, w]), 3), y];
  };
}

/** Options of `cutout`. */
export interface CutoutOptions {
  /** Pixels of a side of the square. */
  readonly size: number;
  /** What it is filled with. Default 0. */
  readonly fill?: number;
}

/**
 * Fills a square at a random place of each image; its centre is in the image, parts may be outside. Source: DeVries and Taylor, "Improved
 * regularization of convolutional neural networks with cutout" (2017).
 *
 * @param options size, fill (0)
 * @throws NnError for options that do not fit, and inputs that are no images [rows, channels, height, width]
 * @example
 * cutout({ size: 8 })(zeros([4, 3, 32, 32]), zeros([4]))[0].shape; // [4, 3, 32, 32]
 */
export function cutout(options: CutoutOptions): BatchTransform {
  checkRequired('cutout', options, 'size# fill#');
  const { size, fill = 0 } = options;
  checkInteger('cutout', 'size', size, 1);
  checkNumber('cutout', 'fill', fill);
  return (x, y) => {
    const [n, , h, w] = sizeOf('cutout', x);
    const within = (length: number, shape: readonly number[]): Tensor => {
      const from = sub(randint(0, length, [n, 1, 1, 1], { dtype: 'int32' }), Math.floor(size / 2));
      const at = reshape(arange(0, length, { dtype: 'int32' }), shape as number[]);
      return logicalAnd(greaterEqual(at, from), less(at, add(from, size)));
    };
    const square = logicalAnd(within(h, [1, 1, h, 1]), within(w, [1, 1, 1, w]));
    return [where(square, full([], fill, { dtype: x.dtype }), x), y];
  };
}

/** Options of `randomAffine`. */
export interface RandomAffineOptions {
  /** Greatest turn to either side, in degrees. Default 0. */
  readonly degrees?: number;
  /** Greatest move to either side, as shares of width and height. Default [0, 0]. */
  readonly translate?: readonly [number, number];
  /** Least and greatest scale. Default [1, 1]. */
  readonly scale?: readonly [number, number];
}

/**
 * Rotates, scales and moves each image about its centre, by bilinear interpolation; pixels from outside are 0. Source: torchvision
 * `RandomAffine`.
 *
 * @param options degrees (0), translate ([0, 0]), scale ([1, 1])
 * @throws NnError for options that do not fit, and inputs that are no images [rows, channels, height, width]
 * @example
 * randomAffine({ degrees: 10, scale: [0.9, 1.1] })(zeros([4, 1, 28, 28]), zeros([4]))[0].shape; // [4, 1, 28, 28]
 */
export function randomAffine(options: RandomAffineOptions): BatchTransform {
  checkOptions('randomAffine', options, 'degrees# translate scale');
  const { degrees = 0, translate = [0, 0], scale = [1, 1] } = options;
  checkNumber('randomAffine', 'degrees', degrees, 0);
  const isPair = (pair: readonly number[], least: number): boolean =>
    Array.isArray(pair) && pair.length === 2 && pair.every((value) => Number.isFinite(value) && value >= least);
  checkFits('randomAffine', 'translate', translate, isPair(translate, 0), 'two shares of at least 0');
  const isRange = isPair(scale, 0) && scale[0] > 0 && scale[0] <= scale[1];
  checkFits('randomAffine', 'scale', scale, isRange, 'two numbers above 0, the lesser first');
  return (x, y) => {
    const [n, , h, w] = sizeOf('randomAffine', x);
    const between = (low: number, high: number): Tensor => add(mul(rand([n]), high - low), low);
    const angle = mul(between(-degrees, degrees), Math.PI / 180);
    const size = between(scale[0], scale[1]);
    const [right, down] = translate.map((share) => mul(between(-share, share), 2));
    // The map from places of the result to places of the image: move back, turn back, scale back. Places are shares of width and height.
    const [c, s] = [div(cos(angle), size), div(sin(angle), size)];
    const [a, b, d, e] = [c, mul(s, h / w), mul(s, -w / h), c];
    const at = (p: Tensor, q: Tensor): Tensor => sub(mul(mul(p, right!), -1), mul(q, down!));
    const map = stack([stack([a, b, at(a, b)], 1), stack([d, e, at(d, e)], 1)], 1); // prettier-ignore
    return [gridSample(x, affineGrid(map, [...x.shape])), y];
  };
}

/** Numbers from 0 to 1 on the host, of the generator's place. */
function* hostNumbers(): Generator<number, never> {
  const { key, calls } = getRandomState();
  let next = splitKey([key[0], (key[1] ^ (calls * 0x9e3779b1)) >>> 0], 1)[0]!;
  for (;;) {
    const [use, rest] = splitKey(next, 2);
    yield (use![0] + 0.5) / 2 ** 32;
    next = rest!;
  }
}

/** A number of the gamma distribution. Source: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). */
function gamma(shape: number, numbers: Generator<number, never>): number {
  const next = (): number => numbers.next().value;
  if (shape < 1) return gamma(shape + 1, numbers) * next() ** (1 / shape);
  const d = shape - 1 / 3;
  for (;;) {
    const normal = Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next());
    const v = (1 + normal / Math.sqrt(9 * d)) ** 3;
    if (v > 0 && Math.log(next()) < (normal * normal) / 2 + d - d * v + d * Math.log(v)) return d * v;
  }
}

/** Options of `mixup`. */
export interface MixupOptions {
  /** Of the beta distribution of the shares: the greater, the more even. Default 0.2. */
  readonly alpha?: number;
  /** How many classes: targets that are class numbers [rows] become probabilities [rows, classes]. Left out, targets are mixed as they are. */
  readonly classes?: number;
}

/**
 * Each row becomes a mixture of two rows, targets likewise; the share is drawn for each batch. Source: Zhang et al., "mixup: Beyond empirical
 * risk minimization" (2018).
 *
 * @param options alpha (0.2), classes
 * @throws NnError for options that do not fit
 * @example
 * mixup({ classes: 10 })(zeros([8, 3]), zeros([8], { dtype: 'int32' }))[1].shape; // [8, 10]
 */
export function mixup(options: MixupOptions = {}): BatchTransform {
  checkOptions('mixup', options, 'alpha# classes#');
  const { alpha = 0.2, classes } = options;
  checkFits('mixup', 'alpha', alpha, Number.isFinite(alpha) && alpha > 0, 'a number above 0');
  if (classes !== undefined) checkInteger('mixup', 'classes', classes, 1);
  return (x, y) => {
    const numbers = hostNumbers();
    const [first, second] = [gamma(alpha, numbers), gamma(alpha, numbers)];
    // Both round to 0 for a tiny alpha: then one row counts alone.
    const share = first + second > 0 ? first / (first + second) : 1;
    const order = permutation(x.shape[0]!);
    // Uploaded, not a constant of the plan.
    const part = tensor(share);
    const targets = classes === undefined ? y : oneHot(y, classes);
    const mixed = (of: Tensor): Tensor => add(mul(of, part), mul(take(of, order, 0), sub(1, part)));
    return [mixed(x), mixed(targets)];
  };
}

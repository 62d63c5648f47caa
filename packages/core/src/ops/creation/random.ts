/**
 * Random tensors. Bits come from a counter-based generator (tensor/random-key.ts) and are computed where they are used; the key is a
 * number bound at each run, so repeated calls share one plan.
 */
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { graph } from '../../graph/state.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { cosPrimitive } from '../../primitives/elementary.ts';
import { checkCount, checkShape, mostOnHost, normalizeAxis, optionsOf } from '@polygrad/compiler/shape/axes';
import { type DType, isInteger, isSmallFloat } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { normalize } from '@polygrad/compiler/shape/host';
import type { Shape } from '@polygrad/compiler/shape/view';
import { checkNames } from '@polygrad/compiler/shape/options';
import { nodeOf, uploadNode, wrap } from '../../tensor/handle.ts';
import type { CreationOptions, NamedDType, PlainDType, Tensor, TensorLike } from '../../tensor/types.ts';
import { leaf, needFloat } from './creation.ts';
import { floatOperand, weak } from '../../tensor/operand.ts';
import { draw, isDrawn, type RandomKey, resolveKey, splitKey, wordsOf } from '../../tensor/random-key.ts';
import { take } from '../indexing/indexing.ts';
import { say } from '@polygrad/compiler/shape/shown';

/** Options of `rand`, `randn`, `randint` and `bernoulli`. */
export interface RandomOptions<D extends DType = DType> extends CreationOptions<D> {
  /** Key, or seed of a key; the same key gives the same numbers. Default: the next key of the generator that `seed` starts. */
  readonly key?: RandomKey | number;
}

export function checkRandom(op: string, options: RandomOptions): void {
  checkNames(op, options, 'key dtype% requiresGrad?');
}

/** Random uint32 of a shape. */
export function bits(key: RandomKey, shape: Shape): Node {
  const attr = isDrawn(key) ? { shape, drawn: true } : { shape };
  return makeNode('randomBits', wordsOf(key), attr);
}

const u32 = (value: number): Node => p.constant(value, 'uint32');

/** Random bits of a uniform number: all that its significand holds, so that nothing is rounded up to 1. */
const digits = { float32: 24, float16: 11, bfloat16: 8 } as const;

/** Uniform in [0, 1): 24 random bits for float32, 53 for float64, 11 for float16, 8 for bfloat16. */
export function uniform(key: RandomKey, shape: Shape, dtype: DType): Node {
  if (dtype === 'float32' || isSmallFloat(dtype)) {
    const whole = p.cast(p.binary('shr', bits(key, shape), u32(32 - digits[dtype])), 'float32');
    return p.cast(p.mul(whole, p.constant(2 ** -digits[dtype], 'float32')), dtype);
  }
  const [first, second] = splitKey(key) as [RandomKey, RandomKey];
  const high = p.cast(p.binary('shr', bits(first, shape), u32(5)), dtype);
  const low = p.cast(p.binary('shr', bits(second, shape), u32(6)), dtype);
  return p.mul(p.add(p.mul(high, p.constant(2 ** 26, dtype)), low), p.constant(2 ** -53, dtype));
}

/**
 * Uniform numbers in [0, 1). Source: PyTorch `rand`.
 *
 * @param shape sizes of the axes
 * @param options key, dtype (float32), requiresGrad
 *
 * @example
 * rand([2, 3], { key: 1 }).shape; // [2, 3]
 */
export function rand<const D extends DType = PlainDType>(
  shape: Shape,
  options: RandomOptions<D> = {},
): Tensor<NamedDType<D>> {
  const sizes = checkShape('rand', shape);
  checkRandom('rand', options);
  return compose('rand', () => {
    const dtype = options.dtype ?? 'float32';
    needFloat('rand', dtype);
    return leaf('rand', wrap(uniform(resolveKey(options.key), sizes, dtype)), options);
  });
}

/**
 * Numbers of the normal distribution with mean 0 and variance 1, by Box and Muller's transform: sqrt(-2 log(1 - u)) cos(2 pi v) with
 * uniform u and v. The bits are the same on every engine, the last places of the numbers may differ. Source: PyTorch `randn`.
 *
 * @param shape sizes of the axes
 * @param options key, dtype (float32), requiresGrad
 *
 * @example
 * randn([2, 3], { key: 1 }).shape; // [2, 3]
 */
export function randn<const D extends DType = PlainDType>(
  shape: Shape,
  options: RandomOptions<D> = {},
): Tensor<NamedDType<D>> {
  const sizes = checkShape('randn', shape);
  checkRandom('randn', options);
  return compose('randn', () => {
    const dtype = options.dtype ?? 'float32';
    needFloat('randn', dtype);
    const wide: DType = dtype === 'float64' ? 'float64' : 'float32';
    const [a, b] = splitKey(resolveKey(options.key)) as [RandomKey, RandomKey];
    const u = p.sub(p.constant(1, wide), uniform(a, sizes, wide));
    const radius = p.unary('sqrt', p.mul(p.unary('log', u), p.constant(-2, wide)));
    const angle = p.mul(uniform(b, sizes, wide), p.constant(2 * Math.PI, wide));
    return leaf('randn', wrap(p.cast(p.mul(radius, p.unary(cosPrimitive, angle)), dtype)), options);
  });
}

/**
 * Integers from `low` up to, but without, `high`, all nearly equally likely (the bias is below (high - low) / 2^32). Source: PyTorch `randint`.
 *
 * @param shape sizes of the axes
 * @param options key, dtype (int32), requiresGrad with a floating-point dtype
 * @throws ArgumentError unless low and high are integers with low < high, at most 2^32 - 1 apart, that the dtype holds
 *
 * @example
 * randint(0, 6, [10], { key: 1 }).shape; // [10]
 */
export function randint<const D extends DType = PlainDType>(
  low: number,
  high: number,
  shape: Shape,
  options: RandomOptions<D> = {},
): Tensor<NamedDType<D>> {
  checkRandom('randint', options);
  return compose('randint', () => {
    const sizes = checkShape('randint', shape);
    if (!Number.isInteger(low) || !Number.isInteger(high) || high <= low || high - low >= 2 ** 32) {
      throw new ArgumentError('randint', say`bad range: ${low} .. ${high}; both must be integers with low < high`);
    }
    const dtype = options.dtype ?? 'int32';
    for (const end of [low, high - 1]) {
      if (isInteger(dtype) && Number(normalize(dtype, end)) !== end)
        throw new ArgumentError(
          'randint',
          say`bad range: ${low} .. ${high}; ${end} is no ${dtype}, choose a wider dtype`,
        );
    }
    const offset = p.binary('irem', bits(resolveKey(options.key), sizes), p.scalar(high - low, 'uint32'));
    return leaf('randint', wrap(p.add(p.cast(offset, dtype), p.scalar(low, dtype))), options);
  });
}

/**
 * 1 with the given probability, else 0. Source: PyTorch `bernoulli`.
 *
 * @param probability number from 0 to 1, or tensor of probabilities (below 0 counts as 0, above 1 as 1)
 * @param shape sizes of the axes; that of the probabilities if left out
 * @param options key, dtype (float32), requiresGrad
 * @throws ArgumentError for a number outside 0 to 1
 *
 * @example
 * bernoulli(0.5, [4], { key: 1 }); // four coins
 */
export function bernoulli<const D extends DType = PlainDType>(
  probability: TensorLike,
  shape?: Shape,
  options: RandomOptions<D> = {},
): Tensor<NamedDType<D>> {
  checkRandom('bernoulli', options);
  return compose('bernoulli', () => {
    if (typeof probability !== 'object' && !(typeof probability === 'number' && probability >= 0 && probability <= 1))
      throw new ArgumentError('bernoulli', say`bad probability: ${probability}; must be from 0 to 1`);
    const chance = typeof probability === 'object' ? floatOperand(probability) : weak(probability, 'float32', true);
    const sizes = checkShape('bernoulli', shape ?? chance.shape);
    const wide: DType = chance.dtype === 'float64' ? 'float64' : 'float32';
    const hit = p.lt(uniform(resolveKey(options.key), sizes, wide), p.broadcastTo(p.cast(chance, wide), sizes));
    return leaf('bernoulli', wrap(p.cast(hit, options.dtype ?? 'float32')), options);
  });
}

/** Positions for which words are drawn before any are swapped. */
const drawnTogether = 256;

/** The numbers 0 .. n-1 in a random order, for a key of signed words. */
function randomOrder(n: number, k0: number, k1: number): Int32Array {
  const order = new Int32Array(n);
  for (let i = 1; i < n; i++) order[i] = i;
  // Swaps that follow each other wait for memory side by side. With words drawn in between each waited alone.
  const words = new Uint32Array(2 * drawnTogether);
  for (let i = n - 1; i > 0; ) {
    const last = Math.max(0, i - drawnTogether);
    for (let k = i; k > last; k--) draw(words, 2 * (i - k), k0, k1, k, 0);
    for (let at = 0; i > last; at += 2, i--) {
      // From 53 random bits, so the bias is below n / 2^53.
      const j = Math.floor(((words[at]! >>> 5) * 2 ** 26 + (words[at + 1]! >>> 6)) * 2 ** -53 * (i + 1));
      const swapped = order[i]!;
      order[i] = order[j]!;
      order[j] = swapped;
    }
  }
  return order;
}

/**
 * A random order: of the numbers 0 .. n-1 (int32), or of the slices of a tensor along an axis. Source: PyTorch `randperm`.
 *
 * The order is worked out on the host (Fisher and Yates), the same for a key everywhere.
 *
 * @param of a number n up to 2^27, or a tensor
 * @param options an axis, or key, axis (0) for tensors
 * @returns int32 [n], or the shape of the tensor
 * @throws ArgumentError for a bad length, and without a key inside vmap; ShapeError for an axis that is not there
 *
 * @example
 * permutation(5, { key: 1 }); // 0 .. 4 in some order
 */
export function permutation(
  of: number | Tensor,
  options: number | { readonly key?: RandomKey | number; readonly axis?: number } = {},
): Tensor {
  const chosen = optionsOf(options);
  checkNames('permutation', chosen, 'key axis');
  return compose('permutation', () => {
    const axis = typeof of === 'number' ? 0 : normalizeAxis('permutation', chosen.axis ?? 0, nodeOf(of).shape.length);
    const n = typeof of === 'number' ? of : of.shape[axis]!;
    checkCount('permutation', 'length', n, 0, mostOnHost);
    if (chosen.key === undefined && graph.placeholders !== null) {
      throw new ArgumentError(
        'permutation',
        'no key inside vmap: the order is worked out once, on the host; give { key } to use one order for all examples, or take argSort() of rand([n]) for one each',
      );
    }
    const key = resolveKey(chosen.key);
    const order = randomOrder(n, key[0] | 0, key[1] | 0);
    const indices = wrap(uploadNode(order, [n], 'int32'));
    return typeof of === 'number' ? indices : take(of, indices, axis);
  });
}

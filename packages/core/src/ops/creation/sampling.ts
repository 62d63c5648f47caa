/**
 * Random choices: positions drawn with given probabilities, and logits of which some are left out before that.
 *
 * One choice is the greatest of the logits with Gumbel noise added; several without replacement are the greatest ones. Several with replacement are
 * found by uniform numbers among the running sums. Nothing waits for the device, so what is no distribution raises no error: its
 * positions are -1. That is so for NaN, negative or infinite numbers, and where nothing is above zero.
 */
import * as p from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { log1pPrimitive } from '../../primitives/elementary.ts';
import { checkShape, optionsOf, readAxis } from '@polygrad/compiler/shape/axes';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import type { Shape } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given } from '../../tensor/operand.ts';
import { type RandomKey, resolveKey } from '../../tensor/random-key.ts';
import type { NamedDType, PlainDType, Tensor, TensorLike } from '../../tensor/types.ts';
import { elementsAt, orderOf } from '../indexing/index-argument.ts';
import { searchSorted } from '../order/searching.ts';
import { cumMax, cumSum } from '../reduction/cumulative.ts';
import { leaf, needFloat } from './creation.ts';
import { bits, checkRandom, type RandomOptions, uniform } from './random.ts';

/** Below all that is drawn; no engine needs infinity. */
const lowest = -3.4e38;

const wideOf = (dtype: DType): DType => (dtype === 'float64' ? 'float64' : 'float32');

/** Noise of the Gumbel distribution: -log(-log(1 - v)), v uniform inside (0, 1). Steps of v are finest near 0, which gives the large values. */
function noise(key: RandomKey, shape: Shape, dtype: DType): Node {
  const constant = (value: number): Node => p.constant(value, dtype);
  const v =
    dtype === 'float64'
      ? p.binary('minimum', p.add(uniform(key, shape, dtype), constant(2 ** -54)), constant(1 - 2 ** -53))
      : p.binary(
          'minimum',
          p.mul(p.add(p.cast(bits(key, shape), dtype), constant(0.5)), constant(2 ** -32)),
          constant(1 - 2 ** -24),
        );
  return p.neg(p.unary('log', p.neg(p.unary(log1pPrimitive, p.neg(v)))));
}

/**
 * Random numbers of the standard Gumbel distribution, -log(-log(u)) with uniform u: the position of the greatest of `logits + gumbel` is drawn
 * with the probabilities softmax(logits). Source: Gumbel, "Statistical theory of extreme values" (1954); JAX `random.gumbel`.
 *
 * @param shape sizes of the axes
 * @param options key, dtype (float32), requiresGrad
 *
 * @example
 * gumbel([2, 3], { key: 1 }).shape; // [2, 3]
 */
export function gumbel<const D extends DType = PlainDType>(
  shape: Shape,
  options: RandomOptions<D> = {},
): Tensor<NamedDType<D>> {
  checkRandom('gumbel', options);
  return compose('gumbel', () => {
    const sizes = checkShape('gumbel', shape);
    const dtype = options.dtype ?? 'float32';
    needFloat('gumbel', dtype);
    const drawn = noise(resolveKey(options.key), sizes, wideOf(dtype));
    return leaf('gumbel', wrap(p.cast(drawn, dtype)), options);
  });
}

/** Options of categorical. */
export interface CategoricalOptions {
  /** The axis of the logits of one distribution; -1 if left out. */
  readonly axis?: number;
  /** Logits are divided by it: below 1 likely ones become likelier. 0 takes the greatest. Default 1. */
  readonly temperature?: number;
  /** Key, or seed of a key. Default: the next key of the generator that `seed` starts. */
  readonly key?: RandomKey | number;
}

/** Where elements are, -1 where there is no distribution. */
const orNone = (there: Node, positions: Node): Node => p.where(there, positions, p.like(positions, -1));

const both = (a: Node, b: Node): Node => p.binary('and', a, b);

function readLine(op: string, x: TensorLike, options: number | { readonly axis?: number } | undefined, names: string) {
  const node = floatOperand(x);
  const axis = readAxis(op, options, -1, node.shape.length, names as 'axis');
  const count = node.shape[axis] ?? 0;
  if (count === 0)
    throw new ShapeError(op, say`shape ${showShape(node.shape)} has no elements along axis ${axis} to choose from`, [
      node.shape,
    ]);
  return { node, axis, count, wide: p.cast(p.stopGradient(node), wideOf(node.dtype)) };
}

/**
 * Positions drawn with the probabilities softmax(logits / temperature), by Gumbel noise. -Infinity is never drawn; where all logits are, or one is
 * NaN or Infinity, the position is -1. Source: JAX `random.categorical`.
 *
 * @param logits unnormalised logarithms of probabilities; a mask by the dtype's lowest number counts as -Infinity
 * @param options an axis, or axis (-1), temperature (1), key
 * @returns int32, the shape of the logits without the axis
 * @throws ArgumentError for a temperature below 0; ShapeError where there is nothing to choose from
 *
 * @example
 * categorical(tensor([[-Infinity, 0, -Infinity], [0, -Infinity, -Infinity]])); // [1, 0]
 */
export function categorical(logits: TensorLike, options: number | CategoricalOptions = {}): Tensor {
  const chosen = optionsOf(options);
  return compose('categorical', () => {
    const { node, axis, wide } = readLine('categorical', logits, chosen, 'axis temperature# key');
    const { temperature = 1, key } = chosen;
    if (!(temperature >= 0 && Number.isFinite(temperature)))
      throw new ArgumentError('categorical', say`bad temperature: ${temperature}; must be a finite number from 0`);
    const bound = node.dtype === 'float16' ? -32752 : -1.7e38;
    const top = p.insertAxes(p.reduce(wide, 'max', [axis]), [axis]);
    const there = both(p.lt(p.like(top, bound), top), p.lt(top, p.like(top, -lowest)));
    const far = p.sub(wide, top);
    const scores =
      temperature === 0
        ? wide
        : p.add(p.div(far, nodeOf(given(temperature, wrap(wide)))), noise(resolveKey(key), wide.shape, wide.dtype));
    const visible = p.where(p.lt(p.like(wide, bound), wide), scores, p.like(wide, lowest));
    const shape = node.shape.filter((_, i) => i !== axis);
    return wrap(orNone(p.reshape(there, shape), p.argReduce(visible, 'max', [axis])));
  });
}

/** Options of multinomial. */
export interface MultinomialOptions {
  /** Whether a position may be drawn again. Default false. */
  readonly replacement?: boolean;
  /** Key, or seed of a key. Default: the next key of the generator that `seed` starts. */
  readonly key?: RandomKey | number;
}

/**
 * Positions drawn with probabilities that need not sum to 1. What has the probability 0 is never drawn: without replacement, positions behind the
 * last that can be drawn are -1. So are all of a line with a negative number, NaN or Infinity, or of zeros, where PyTorch raises an error.
 * Source: PyTorch `multinomial`; without replacement: Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006).
 *
 * @param probabilities not negative, shape [..., n]
 * @param count how many positions to draw of each line
 * @param options replacement (false), key
 * @returns int32, shape [..., count]; without replacement in the order they were drawn
 * @throws ArgumentError unless the count is an integer from 1 and, without replacement, at most n
 *
 * @example
 * multinomial(tensor([0, 3, 0]), 2, { replacement: true }); // [1, 1]
 */
export function multinomial(probabilities: Tensor, count: number, options: MultinomialOptions = {}): Tensor {
  checkNames('multinomial', options, 'replacement? key');
  return compose('multinomial', () => {
    const { replacement = false } = options;
    const { axis, count: n, wide } = readLine('multinomial', probabilities, -1, 'axis');
    const most = replacement ? 2 ** 27 : n;
    if (!Number.isInteger(count) || count < 1 || count > most)
      throw new ArgumentError(
        'multinomial',
        say`bad count: ${shown(count)}; must be an integer from 1 to ${most}${replacement ? '' : say` without replacement`}`,
      );
    const key = resolveKey(options.key);
    const along = (op: 'sum' | 'min'): Node => p.insertAxes(p.reduce(wide, op, [axis]), [axis]);
    const total = along('sum');
    const zero = p.like(wide, 0);
    const positive = p.lt(zero, wide);
    const there = both(
      p.not(p.lt(along('min'), p.like(total, 0))),
      both(p.lt(p.like(total, 0), total), p.lt(total, p.like(total, -lowest))),
    );
    const shape = [...wide.shape.slice(0, -1), count];
    if (replacement && count > 1) return wrap(orNone(there, drawnAgain(wide, positive, total, shape, key)));
    const logits = p.unary('log', p.where(positive, wide, p.like(wide, 1)));
    const scores = p.where(positive, p.add(logits, noise(key, wide.shape, wide.dtype)), p.like(wide, lowest));
    if (count === 1) return wrap(orNone(there, p.reshape(p.argReduce(scores, 'max', [axis]), shape)));
    const order = orderOf(scores, axis, true, count);
    const values = elementsAt(scores, order, axis);
    return wrap(orNone(both(there, p.lt(p.like(values, lowest), values)), order));
  });
}

/** With replacement: where uniform numbers fall among the running sums. */
function drawnAgain(wide: Node, positive: Node, total: Node, shape: Shape, key: RandomKey): Node {
  const axis = wide.shape.length - 1;
  const n = wide.shape[axis]!;
  const sums = nodeOf(cumSum(wrap(wide), axis));
  const targets = p.mul(uniform(key, shape, wide.dtype), total);
  const found = nodeOf(searchSorted(wrap(sums), wrap(targets), { right: true }));
  const at = p.binary('minimum', found, p.constant(n - 1, 'int32'));
  // Running sums are rounded, so a number may fall where the probability is 0: then the last position before with a probability is drawn.
  const own = p.where(positive, p.broadcastTo(p.iota(n), wide.shape), p.constant(-1, 'int32', wide.shape));
  return elementsAt(nodeOf(cumMax(wrap(own), axis)), at, axis);
}

/** Options of topKLogits and topPLogits. */
export interface TopLogitsOptions {
  /** The axis of the logits of one distribution; -1 if left out. */
  readonly axis?: number;
}

/** The logits, those below a threshold -Infinity. */
const atLeast = (node: Node, threshold: Node): Tensor =>
  wrap(p.where(p.lt(node, threshold), p.like(node, Number.NEGATIVE_INFINITY), node));

/**
 * The k greatest logits and those equal to the least of these; all others become -Infinity, which is never drawn. Source: Fan, Lewis and Dauphin,
 * "Hierarchical neural story generation" (2018); `TopKLogitsWarper` of Hugging Face transformers.
 *
 * @param logits shape [..., n] or with the axis elsewhere; NaN stays
 * @param k how many; where there are fewer, all stay
 * @param options an axis, or axis (-1)
 * @returns the shape of the logits
 * @throws ArgumentError unless k is an integer from 1
 *
 * @example
 * topKLogits(tensor([1, 4, 2, 3]), 2); // [-Infinity, 4, -Infinity, 3]
 */
export function topKLogits(logits: TensorLike, k: number, options: number | TopLogitsOptions = {}): Tensor {
  return compose('topKLogits', () => {
    const { node, axis, count } = readLine('topKLogits', logits, options, 'axis');
    if (!Number.isInteger(k) || k < 1)
      throw new ArgumentError('topKLogits', say`bad k: ${shown(k)}; must be an integer from 1`);
    if (k >= count) return wrap(p.identity(node));
    const x = p.stopGradient(node);
    const values = elementsAt(x, orderOf(x, axis, true, k), axis);
    return atLeast(node, p.insertAxes(p.reduce(values, 'min', [axis]), [axis]));
  });
}

/**
 * The fewest of the greatest logits whose probabilities, by softmax, sum to p or more, and those equal to the least of these; all others become
 * -Infinity, which is never drawn. The greatest stays even for p = 0, and for p = 1 all stay. Source: Holtzman et al., "The curious case of neural
 * text degeneration" (2020); `TopPLogitsWarper` of Hugging Face transformers.
 *
 * @param logits shape [..., n] or with the axis elsewhere; a line with NaN or Infinity stays as it is
 * @param mass p, a number from 0 to 1
 * @param options an axis, or axis (-1)
 * @returns the shape of the logits, of the dtype of the input; integers become float32
 * @throws ArgumentError for a p out of range
 *
 * @example
 * topPLogits(log(tensor([0.1, 0.5, 0.1, 0.3])), 0.7).exp(); // about [0, 0.5, 0, 0.3]
 */
export function topPLogits(logits: TensorLike, mass: number, options: number | TopLogitsOptions = {}): Tensor {
  return compose('topPLogits', () => {
    const { node, axis, wide } = readLine('topPLogits', logits, options, 'axis');
    if (!(typeof mass === 'number' && mass >= 0 && mass <= 1))
      throw new ArgumentError('topPLogits', say`bad p: ${shown(mass)}; must be from 0 to 1`);
    if (mass === 1) return wrap(p.identity(node));
    const along = (x: Node, op: 'max' | 'min' | 'sum'): Node => p.insertAxes(p.reduce(x, op, [axis]), [axis]);
    const sorted = elementsAt(wide, orderOf(wide, axis, true), axis);
    const top = along(wide, 'max');
    const weights = p.unary('exp', p.sub(sorted, top));
    // The sum of those before each: a logit is kept while that is too little.
    const before = nodeOf(cumSum(wrap(weights), { axis, exclusive: true }));
    const needed = p.lt(before, p.mul(along(weights, 'sum'), nodeOf(given(mass, wrap(wide)))));
    const least = along(p.where(needed, sorted, p.broadcastTo(top, sorted.shape)), 'min');
    return atLeast(node, p.cast(least, node.dtype));
  });
}

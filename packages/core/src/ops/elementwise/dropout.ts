/** Dropout: elements set to 0 at random. */
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { ArgumentError } from '../../shape/errors.ts';
import { checkNames } from '../../shape/options.ts';
import { say } from '../../shape/shown.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given } from '../../tensor/operand.ts';
import { type RandomKey, resolveKey } from '../../tensor/random-key.ts';
import type { Tensor } from '../../tensor/types.ts';
import { bits } from '../creation/random.ts';

/**
 * Elements set to 0 at random, the others scaled up so that the mean stays; x itself unless training. Source: Srivastava et al. (2014);
 * PyTorch `dropout`.
 *
 * @param options p: probability of 0 (0.5); training (true); key
 *
 * @example
 * dropout(ones([4]), { p: 0.5, key: 1 }); // zeros and twos
 */
export function dropout(
  x: Tensor,
  options: { readonly p?: number; readonly training?: boolean; readonly key?: RandomKey | number } = {},
): Tensor {
  checkNames('dropout', options, 'p# training? key');
  return compose('dropout', () => {
    const { p: rate = 0.5, training = true } = options;
    if (typeof rate !== 'number' || !(rate >= 0 && rate <= 1))
      throw new ArgumentError('dropout', say`bad probability: ${rate}; must be from 0 to 1`);
    const t = wrap(floatOperand(x));
    if (!training || rate === 0) return t;
    if (rate === 1) return wrap(p.mul(nodeOf(t), p.like(nodeOf(t), 0)));
    // Kept where the bits are below (1 - p) 2^32: one comparison of integers.
    const limit = p.scalar(Math.min(2 ** 32 - 1, Math.round((1 - rate) * 2 ** 32)), 'uint32');
    const keep = p.lt(bits(resolveKey(options.key), t.shape), limit);
    const scale = nodeOf(given(1 / (1 - rate), t));
    return wrap(p.where(keep, p.mul(nodeOf(t), scale), p.like(nodeOf(t), 0)));
  });
}

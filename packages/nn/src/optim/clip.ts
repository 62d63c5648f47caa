/** Gradient clipping: keeps one bad batch from throwing the parameters far away. On the device, nothing is read. */
import {
  clip,
  minimum,
  noGrad,
  norm,
  reciprocal,
  scope,
  sqrt,
  stack,
  square,
  sum,
  type Tensor,
} from '@polygrad/core/functions';
import { checkFits, checkList, checkNumber, checkOptions, checkTensor, NnError } from '../errors.ts';
import { roleOf } from '../module/parameter.ts';
import type { Gradients } from './owners.ts';

/**
 * The gradients in a list of tensors and nulls; throws for anything else in it. A parameter stands for the gradient that `backward()` left: its
 * values are nothing to clip.
 */
function presentIn(op: string, gradients: Gradients): Tensor[] {
  checkFits(
    op,
    'gradients',
    gradients,
    Array.isArray(gradients),
    'a list, such as model.parameters() after backward()',
  );
  const present: Tensor[] = [];
  for (const given of gradients) {
    if (given === null) continue;
    checkTensor(op, 'gradient', given);
    const gradient = given.grad ?? (roleOf(given) === 'parameter' ? null : given);
    if (gradient !== null) present.push(gradient);
  }
  return present;
}

/**
 * Scales all gradients by one factor so that their norm, the root of the sum of all squares, is at most `limit`; other norms: `clipGradNorms`. Source: Pascanu,
 * Mikolov and Bengio, "On the difficulty of training recurrent neural networks", 2013; PyTorch `clip_grad_norm_`.
 *
 * @param gradients changed in place: each handle names the scaled gradient afterwards. Parameters stand for what `backward()` left in their `grad`
 * @param limit largest norm
 * @returns the norm before clipping, a scalar tensor that the caller disposes (or its scope does)
 * @throws NnError where there are no gradients
 * @example
 * const gradients = [tensor([3]), tensor([4])];
 * clipGradNorm(gradients, 1); // 5
 * gradients; // [[0.6], [0.8]]
 */
export function clipGradNorm(gradients: Gradients, limit: number): Tensor {
  checkNumber('clipGradNorm', 'limit', limit, 0);
  const present = presentIn('clipGradNorm', gradients);
  if (present.length === 0)
    throw new NnError(
      'clipGradNorm',
      'there are no gradients to clip; pass those of lossAndGrad, or parameters after backward()',
    );
  return scope(() =>
    noGrad(() => {
      const norm = sqrt(present.map((gradient) => sum(square(gradient))).reduce((total, part) => total.add(part)));
      // PyTorch adds 1e-6 to the norm, so that gradients of zero are left as they are.
      const factor = minimum(reciprocal(norm.add(1e-6)).mul(limit), 1);
      for (const gradient of present) gradient.assign(gradient.mul(factor));
      return norm;
    }),
  );
}

/**
 * Cuts every element of every gradient off at `-limit` and `limit`. Source: PyTorch `clip_grad_value_`.
 *
 * @param gradients changed in place; parameters stand for what `backward()` left in their `grad`
 * @throws NnError unless the limit is a finite number of at least 0 and the gradients are a list of tensors and nulls
 *
 * @example
 * const gradients = [tensor([-3, 0.25])];
 * clipGradValue(gradients, 0.5);
 * gradients; // [[-0.5, 0.25]]
 */
export function clipGradValue(gradients: Gradients, limit: number): void {
  checkNumber('clipGradValue', 'limit', limit, 0);
  const present = presentIn('clipGradValue', gradients);
  scope(() =>
    noGrad(() => {
      for (const gradient of present) gradient.assign(clip(gradient, -limit, limit));
    }),
  );
}

/** Options of `clipGradNorms`. */
export interface ClipNormsOptions {
  /** Order of the norm: above 0, or infinity for the largest magnitude (default 2). */
  readonly order?: number;
}

/**
 * Scales gradients group by group, each by one factor so that its norm, of any order and taken as one vector, is at most `limit`. Source: PyTorch
 * `clip_grad_norm_` with `norm_type`, for each group of parameters.
 *
 * @param groups lists of gradients, changed in place; `[gradients]` for all as one. Parameters stand for what `backward()` left in their `grad`
 * @param limit largest norm: a number, or one for each group
 * @returns the norm of each group before clipping, [groups]; the caller disposes it, or its scope does
 * @throws NnError for orders that are not above 0, and for groups without gradients
 * @example
 * const gradients = [tensor([3, -1]), tensor([4])];
 * clipGradNorms([gradients], 2, { order: Infinity }); // [4]
 * gradients; // about [[1.5, -0.5], [2]]
 */
export function clipGradNorms(
  groups: readonly Gradients[],
  limit: number | readonly number[],
  options: ClipNormsOptions = {},
): Tensor {
  checkOptions('clipGradNorms', options, 'order#');
  const { order = 2 } = options;
  checkFits('clipGradNorms', 'order', order, order > 0, 'above 0');
  checkList('clipGradNorms', 'groups', groups);
  const found = groups.map((group) => presentIn('clipGradNorms', group));
  const limits = groups.map((_, i) => (Array.isArray(limit) ? (limit as readonly number[])[i]! : (limit as number)));
  for (const one of limits) checkNumber('clipGradNorms', 'limit', one, 0);
  return scope(() =>
    noGrad(() => {
      const norms = found.map((present, i) => {
        if (present.length === 0) throw new NnError('clipGradNorms', `group ${i} has no gradients to clip`);
        // The norm of the norms is the norm of all.
        const all = norm(stack(present.map((gradient) => norm(gradient, { p: order }))), { p: order });
        const factor = minimum(reciprocal(all.add(1e-6)).mul(limits[i]!), 1);
        for (const gradient of present) gradient.assign(gradient.mul(factor));
        return all;
      });
      return stack(norms);
    }),
  );
}

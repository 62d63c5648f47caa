/**
 * Which parameter a gradient is of. What `lossAndGrad` makes is in the order of a model. An optimizer has another order where its parameters are in
 * groups, and fewer of them where the others stay as they are. So gradients that know their parameter go to it, as `parameter.grad` would, and others
 * by place.
 */
import type { Tensor } from '@polygrad/core/functions';

/** Gradients in the order of the parameters; null where there is none. */
export type Gradients = readonly (Tensor | null)[];

const owners = new WeakMap<Tensor, Tensor>();

/** The parameter that a gradient is of; undefined if unknown. */
export function ownerOf(gradient: Tensor): Tensor | undefined {
  return owners.get(gradient);
}

/** Says whose a gradient is, and gives it back. */
export function owned(gradient: Tensor, owner: Tensor | undefined): Tensor {
  if (owner !== undefined) owners.set(gradient, owner);
  return gradient;
}

/**
 * Gradients in the order of the parameters, null where there is none. Where one does not say whose it is, or all are of other parameters, they go by
 * place: those of a copy of a model, for instance.
 */
export function inOrder(parameters: readonly Tensor[], gradients: Gradients): Gradients {
  const byOwner = new Map<Tensor, Tensor>();
  for (const gradient of gradients) {
    if (gradient === null) continue;
    const owner = owners.get(gradient);
    if (owner === undefined) return gradients;
    byOwner.set(owner, gradient);
  }
  return parameters.some((parameter) => byOwner.has(parameter))
    ? parameters.map((parameter) => byOwner.get(parameter) ?? null)
    : gradients;
}

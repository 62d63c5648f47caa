/** lossAndGrad over a module: a loss, and its gradients by the module's parameters. */
import { lossGradients } from '@polygrad/core/engine';
import { isTensor, type Tensor } from '@polygrad/core/functions';
import { checkFunction, NnError } from '../errors.ts';
import { type AnyModule, checkModule } from '../module/module.ts';
import { deferChanges } from '../module/own-values.ts';
import { type Gradients, owned } from '../optim/owners.ts';

/** A value with its gradients. */
export interface ModelGradients<Aux = undefined> {
  /** What the loss function returned, as a constant. */
  readonly value: Tensor;
  /** One gradient per entry of `model.parameters()`, null for frozen ones. An optimizer's `step` consumes them. */
  readonly grads: Gradients;
  /** What the loss function returned beside the loss, as constants. */
  readonly aux: Aux;
}

/**
 * The value of a loss and its gradients by the parameters of a module, recorded and not computed until needed. A scope of
 * its own: what the loss function makes and does not return is released.
 *
 * @param model parameters that are not frozen are differentiated by
 * @param loss computes a scalar with the model, or the pair of a scalar and anything else to return (`aux`)
 * @returns value, gradients in the order of `model.parameters()`, aux
 * @throws NnError if every parameter is frozen, or the loss is several numbers; ArgumentError if the loss depends on no parameter
 * @example
 * const model = new Linear(2, 1, { bias: false });
 * const { value, grads } = lossAndGrad(model, () => model.forward(tensor([[3, 4]])).sum());
 * value.shape; // []
 * grads; // [[[3, 4]]]
 */
export function lossAndGrad<Aux>(model: AnyModule, loss: () => readonly [loss: Tensor, aux: Aux]): ModelGradients<Aux>;
export function lossAndGrad(model: AnyModule, loss: () => Tensor): ModelGradients;
export function lossAndGrad(
  model: AnyModule,
  loss: () => Tensor | readonly [Tensor, unknown],
): ModelGradients<unknown> {
  checkModule('lossAndGrad', model);
  checkFunction('lossAndGrad', 'loss', loss);
  const parameters = model.parameters();
  const trained = parameters.filter((parameter) => parameter.requiresGrad);
  if (trained.length === 0) {
    throw new NnError('lossAndGrad', 'the module has no parameters that learn; check that it is not frozen');
  }
  // Until the gradients are there: what is checkpointed runs again for them, and must find the same parameters.
  const { value, aux, gradients } = deferChanges(() =>
    lossGradients('lossAndGrad', trained, (): readonly [Tensor, unknown] => {
      const result = loss();
      const [value, aux] = (Array.isArray(result) ? result : [result]) as [Tensor, unknown];
      // What is no tensor is refused where the gradient is asked for.
      if (isTensor(value) && value.size !== 1)
        throw new NnError('lossAndGrad', `the loss is ${String(value)}, not one number; use mean() or sum()`);
      return [value, aux];
    }),
  );
  let at = 0;
  const gradientOf = (parameter: Tensor): Tensor | null =>
    parameter.requiresGrad ? owned(gradients[at++]!, parameter) : null;
  return { value, aux, grads: parameters.map(gradientOf) };
}

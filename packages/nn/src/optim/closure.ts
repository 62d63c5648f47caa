/** Optimizers that ask for loss and gradients several times in a step: what they call, and how `fit` takes their steps. One is in lbfgs.ts. */
import type { Tensor } from '@polygrad/core/functions';
import type { Gradients } from './owners.ts';

/** A loss and its gradients, as `lossAndGrad` gives them; both are consumed. */
export interface Evaluated {
  readonly value: Tensor;
  readonly grads: Gradients;
}

/** Gives a loss and its gradients, or the loss alone after `backward()`, which left the gradients with the parameters. */
export type Closure = () => Evaluated | Tensor;

/** What `fit` hands an optimizer of a batch: the batch on the device, its loss and gradients, and what sums losses and metrics. */
export type ClosureFit = <Batch extends readonly Tensor[], Sums>(
  ready: () => Batch,
  evaluate: (...batch: [...Batch, sums: Sums | null]) => Evaluated,
  sums: Sums,
  given: object,
) => Promise<void>;

/** An optimizer that asks for loss and gradients several times in a step, as `LBFGS` does. It is no `Optimizer`; `fit` takes both. */
export interface ClosureOptimizer {
  readonly parameters: readonly Tensor[];
  step(closure: Closure): Promise<number>;
  /** How `fit` takes its steps. @throws NnError for options of `fit` that do not go with it */
  fitted(options: object): ClosureFit;
}

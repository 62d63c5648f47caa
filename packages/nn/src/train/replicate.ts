/** replicate: the gradients of a batch, a part of it on each of several engines of one process. */
import { getEngine, type IEngine, mul, add, narrow, scope, type Tensor, to } from '@polygrad/core/functions';
import { checkFunction, NnError } from '../errors.ts';
import { type AnyModule, checkModule } from '../module/module.ts';
import { lossAndGrad, type ModelGradients } from './loss-and-grad.ts';
import { owned } from '../optim/owners.ts';

/**
 * A model of which each engine of a list computes a part of every batch.
 *
 * @example
 * const model = new Linear(2, 1);
 * const replicas: Replicated = replicate(model, [createReferenceEngine()]);
 * replicas.engines.length; // 1
 */
export class Replicated<M extends AnyModule = AnyModule> {
  readonly model: M;
  readonly engines: readonly IEngine[];

  /** Use `replicate`. */
  constructor(model: M, engines: readonly IEngine[]) {
    this.model = model;
    this.engines = engines;
  }

  /**
   * The value of a loss over a batch and its gradients by the model's parameters, averaged over the engines by the rows that each had. They
   * lie where the parameters do; hand them to an optimizer's `step` as those of `lossAndGrad`.
   *
   * Each engine gets a part of the rows, as many as the others and perhaps one more. It reads copies of the parameters, which are made once for
   * values that do not change. Layers that use statistics of a batch use those of their part.
   *
   * @param batch tensors with the same number of rows, the first axis
   * @param loss the mean of a loss over the rows it is given: called once for each engine, with its part of every tensor
   * @returns value [], and one gradient for each entry of `model.parameters()`, null for frozen ones
   * @throws NnError for batches without rows, or with different numbers of them; and what `lossAndGrad` throws
   */
  lossAndGrad(batch: readonly Tensor[], loss: (...parts: Tensor[]) => Tensor): ModelGradients {
    const op = 'Replicated.lossAndGrad';
    checkFunction(op, 'loss', loss);
    const rows = rowsOf(op, batch);
    const { model, engines } = this;
    const home = getEngine();
    const used = engines.slice(0, rows);
    const buffers = [...new Set(model.namedBuffers().map(([, buffer]) => buffer))];
    let value: Tensor | null = null;
    const sums: (Tensor | null)[] = model.parameters().map(() => null);
    const result = scope(() => {
      for (const [i, engine] of used.entries()) {
        const first = Math.floor((i * rows) / used.length);
        const count = Math.floor(((i + 1) * rows) / used.length) - first;
        const parts = batch.map((t) => to(narrow(t, 0, first, count), engine));
        const before = buffers.map(({ node }) => node);
        const part = lossAndGrad(model, () => onEngine(model, engine, () => loss(...parts)));
        for (const [at, buffer] of buffers.entries()) if (buffer.node !== before[at]) buffer.assign(to(buffer, home));
        const share = count / rows;
        const sum = (total: Tensor | null, x: Tensor): Tensor => {
          const own = mul(to(x, home), share);
          return total === null ? own : add(total, own);
        };
        value = sum(value, part.value);
        for (const [at, gradient] of part.grads.entries())
          if (gradient !== null) sums[at] = sum(sums[at] ?? null, gradient);
      }
      return { value: value!, grads: sums };
    });
    const parameters = this.model.parameters();
    const grads = result.grads.map((gradient, i) => (gradient === null ? null : owned(gradient, parameters[i])));
    return { value: result.value, grads, aux: undefined };
  }
}

/** Calls a function in which the model's parameters lie on an engine. */
function onEngine<T>(model: AnyModule, engine: IEngine, body: () => T): T {
  const parameters = model.parameters();
  const own = parameters.map(({ node }) => node);
  try {
    for (const parameter of parameters) parameter.node = to(parameter, engine).node;
    return body();
  } finally {
    for (const [i, parameter] of parameters.entries()) parameter.node = own[i]!;
  }
}

function rowsOf(op: string, batch: readonly Tensor[]): number {
  if (!Array.isArray(batch) || batch.length === 0)
    throw new NnError(op, 'a batch is a list of tensors, such as [images, labels]');
  const counts = batch.map(({ shape }) => shape?.[0] ?? 0);
  const [rows = 0] = counts;
  if (rows === 0 || counts.some((count) => count !== rows))
    throw new NnError(
      op,
      `tensors of a batch have ${counts.join(', ')} rows; give all of them the same number, at least 1`,
    );
  return rows;
}

/**
 * A model of which each of several engines computes a part of every batch: the same steps as on one engine, with gradients averaged.
 *
 * Parameters and optimizers stay where they are, so checkpoints and everything else do too. A part of a model is put on another engine
 * with `to`.
 *
 * @param model a module with parameters that learn
 * @param engines engines of this process, at least one; an engine may occur several times
 * @throws NnError for what is no module, and lists without engines
 * @example
 * import { getEngine, tensor } from '@polygrad/core';
 * import { Linear, replicate, SGD } from '@polygrad/nn';
 * import { createReferenceEngine } from '@polygrad/testing';
 * import '@polygrad/backend-cpu';
 * const model = new Linear(1, 1, { bias: false });
 * const replicas = replicate(model, [getEngine(), createReferenceEngine({ name: 'other' })]);
 * const optimizer = new SGD(model.parameters(), { lr: 0.1 });
 * const { value, grads } = replicas.lossAndGrad([tensor([[1], [2]])], (x) => model.forward(x).mean());
 * console.log(await grads[0]!.array()); //=> [ [ 1.5 ] ]
 * optimizer.step(grads);
 * value.dispose();
 */
export function replicate<M extends AnyModule>(model: M, engines: readonly IEngine[]): Replicated<M> {
  checkModule('replicate', model);
  const isEngine = (engine: unknown): boolean => typeof (engine as IEngine | null)?.submit === 'function';
  if (!Array.isArray(engines) || engines.length === 0 || !engines.every(isEngine))
    throw new NnError('replicate', 'no list of engines; give engines of this process, such as [getEngine(), other]');
  return new Replicated(model, [...engines]);
}

/** functionalCall: a module as a function of its parameters, for derivatives and batches by these. */
import { withStandIns } from '@polygrad/core/engine';
import { isTensor, showShape, type Tensor } from '@polygrad/core/functions';
import { checkFits, checkFunction, NnError } from '../errors.ts';
import { type AnyModule, checkModule } from './module.ts';

const op = 'functionalCall';

/**
 * Runs a function in which other tensors stand in for parameters and buffers of a module. So networks go through `grad`, `jvp`, `hessian`, `vmap` and `scan`
 * by their weights: steps of learning inside a loss, many networks at once, weights that another network makes. The module keeps its own values.
 * Source: PyTorch `torch.func.functional_call`.
 *
 * What `forward` assigns, such as running statistics in training, is assigned to the module. Inside `vmap`, call `model.eval()` before. A rule of a
 * `customGradient` takes parameters from its inputs, since it may run later.
 *
 * @param model its parameters and buffers are named as in `stateDict()`
 * @param values tensors by name, in the shapes and dtypes of what they stand in for; what has no entry stays as it is
 * @param body a synchronous function that calls the module
 * @returns what the function returns
 * @throws NnError for unknown names, and for other shapes or dtypes; ArgumentError if the function returns a promise
 * @example
 * const model = new Linear(2, 1, { bias: false });
 * const loss = (weight: Tensor) => functionalCall(model, { weight }, () => model.forward(tensor([[3, 4]])).square().sum());
 * grad(loss)(tensor([[1, 2]])); // [[66, 88]]
 */
export function functionalCall<R>(model: AnyModule, values: Readonly<Record<string, Tensor>>, body: () => R): R {
  checkModule(op, model);
  checkFits(op, 'values', values, typeof values === 'object' && values !== null, 'an object of tensors by name');
  checkFunction(op, 'body', body);
  const own = model.stateDict();
  const standIns = new Map<Tensor, Tensor>();
  for (const [name, value] of Object.entries(values)) {
    const before = Object.hasOwn(own, name) ? own[name] : undefined;
    if (before === undefined)
      throw new NnError(op, `no parameter or buffer '${name}'; the module has ${Object.keys(own).join(', ')}`, [name]);
    checkFits(op, name, value, isTensor(value), 'a tensor');
    const [given, wanted] = [value, before].map(({ dtype, shape }) => `${dtype} ${showShape(shape)}`);
    if (given !== wanted)
      throw new NnError(op, `'${name}' is ${given}, and the module has ${wanted}; reshape or cast the value`, [name]);
    if (standIns.has(before))
      throw new NnError(op, `'${name}' is a tensor of the module that has a value already, by another name; give one`, [
        name,
      ]);
    standIns.set(before, value);
  }
  return withStandIns(op, standIns, body);
}

/**
 * Functions that are called before or after a module's forward, without a change of the module: for looking at activations, or for changing them.
 *
 * A hook is a `forward` of the module's own in front of its class's one, so modules without hooks pay nothing.
 */
import { checkFits, checkFunction } from '../errors.ts';
import { type AnyModule, checkModule, type Module } from './module.ts';

type Forward = (...inputs: unknown[]) => unknown;

interface Hooks {
  /** Gives the module its own forward back, once there is no hook. */
  readonly done: () => void;
  readonly before: Set<(inputs: unknown[]) => unknown>;
  readonly after: Set<(output: unknown, inputs: unknown[]) => unknown>;
}

const installed = new WeakMap<AnyModule, Hooks>();

/** The hooks of a module, which are called from now on. */
function hooksOf(module: AnyModule): Hooks {
  const known = installed.get(module);
  if (known !== undefined) return known;
  const own = Object.getOwnPropertyDescriptor(module, 'forward');
  const done = (): void => {
    // Somebody else may have put a forward in front of this one meanwhile: then it stays, without hooks.
    const isOutermost = Object.getOwnPropertyDescriptor(module, 'forward')?.value === value;
    if (!isOutermost || hooks.before.size + hooks.after.size > 0) return;
    installed.delete(module);
    if (own === undefined) delete (module as unknown as { forward?: Forward }).forward;
    else Object.defineProperty(module, 'forward', own);
  };
  const hooks: Hooks = { done, before: new Set(), after: new Set() };
  const forward = (module as unknown as { forward: Forward }).forward;
  const value: Forward = (...given) => {
    let inputs = given;
    for (const hook of [...hooks.before]) inputs = (hook(inputs) as unknown[] | undefined) ?? inputs;
    let output = forward.apply(module, inputs);
    for (const hook of [...hooks.after]) output = hook(output, inputs) ?? output;
    return output;
  };
  Object.defineProperty(module, 'forward', {
    value,
    enumerable: own?.enumerable ?? false,
    configurable: true,
    writable: true,
  });
  installed.set(module, hooks);
  return hooks;
}

function added<Hook>({ done }: Hooks, set: Set<Hook>, hook: Hook): () => void {
  set.add(hook);
  return () => {
    set.delete(hook);
    done();
  };
}

/**
 * Calls a function after each forward of a module. What it returns, unless that is undefined, takes the place of the result. Source: PyTorch
 * `Module.register_forward_hook`.
 *
 * @param hook is given the result and the arguments
 * @returns a function that takes the hook away
 * @throws NnError unless given a module and a function
 * @example
 * const layer = new Linear(2, 3);
 * const shapes: (readonly number[])[] = [];
 * const remove = forwardHook(layer, (output) => void shapes.push(output.shape));
 * layer.forward(ones([4, 2]));
 * remove();
 * shapes; // [[4, 3]]
 */
export function forwardHook<Inputs extends unknown[], Output>(
  module: Module<Inputs, Output>,
  // biome-ignore lint/suspicious/noConfusingVoidType: a hook may return nothing
  hook: (output: Output, inputs: Inputs) => Output | undefined | void,
): () => void {
  checkModule('forwardHook', module);
  checkFunction('forwardHook', 'hook', hook);
  const hooks = hooksOf(module as unknown as AnyModule);
  return added(hooks, hooks.after, hook as (output: unknown, inputs: unknown[]) => unknown);
}

/**
 * Calls a function before each forward of a module. What it returns, unless that is undefined, takes the place of the arguments. Source: PyTorch
 * `Module.register_forward_pre_hook`.
 *
 * @param hook is given the arguments
 * @returns a function that takes the hook away
 * @throws NnError unless given a module and a function; at a call where the hook returns something else than a list of inputs
 * @example
 * const layer = new Linear(1, 1, { bias: false });
 * const remove = forwardPreHook(layer, ([x]) => [x.mul(0)]);
 * layer.forward(ones([1, 1])); // [[0]]
 * remove();
 */
export function forwardPreHook<Inputs extends unknown[], Output>(
  module: Module<Inputs, Output>,
  // biome-ignore lint/suspicious/noConfusingVoidType: a hook may return nothing
  hook: (inputs: Inputs) => readonly unknown[] | undefined | void,
): () => void {
  checkModule('forwardPreHook', module);
  checkFunction('forwardPreHook', 'hook', hook);
  const checked = (inputs: unknown[]): unknown => {
    const found = hook(inputs as Inputs);
    checkFits(
      'forwardPreHook',
      'result of the hook',
      found,
      found === undefined || Array.isArray(found),
      'a list of arguments',
    );
    return found;
  };
  const hooks = hooksOf(module as unknown as AnyModule);
  return added(hooks, hooks.before, checked);
}

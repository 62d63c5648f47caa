/**
 * Module: what has parameters and a forward function. Layers are modules, and modules made of modules are networks.
 *
 * Nothing is registered: a module's properties are looked through when its parameters are asked for. Properties count that hold a parameter, a
 * buffer, another module, or an array, Map or plain object of these, in the order they were made. A name is the path of property names joined by
 * dots, as in PyTorch ('features.0.weight'). Private `#fields` are not looked at.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import { hostValue, isTensor, type Tensor } from '@polygrad/core/functions';
import { refuseNames, showAs, shown } from '@polygrad/core/engine';
import { checkFits, checkFunction, checkOptions, NnError } from '../errors.ts';
import { roleOf, type TensorRole } from './parameter.ts';
import { assignState, type Rename, type StateDict, type StateOwner, type StateValues } from './state.ts';

const owner: StateOwner = {
  op: 'loadStateDict',
  name: 'module',
  remedy: 'pass { strict: false } to load what there is',
};

const MODULE: unique symbol = Symbol.for('polygrad.nn.module');

/** How `loadStateDict` treats names that are missing or unknown. */
export interface LoadOptions {
  /** Refuse states whose names are not exactly the module's (default true). */
  readonly strict?: boolean;
  /**
   * The module's name for a name of the state; `null` leaves the value out. `torchNames` is one for wrapped networks and old checkpoints of
   * PyTorch. Default: names as they are.
   */
  readonly rename?: Rename;
}

interface Member {
  readonly name: string;
  readonly tensor: Tensor;
  readonly role: TensorRole;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** A key of a Map as part of a name. */
const textOf = (key: unknown): string => (typeof key === 'string' ? key : shown(key));

/** Most places in a module: what is in two places counts twice, so lists in each other have more than a program lives to see. */
const mostPlaces = 2 ** 20;

/** Throws NnError if a module has that many places and there may be no end to them. */
function checkPlaces(count: number): void {
  if (count <= mostPlaces) return;
  const most = `more than ${mostPlaces} lists, objects and values`;
  throw new NnError('Module', `too many parts in a module: ${most}; is a list in itself by many ways?`);
}

/** What can hold members: the entries of a module, array, Map or plain object; undefined for anything else. */
function entriesOf(value: object): Iterable<readonly [string, unknown]> | undefined {
  // Of a list its gaps are left out: it may be nothing else.
  if (Array.isArray(value) || isModule(value) || isPlain(value)) return Object.entries(value);
  if (value instanceof Map) return [...value].map(([key, item]) => [textOf(key), item] as const);
  return undefined;
}

/** The same without names, of anything but a module. */
function itemsOf(value: object): readonly unknown[] {
  if (Array.isArray(value) || isPlain(value)) return Object.values(value);
  return value instanceof Map ? [...value.values()] : [];
}

/** A place in the tree of members, with the way back to the root. */
interface Place {
  readonly name: string;
  readonly value: unknown;
  readonly parent: Place | undefined;
}

/** True if the place's value holds itself, directly or through others. */
function isCycle(place: Place): boolean {
  for (let above = place.parent; above !== undefined; above = above.parent)
    if (above.value === place.value) return true;
  return false;
}

/** Visits everything below `root`, depth first, in order. What is in two places is visited under both names. */
function walk(
  root: object,
  onTensor: (name: string, tensor: Tensor) => unknown,
  onModule: (name: string, module: AnyModule) => unknown,
): void {
  const pending: Place[] = [{ name: '', value: root, parent: undefined }];
  for (let count = pending.length; pending.length > 0; ) {
    const place = pending.pop()!;
    const { name, value } = place;
    if (typeof value !== 'object' || value === null) continue;
    if (isTensor(value)) {
      onTensor(name, value);
      continue;
    }
    const entries = entriesOf(value);
    if (entries === undefined || isCycle(place)) continue;
    if (isModule(value)) onModule(name, value);
    const children = [...entries].map(
      ([key, item]): Place => ({ name: name === '' ? key : `${name}.${key}`, value: item, parent: place }),
    );
    checkPlaces((count += children.length));
    for (const child of children.reverse()) pending.push(child);
  }
}

/** Names under which modules had parameters when these were last asked for. */
const learned = new WeakMap<object, readonly string[]>();

/** The values of a module. Throws NnError where a tensor that is no parameter has taken the place of one: an optimizer would go on with the one before. */
function valuesOf(module: object): readonly unknown[] {
  const before = learned.get(module);
  const names: string[] = [];
  const values = Object.keys(module).map((name) => {
    const value: unknown = module[name as keyof typeof module];
    const role = isTensor(value) ? roleOf(value) : null;
    if (role === undefined && before?.includes(name))
      throw new NnError(
        'Module',
        `'${name}' was a parameter and is a plain tensor; use ${name}.assign(), or parameter() and a new optimizer`,
        [name],
      );
    if (role === 'parameter') names.push(name);
    return value;
  });
  learned.set(module, names);
  return values;
}

/** Parameters below a module, each once: every step of a training asks for them, and for no names. */
function parametersIn(module: object): Tensor[] {
  const found: Tensor[] = [];
  const seen = new Set<object>();
  const pending: unknown[] = [module];
  let count = 1;
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== 'object' || value === null || seen.has(value)) continue;
    seen.add(value);
    if (isTensor(value)) {
      if (roleOf(value) === 'parameter') found.push(value);
      continue;
    }
    const items = isModule(value) ? valuesOf(value) : itemsOf(value);
    checkPlaces((count += items.length));
    for (let i = items.length - 1; i >= 0; i--) pending.push(items[i]);
  }
  return found;
}

/** A module whatever it takes and gives. */
export type AnyModule = Module<never[], unknown>;

/**
 * True for a Module of this or another copy of the package.
 *
 * @example
 * isModule(new Linear(2, 3)); // true
 */
export function isModule(value: unknown): value is AnyModule {
  return typeof value === 'object' && value !== null && MODULE in value;
}

/** Throws unless a value is a module. */
export function checkModule(op: string, value: unknown): void {
  checkFits(op, 'model', value, isModule(value), 'a Module');
}

/**
 * Base class of layers and networks. `Inputs` are the arguments of `forward`, `Output` is its result.
 *
 * @example
 * class Net extends Module {
 *   readonly hidden = new Linear(4, 8);
 *   readonly out = new Linear(8, 2);
 *   forward(x: Tensor): Tensor {
 *     return this.out.forward(this.hidden.forward(x).relu());
 *   }
 * }
 */
export abstract class Module<Inputs extends unknown[] = [x: Tensor], Output = Tensor> {
  #training = true;

  /** True while the module is being trained: dropout drops and batch norm measures. Set by `train` and `eval`. */
  get training(): boolean {
    return hostValue(() => this.#training);
  }

  set training(on: boolean) {
    this.#training = on;
  }

  /** The module's function of its inputs. */
  abstract forward(...inputs: Inputs): Output;

  #members(role: TensorRole): Member[] {
    const found: Member[] = [];
    walk(
      this,
      (name, tensor) => {
        const own = roleOf(tensor);
        if (own === role) found.push({ name, tensor, role: own });
      },
      (_, module) => role === 'parameter' && valuesOf(module),
    );
    return found;
  }

  /** Parameters by name, in order. A parameter used in two places is listed under both names. */
  namedParameters(): [name: string, parameter: Tensor][] {
    return this.#members('parameter').map(({ name, tensor }) => [name, tensor]);
  }

  /** Buffers (running statistics and the like) by name, in order. */
  namedBuffers(): [name: string, buffer: Tensor][] {
    return this.#members('buffer').map(({ name, tensor }) => [name, tensor]);
  }

  /**
   * Every parameter once, in order.
   *
   * @throws NnError where a plain tensor has taken the place of a parameter
   */
  parameters(): Tensor[] {
    return parametersIn(this);
  }

  /** This module (under the name '') and every module inside it. */
  namedModules(): [name: string, module: AnyModule][] {
    const found: [string, AnyModule][] = [];
    walk(
      this,
      () => undefined,
      (name, module) => found.push([name, module]),
    );
    return found;
  }

  /** Calls a function for every module inside this one, from the last to the first, and then for this one. Source: PyTorch `Module.apply`. */
  apply(visit: (module: AnyModule, name: string) => void): this {
    checkFunction('apply', 'visit', visit);
    for (const [name, module] of this.namedModules().reverse()) visit(module, name);
    return this;
  }

  /** How many numbers an optimizer can change. */
  parameterCount(): number {
    return this.parameters().reduce((count, { size }) => count + size, 0);
  }

  /** Puts this module and all inside it into training mode; `train(false)` is `eval()`. */
  train(on: boolean = true): this {
    for (const [, module] of this.namedModules()) module.training = on;
    return this;
  }

  /** Puts this module and all inside it into evaluation mode. */
  eval(): this {
    return this.train(false);
  }

  /** Keeps the parameters as they are from now on, or lets them learn again with `freeze(false)`. */
  freeze(on: boolean = true): this {
    for (const tensor of this.parameters()) tensor.requiresGrad = !on;
    return this;
  }

  /**
   * Parameters and buffers by name: the tensors themselves, not copies. `hostState` (state.ts) gives numbers to save.
   */
  stateDict(): StateDict {
    return Object.fromEntries([...this.namedParameters(), ...this.namedBuffers()]);
  }

  /**
   * Takes over the values of a state, from another module's `stateDict()` or from a file. Either everything fits and is taken over, or the module
   * stays as it was. The error names all that is missing, unknown, or of another shape or dtype.
   *
   * Layers have PyTorch's names and layouts, so a checkpoint of PyTorch loads as it is. `num_batches_tracked` of its batch norms is passed
   * over where there is a momentum, for nothing depends on it then.
   *
   * @param state tensors or host arrays by name
   * @param options see `LoadOptions`
   * @returns names that were missing and names that are unknown; both empty when strict
   * @throws NnError for missing or unknown names when strict, and for shapes or dtypes that differ
   * @example
   * const [model, other] = [new Linear(2, 1), new Linear(2, 1)];
   * model.loadStateDict(other.stateDict()); // { missing: [], unexpected: [] }
   * const wrapped = Object.entries(other.stateDict()).map(([name, value]) => [`module.${name}`, value] as const);
   * model.loadStateDict(new Map(wrapped), { rename: torchNames }); // { missing: [], unexpected: [] }
   */
  loadStateDict(state: StateValues, options: LoadOptions = {}): { missing: string[]; unexpected: string[] } {
    checkOptions('loadStateDict', options, 'strict? rename');
    const { strict = true, rename } = options;
    const known = rename === undefined || typeof rename === 'function';
    checkFits('loadStateDict', 'rename', rename, known, 'a function of a name, such as torchNames');
    return assignState(this.stateDict(), state, strict, owner, rename);
  }

  /** Clears what `backward()` accumulated in the parameters. */
  zeroGrad(): void {
    for (const tensor of this.parameters()) if (tensor.requiresGrad) tensor.grad = null;
  }

  /** Gives the memory of all parameters and buffers back; the module cannot be used afterwards. */
  dispose(): void {
    walk(
      this,
      (_, tensor) => roleOf(tensor) !== undefined && tensor.dispose(),
      () => undefined,
    );
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

// Marks the class across copies of this package.
Object.defineProperty(Module.prototype, MODULE, { value: true });
showAs(Module.prototype, (module) => ({ ...module, training: module.training }));
// What modules of PyTorch and models of Keras have, and what to write here. The table stands in the call, so that pages which drop that carry neither.
refuseNames(
  Module,
  {
    'state_dict get_weights getWeights': 'stateDict()',
    'load_state_dict set_weights setWeights': 'loadStateDict(state)',
    'named_parameters trainable_weights trainableWeights trainable_variables get_parameter': 'namedParameters()',
    'named_modules modules children named_children getLayer get_layer get_submodule': 'namedModules()',
    'add push append': 'new Sequential(...model.layers, layer), and an optimizer made after it',
    pop: 'new Sequential(...model.layers.slice(0, -1)), and an optimizer made after it',
    'named_buffers buffers': 'namedBuffers()',
    zero_grad: 'zeroGrad(), though step() of an optimizer clears what it has used',
    'requires_grad_= requiresGrad_ trainable= requires_grad= requiresGrad=': 'freeze(), and freeze(false)',
    'count_params countParams': 'parameterCount()',
    summary: 'summary(model, shape), a function',
    compile: "compile(step) of '@polygrad/core', or fit, whose options name optimizer and loss",
    'to cuda cpu': "await setEngine('cuda') before the model is made",
    'half bfloat16 double float': 'the option dtype of layers, or fit with precision',
    'register_buffer registerBuffer': 'this.name = buffer(value)',
    'register_parameter registerParameter': 'this.name = parameter(value)',
    'register_forward_hook register_forward_pre_hook': 'forwardHook(layer, hook) or forwardPreHook(layer, hook)',
    'call __call__ predict': 'forward(x), after eval()',
    'fit evaluate': 'fit(model, data, options) and evaluate(model, data, options), functions',
    'save save_weights saveWeights load_weights loadWeights':
      'await saveModel(path, model) and await loadModel(path, model)',
  },
  (name, instead, self) => new NnError('Module', `no '${name}' of a ${self.constructor.name}: ${instead}`, [name]),
);

/** ModuleList and ModuleDict: modules by place or by name, for networks that call them one by one. */
import { checkFits, NnError } from '../errors.ts';
import { type AnyModule, isModule, Module } from './module.ts';

/** A container has no forward function. */
function refuse(op: string): never {
  throw new NnError(op, 'forward is not defined: it only holds modules; call them one by one');
}

/**
 * Modules by place. Their names in state dictionaries are their places: '0.weight', '1.bias'. A plain array of modules as a property does the same; this
 * one is a module too. Source: PyTorch `nn.ModuleList`.
 *
 * @example
 * const list = new ModuleList([new Linear(2, 3), new Linear(3, 1)]);
 * let x = ones([4, 2]);
 * for (const layer of list) x = layer.forward(x);
 * x.shape; // [4, 1]
 */
export class ModuleList<Layer extends AnyModule = AnyModule> extends Module<never[], never> implements Iterable<Layer> {
  readonly #layers: Layer[] = [];

  constructor(layers: Iterable<Layer> = []) {
    super();
    const isList = typeof layers?.[Symbol.iterator] === 'function' && typeof layers !== 'string';
    checkFits('ModuleList', 'layers', layers, isList, 'a list of modules');
    for (const layer of layers) this.append(layer);
  }

  /** How many there are. */
  get length(): number {
    return this.#layers.length;
  }

  /** Adds a module at the end. */
  append(layer: Layer): this {
    const place = this.#layers.length;
    checkFits('ModuleList', `layer ${place}`, layer, isModule(layer), 'a Module');
    this.#layers.push(layer);
    Object.defineProperty(this, place, { value: layer, enumerable: true });
    return this;
  }

  /** The module at a place, counted from the end where negative; undefined where there is none. */
  at(place: number): Layer | undefined {
    return this.#layers.at(place);
  }

  [Symbol.iterator](): Iterator<Layer> {
    return this.#layers[Symbol.iterator]();
  }

  /** Throws: a list has no forward function. */
  forward(): never {
    return refuse('ModuleList');
  }
}

/**
 * Modules by name, in the order they were added. Their names in state dictionaries are 'name.weight'. Source: PyTorch `nn.ModuleDict`.
 *
 * @example
 * const heads = new ModuleDict({ age: new Linear(4, 1), kind: new Linear(4, 3) });
 * heads.get('kind')?.forward(ones([2, 4])).shape; // [2, 3]
 */
export class ModuleDict<Layer extends AnyModule = AnyModule>
  extends Module<never[], never>
  implements Iterable<readonly [name: string, layer: Layer]>
{
  readonly #layers = new Map<string, Layer>();

  constructor(layers: Readonly<Record<string, Layer>> = {}) {
    super();
    checkFits('ModuleDict', 'layers', layers, typeof layers === 'object' && layers !== null, 'modules by name');
    for (const [name, layer] of Object.entries(layers)) this.set(name, layer);
  }

  /** How many there are. */
  get size(): number {
    return this.#layers.size;
  }

  /**
   * Adds a module under a name, or replaces the one there.
   *
   * @throws NnError for names of members that every module has, such as 'training'
   */
  set(name: string, layer: Layer): this {
    checkFits('ModuleDict', `'${name}'`, layer, isModule(layer), 'a Module');
    if (!this.#layers.has(name) && name in this)
      throw new NnError('ModuleDict', `'${name}' is a member of every module; choose another name`, [name]);
    this.#layers.set(name, layer);
    Object.defineProperty(this, name, { value: layer, enumerable: true, configurable: true });
    return this;
  }

  /** The module of a name; undefined where there is none. */
  get(name: string): Layer | undefined {
    return this.#layers.get(name);
  }

  /** True where there is a module of the name. */
  has(name: string): boolean {
    return this.#layers.has(name);
  }

  /** Names, in order. */
  names(): string[] {
    return [...this.#layers.keys()];
  }

  [Symbol.iterator](): Iterator<readonly [name: string, layer: Layer]> {
    return this.#layers[Symbol.iterator]();
  }

  /** Throws: a dictionary has no forward function. */
  forward(): never {
    return refuse('ModuleDict');
  }
}

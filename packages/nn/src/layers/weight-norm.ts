/**
 * Weights that are made of other tensors at each use: of a direction and a length, or of a matrix and its largest singular value.
 *
 * The layer's `weight` becomes a property without a value of its own. The module finds and saves what it is made of, under PyTorch's names.
 */
import {
  div,
  matmul,
  moveAxis,
  noGrad,
  normalize,
  randn,
  reshape,
  scope,
  sqrt,
  square,
  squeeze,
  sum,
  type Tensor,
  transpose,
  unsqueeze,
} from '@polygrad/core/functions';
import { shown } from '@polygrad/core/engine';
import { checkFits, checkInteger, checkNumber, checkOptions, misfit, NnError } from '../errors.ts';
import { type AnyModule, checkModule } from '../module/module.ts';
import { buffer, parameter, roleOf } from '../module/parameter.ts';

type Members = Record<string, Tensor>;

/** The layer's parameter of a name; throws if it has none, or one that cannot be replaced. */
function weightOf(op: string, layer: AnyModule, name: string): Tensor {
  checkFits(op, 'name', name, typeof name === 'string', 'the name of a parameter');
  checkModule(op, layer);
  const weight = (layer as unknown as Members)[name];
  if (weight === undefined || weight === null || roleOf(weight) !== 'parameter')
    throw new NnError(op, `the module has no parameter ${shown(name)}; name one of its own`, [name]);
  if (Object.getOwnPropertyDescriptor(layer, name)?.configurable === false)
    throw new NnError(op, `${shown(name)} of a recurrent layer cannot be replaced; the layer keeps its weights`, [
      name,
    ]);
  return weight;
}

/** Puts a member on the module that is found and saved. */
function put(layer: AnyModule, name: string, value: Tensor): Tensor {
  Object.defineProperty(layer, name, { value, enumerable: true, configurable: true });
  return value;
}

/** Makes the weight what a function gives, each time that it is asked for. */
function computed(layer: AnyModule, name: string, make: () => Tensor): void {
  Object.defineProperty(layer, name, { get: make, enumerable: false, configurable: true });
}

/** The norm over all axes but one, which stay with size 1; over all where the axis is null. */
function normExcept(v: Tensor, axis: number | null): Tensor {
  const axes = v.shape.map((_, i) => i).filter((i) => i !== axis);
  return sqrt(sum(square(v), { axis: axes, keepDims: true }));
}

/** Options of `weightNorm`. */
export interface WeightNormOptions {
  /** The parameter (default 'weight'). */
  readonly name?: string;
  /** The axis whose rows have a length each (default 0), or null for one length of all. */
  readonly axis?: number | null;
}

/**
 * Splits a layer's weight into a direction and a length, which are learned in its place: `weight_v` and `weight_g`. Source: Salimans and Kingma
 * (2016); PyTorch `nn.utils.weight_norm`.
 *
 * @param layer its parameters are replaced, so make optimizers afterwards
 * @param options name ('weight'), axis (0)
 * @returns the layer
 * @throws NnError where the layer has no such parameter, and for recurrent layers
 * @example
 * const layer = weightNorm(new Linear(3, 2));
 * layer.namedParameters().map(([name]) => name); // ['bias', 'weight_g', 'weight_v']
 */
export function weightNorm<Layer extends AnyModule>(layer: Layer, options: WeightNormOptions = {}): Layer {
  checkOptions('weightNorm', options, 'name axis');
  const { name = 'weight', axis = 0 } = options;
  const weight = weightOf('weightNorm', layer, name);
  if (axis !== null) checkInteger('weightNorm', 'axis', axis, 0, weight.ndim - 1);
  const length = (): Tensor => {
    const norm = normExcept(weight, axis);
    return axis === null ? reshape(norm, []) : norm;
  };
  const g = put(layer, `${name}_g`, parameter(scope(() => noGrad(length))));
  const v = put(layer, `${name}_v`, weight);
  computed(layer, name, () => v.mul(div(g, normExcept(v, axis))));
  return layer;
}

/**
 * Makes the weight of `weightNorm` one parameter again.
 *
 * @param name the parameter (default 'weight')
 * @returns the layer
 * @throws NnError where the layer has no such weight
 * @example
 * const layer = removeWeightNorm(weightNorm(new Linear(3, 2)));
 * layer.namedParameters().map(([name]) => name); // ['bias', 'weight']
 */
export function removeWeightNorm<Layer extends AnyModule>(layer: Layer, name: string = 'weight'): Layer {
  checkModule('removeWeightNorm', layer);
  checkFits('removeWeightNorm', 'name', name, typeof name === 'string', 'a weight of weightNorm');
  const members = layer as unknown as Members;
  const { [`${name}_g`]: g, [`${name}_v`]: v } = members;
  checkFits('removeWeightNorm', 'name', name, g !== undefined && v !== undefined, 'a weight of weightNorm');
  const weight = parameter(scope(() => noGrad(() => members[name]!.mul(1))));
  for (const part of [`${name}_g`, `${name}_v`, name]) delete members[part];
  g!.dispose();
  v!.dispose();
  put(layer, name, weight);
  return layer;
}

/** The forward functions that `spectralNorm` has put before those of layers, and what was there, by name of the weight. */
const iterating = new WeakMap<
  AnyModule,
  Map<string, { readonly value: unknown; readonly own: PropertyDescriptor | undefined }>
>();

/** Options of `spectralNorm`. */
export interface SpectralNormOptions {
  /** The parameter (default 'weight'). */
  readonly name?: string;
  /** Steps of the power iteration per call in training (default 1). */
  readonly iterations?: number;
  /** Least length that a vector is divided by (default 1e-12). */
  readonly eps?: number;
  /** The axis of the outputs: the weight is a matrix of its rows (default 0; 1 for transposed convolutions). */
  readonly axis?: number;
}

/**
 * Divides a layer's weight by its largest singular value, which a power iteration finds: one step of it per call in training, on the device. Source:
 * Miyato et al. (2018); PyTorch `nn.utils.spectral_norm`.
 *
 * @param layer its parameter becomes `weight_orig`, with buffers `weight_u` and `weight_v`
 * @param options name ('weight'), iterations (1), eps (1e-12), axis (0)
 * @returns the layer
 * @throws NnError where the layer has no such parameter, and for recurrent layers
 * @example
 * const layer = spectralNorm(new Linear(3, 2));
 * Object.keys(layer.stateDict()); // ['bias', 'weight_orig', 'weight_u', 'weight_v']
 */
export function spectralNorm<Layer extends AnyModule>(layer: Layer, options: SpectralNormOptions = {}): Layer {
  checkOptions('spectralNorm', options, 'name iterations eps axis');
  const { name = 'weight', iterations = 1, eps = 1e-12, axis = 0 } = options;
  const weight = weightOf('spectralNorm', layer, name);
  checkInteger('spectralNorm', 'iterations', iterations, 1);
  checkNumber('spectralNorm', 'eps', eps, 0);
  checkInteger('spectralNorm', 'axis', axis, 0, weight.ndim - 1);
  const { dtype } = weight;
  const rows = weight.shape[axis]!;
  const original = put(layer, `${name}_orig`, weight);
  const matrix = (): Tensor => reshape(moveAxis(original, axis, 0), [rows, weight.size / rows]);
  const unit = (size: number): Tensor =>
    scope(() => noGrad(() => normalize(randn([size], { dtype }), { axis: 0, eps })));
  const u = put(layer, `${name}_u`, buffer(unit(rows)));
  const v = put(layer, `${name}_v`, buffer(unit(weight.size / rows)));
  const times = (m: Tensor, x: Tensor): Tensor => squeeze(matmul(m, unsqueeze(x, -1)), -1);
  computed(layer, name, () => original.div(sum(u.mul(times(matrix(), v)))));
  const iterate = (): void =>
    noGrad(() => {
      let [left, right] = [u as Tensor, v as Tensor];
      const w = matrix();
      for (let i = 0; i < iterations; i++) {
        right = normalize(times(transpose(w), left), { axis: 0, eps });
        left = normalize(times(w, right), { axis: 0, eps });
      }
      u.assign(left);
      v.assign(right);
    });
  const own = Object.getOwnPropertyDescriptor(layer, 'forward');
  const forward = (layer as unknown as { forward(...inputs: unknown[]): unknown }).forward;
  const value = function (this: AnyModule, ...inputs: unknown[]): unknown {
    if (layer.training) iterate();
    return forward.apply(layer, inputs);
  };
  Object.defineProperty(layer, 'forward', { value, enumerable: false, configurable: true, writable: true });
  iterating.set(layer, (iterating.get(layer) ?? new Map()).set(name, { value, own }));
  return layer;
}

/**
 * Makes the weight of `spectralNorm` one parameter again, divided as it is now. Source: PyTorch `nn.utils.remove_spectral_norm`.
 *
 * @param name the parameter (default 'weight')
 * @returns the layer
 * @throws NnError where the layer has no such weight, and for hooks that were put on it later
 * @example
 * const layer = removeSpectralNorm(spectralNorm(new Linear(3, 2)));
 * layer.namedParameters().map(([name]) => name); // ['bias', 'weight']
 */
export function removeSpectralNorm<Layer extends AnyModule>(layer: Layer, name: string = 'weight'): Layer {
  const op = 'removeSpectralNorm';
  checkModule(op, layer);
  const norms = iterating.get(layer);
  const norm = norms?.get(name);
  if (norm === undefined) throw misfit(op, 'name', name, 'a weight of spectralNorm');
  if (Object.getOwnPropertyDescriptor(layer, 'forward')?.value !== norm.value)
    throw new NnError(op, 'the layer has hooks, or another norm, that came later; remove them first', [name]);
  const members = layer as unknown as Members;
  const weight = parameter(scope(() => noGrad(() => members[name]!.mul(1))));
  for (const part of ['orig', 'u', 'v'].map((end) => `${name}_${end}`)) {
    members[part]!.dispose();
    delete members[part];
  }
  delete members[name];
  put(layer, name, weight);
  if (norm.own === undefined) delete (layer as { forward?: unknown }).forward;
  else Object.defineProperty(layer, 'forward', norm.own);
  norms!.delete(name);
  return layer;
}

/**
 * The list of layers a visitor can edit: what it may hold, its form as text, and what each layer makes of an image.
 * Pure: no tensors, no page. The last layer, one output for each digit, is always there and not part of the list.
 */

/** One layer. Convolutions and linear layers are followed by ReLU. */
export type LayerSpec =
  | { readonly kind: 'conv'; readonly channels: number; readonly kernel: number }
  | { readonly kind: 'pool'; readonly size: number }
  | { readonly kind: 'linear'; readonly units: number };

export type LayerKind = LayerSpec['kind'];

/** A list that cannot be built: which layer (from 0; -1 for the list as a whole) and why, in words for the visitor. */
export class LayerError extends Error {
  override readonly name: string = 'LayerError';
  readonly index: number;

  constructor(index: number, message: string) {
    super(index < 0 ? message : `Layer ${index + 1}: ${message}`);
    this.index = index;
  }
}

/** What a layer gives: images [channels, height, width] or rows [units]. */
export type LayerShape = readonly [number, number, number] | readonly [number];

/** A network as far as it can be known without building it. */
export interface NetworkPlan {
  /** After each layer of the list. */
  readonly shapes: readonly LayerShape[];
  /** What the last layer is given. */
  readonly features: number;
  readonly parameters: number;
  /** Multiplications for one image, which say how long a step takes. */
  readonly work: number;
}

export const IMAGE_SIZE = 28;
export const CLASSES = 10;

/** Smallest and largest values of each field, and its name on the page. */
export const LIMITS: {
  readonly channels: Limit;
  readonly kernel: Limit;
  readonly size: Limit;
  readonly units: Limit;
} = {
  channels: { least: 1, most: 64, name: 'channels' },
  kernel: { least: 1, most: 9, name: 'kernel' },
  size: { least: 2, most: 4, name: 'window' },
  units: { least: 1, most: 512, name: 'units' },
};

export interface Limit {
  readonly least: number;
  readonly most: number;
  readonly name: string;
}

/** Most layers, numbers and multiplications for an image that a network may have: what a visitor's machine trains without trouble. */
const MOST_LAYERS = 8;
const MOST_PARAMETERS = 2_000_000;
const MOST_WORK = 100_000_000;

/** The network of `npm start`. */
export const DEFAULT_LAYERS: readonly LayerSpec[] = [
  { kind: 'conv', channels: 8, kernel: 3 },
  { kind: 'pool', size: 2 },
  { kind: 'conv', channels: 16, kernel: 3 },
  { kind: 'pool', size: 2 },
];

/** A new layer of a kind, for the button that adds one. */
export function newLayer(kind: LayerKind): LayerSpec {
  switch (kind) {
    case 'conv':
      return { kind, channels: 16, kernel: 3 };
    case 'pool':
      return { kind, size: 2 };
    case 'linear':
      return { kind, units: 64 };
    default:
      return kind satisfies never;
  }
}

/** The list as text: `conv 8x3, pool 2, linear 64`. */
export function printLayers(layers: readonly LayerSpec[]): string {
  return layers
    .map((layer) => {
      switch (layer.kind) {
        case 'conv':
          return `conv ${layer.channels}x${layer.kernel}`;
        case 'pool':
          return `pool ${layer.size}`;
        case 'linear':
          return `linear ${layer.units}`;
        default:
          return layer satisfies never;
      }
    })
    .join(', ');
}

/**
 * Reads what `printLayers` writes. The kernel of a convolution may be left out (3), and the window of a pooling (2).
 *
 * @throws LayerError for words it does not know; whether the network can be built is `planNetwork`'s business
 */
export function parseLayers(text: string): LayerSpec[] {
  const parts = text
    .split(',')
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== '');
  return parts.map((part, index) => {
    const found = /^(conv|pool|linear)(?:\s+(\d{1,6})(?:\s*x\s*(\d{1,6}))?)?$/.exec(part);
    const [, kind, first, second] = found ?? [];
    if (kind === 'conv' && first !== undefined) {
      return { kind, channels: Number(first), kernel: Number(second ?? 3) };
    }
    if (kind === 'pool' && second === undefined) return { kind, size: Number(first ?? 2) };
    if (kind === 'linear' && first !== undefined && second === undefined) return { kind, units: Number(first) };
    throw new LayerError(index, `'${part}' is no layer; write for instance conv 8x3, pool 2 or linear 64`);
  });
}

function check(index: number, value: number, { least, most, name }: Limit): void {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new LayerError(index, `${name} must be a whole number from ${least} to ${most}`);
  }
}

/**
 * Shapes and number of parameters of the network for 28 x 28 images.
 *
 * @throws LayerError where a size is out of range, an image becomes too small, layers are in an impossible order, or it is too much
 */
export function planNetwork(layers: readonly LayerSpec[]): NetworkPlan {
  if (layers.length > MOST_LAYERS) {
    throw new LayerError(-1, `${layers.length} layers are more than the ${MOST_LAYERS} this page takes; remove some`);
  }
  let at: LayerShape = [1, IMAGE_SIZE, IMAGE_SIZE];
  let [parameters, work] = [0, 0];
  const shapes: LayerShape[] = [];
  for (const [index, layer] of layers.entries()) {
    if (layer.kind === 'linear') {
      check(index, layer.units, LIMITS.units);
      parameters += (featuresOf(at) + 1) * layer.units;
      work += featuresOf(at) * layer.units;
      at = [layer.units];
    } else if (at.length === 1) {
      throw new LayerError(index, 'a linear layer before it has made the image one row of numbers; move it up');
    } else if (layer.kind === 'conv') {
      check(index, layer.channels, LIMITS.channels);
      check(index, layer.kernel, LIMITS.kernel);
      const [channels, height, width]: readonly [number, number, number] = at;
      parameters += (channels * layer.kernel ** 2 + 1) * layer.channels;
      work += channels * layer.kernel ** 2 * layer.channels * height * width;
      at = [layer.channels, height, width];
    } else {
      check(index, layer.size, LIMITS.size);
      const [channels, height, width]: readonly [number, number, number] = at;
      if (height < layer.size) {
        throw new LayerError(
          index,
          `the image is ${height} x ${width} here, smaller than the window; remove a pooling`,
        );
      }
      at = [channels, Math.floor(height / layer.size), Math.floor(width / layer.size)];
    }
    shapes.push(at);
  }
  const features = featuresOf(at);
  parameters += (features + 1) * CLASSES;
  work += features * CLASSES;
  if (parameters > MOST_PARAMETERS) {
    throw new LayerError(
      -1,
      `The network would have ${parameters.toLocaleString('en')} parameters, the most is ${MOST_PARAMETERS.toLocaleString('en')}; pool more or use fewer units`,
    );
  }
  if (work > MOST_WORK) {
    throw new LayerError(
      -1,
      `The network would multiply ${Math.round(work / 1e6).toLocaleString('en')} million times for each image, the most is ${MOST_WORK / 1e6} million; pool before large convolutions or use fewer channels`,
    );
  }
  return { shapes, features, parameters, work };
}

function featuresOf(shape: LayerShape): number {
  return (shape as readonly number[]).reduce((product, n) => product * n, 1);
}

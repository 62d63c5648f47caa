/**
 * Windows of pooling: their size, stride, padding and what is left over at the edge, read from the arguments once.
 *
 * Windows are given as a size or as options: `maxPool2d(x, 2)`, `maxPool2d(x, 3, { stride: 2, padding: 1 })`,
 * `maxPool2d(x, { kernelSize: 2 })`. The stride is the window's size unless given.
 */
import { makeNode } from '../../graph/build.ts';
import { dilated, perAxis } from '../../shape/axes.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { ArgumentError } from '../../shape/errors.ts';
import { checkNames } from '../../shape/options.ts';
import {
  checkFits,
  checkImage,
  type Layout,
  type Padding,
  type PerAxis,
  readLayout,
  readPadding,
  toChannelsFirst,
} from '../images/image.ts';
import { say } from '../../shape/shown.ts';

export interface PoolSettings {
  /** Default: the window's size. */
  readonly stride?: PerAxis;
  /** Default 0. */
  readonly padding?: Padding;
  /** Distance between the elements of a window; max pooling only. Default 1. */
  readonly dilation?: PerAxis;
  /** Let a last window reach over the edge, so that no element is left out. Default false. */
  readonly ceilMode?: boolean;
  /** Average pooling: divide by the window's size where padding is inside it (default true), or by the number of real elements. */
  readonly countIncludePad?: boolean;
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

export interface PoolOptions extends PoolSettings {
  readonly kernelSize: PerAxis;
}

/** A window: its size, or options that contain it. */
export type PoolWindow = PerAxis | PoolOptions;

/** A pooling, read and checked. */
export interface Geometry {
  readonly layout: Layout;
  readonly size: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  readonly low: readonly number[];
  readonly high: readonly number[];
  /** Added after `high` so that the last window fits, with ceilMode. */
  readonly over: readonly number[];
  /** The input as [N, C, ...spatial]. */
  readonly image: Node;
  readonly options: Partial<PoolOptions>;
}

/** Reads the arguments of a pooling; throws in the name of `op`. */
export function geometry(op: string, rank: number, x: Node, window: PoolWindow, settings: PoolSettings): Geometry {
  const given = typeof window === 'object' && window !== null && 'kernelSize' in window;
  const options: Partial<PoolOptions> & { readonly returnIndices?: true } = given
    ? { ...window, ...settings }
    : settings;
  checkNames(op, options, 'kernelSize stride padding dilation ceilMode? countIncludePad? layout returnIndices?');
  const layout = readLayout(op, options.layout);
  checkImage(op, x, rank);
  const image = toChannelsFirst(x, layout);
  const spatial = image.shape.slice(2);
  const size = perAxis(op, 'kernelSize', given ? window.kernelSize : window, rank, 1);
  const stride = perAxis(op, 'stride', options.stride ?? size, rank, 1);
  const dilation = perAxis(op, 'dilation', options.dilation ?? 1, rank, 1);
  const { low, high } = readPadding(op, options.padding ?? 0, spatial, size, stride, dilation);
  const extents = size.map((n, i) => dilated(n, dilation[i]!));
  checkFits(op, 'window', image.shape, extents, low, high);
  [...low, ...high].forEach((n, i) => {
    const extent = extents[i % rank]!;
    if (n > extent / 2)
      throw new ArgumentError(
        op,
        say`padding too large: ${n} for a window over ${extent} elements; at most half of it`,
      );
  });
  const over = spatial.map((n, i) => {
    const [step, before] = [stride[i]!, low[i]!];
    const room = n + before + high[i]! - extents[i]!;
    if (!options.ceilMode || room % step === 0) return 0;
    // A window that would start in the padding behind the input is left out.
    const starts = (Math.floor(room / step) + 1) * step;
    return starts >= n + before ? 0 : step - (room % step);
  });
  return { layout, size, stride, dilation, low, high, over, image, options };
}

/** Windows of the padded image: [N, C, ...out, ...size]. */
export function windows(image: Node, g: Geometry, value: number): Node {
  const padded = p.pad(image, [0, 0, ...g.low], [0, 0, ...g.high.map((n, i) => n + g.over[i]!)], value);
  return makeNode('window', [padded], { size: g.size, stride: g.stride, dilation: g.dilation });
}

/** Axes of the elements of each window. */
export const windowAxes = (rank: number): number[] => Array.from({ length: rank }, (_, i) => i + 2 + rank);

/**
 * Values put back where the maxima of windows were found: the way back from pooling.ts. Positions that no window has get zero.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { scatterAddPrimitive } from '../../primitives/indexing.ts';
import { perAxis } from '@polygrad/compiler/shape/axes';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { Tensor } from '../../tensor/types.ts';
import {
  checkImage,
  fromChannelsFirst,
  type Layout,
  type PerAxis,
  readLayout,
  toChannelsFirst,
} from '../images/image.ts';
import { safeIndex } from '../indexing/index-argument.ts';

/** Options of `maxUnpool1d`, `maxUnpool2d` and `maxUnpool3d`. */
export interface UnpoolSettings {
  /** Default: the window's size. */
  readonly stride?: PerAxis;
  /** Default 0. */
  readonly padding?: PerAxis;
  /**
   * Spatial sizes of the result: those of the image that was pooled. Default: what the windows cover, which is less where pooling left
   * elements out and more where it had ceilMode.
   */
  readonly outputSize?: PerAxis;
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

function maxUnpool(
  op: string,
  rank: number,
  x: Tensor,
  indices: Tensor,
  window: PerAxis,
  settings: UnpoolSettings,
): Tensor {
  checkNames(op, settings, 'stride padding outputSize layout');
  return compose(op, () => {
    const [node, positions] = [nodeOf(x), nodeOf(indices)];
    checkImage(op, node, rank);
    if (positions.shape.join() !== node.shape.join())
      throw new ShapeError(
        op,
        say`shapes differ: x ${showShape(node.shape)} and indices ${showShape(positions.shape)}; they must be equal`,
        [node.shape, positions.shape],
      );
    const layout = readLayout(op, settings.layout);
    const image = toChannelsFirst(node, layout);
    const [batch, channels, ...spatial] = image.shape as [number, number, ...number[]];
    const size = perAxis(op, 'window', window, rank, 1);
    const stride = perAxis(op, 'stride', settings.stride ?? size, rank, 1);
    const padding = perAxis(op, 'padding', settings.padding ?? 0, rank, 0);
    const least = spatial.map((n, i) => (n - 1) * stride[i]! - 2 * padding[i]! + size[i]!);
    const out = settings.outputSize === undefined ? least : perAxis(op, 'outputSize', settings.outputSize, rank, 1);
    out.forEach((n, i) => {
      // Pooling leaves up to stride - 1 elements out; with ceilMode its last window reaches as far over the edge.
      const [usual, step] = [least[i]!, stride[i]!];
      const [low, high] = [Math.max(1, usual - step + 1), usual + step - 1];
      if (n < low || n > high)
        throw new ArgumentError(
          op,
          say`bad outputSize: ${n} along spatial axis ${i} of ${showShape(image.shape)}; must be from ${low} to ${high}`,
        );
    });
    const [planes, count, pixels] = [batch * channels, sizeOf(spatial), sizeOf(out)];
    const inside = p.reshape(safeIndex(op, toChannelsFirst(positions, layout), pixels), [planes, count]);
    const plane = p.mul(p.reshape(p.iota(planes), [planes, 1]), p.constant(pixels, 'int32'));
    const flat = p.reshape(p.add(inside, plane), [planes * count]);
    const put = (values: Node, dtype: Node['dtype']): Node =>
      makeNode(scatterAddPrimitive, [p.constant(0, dtype, [planes * pixels]), flat, values], { axis: 0 });
    const total = put(p.reshape(image, [planes * count]), node.dtype);
    const arrived = p.cast(put(p.constant(1, 'int32', [planes * count]), 'int32'), node.dtype);
    const mean = makeNode(
      node.dtype.includes('int') ? 'idiv' : 'div',
      [total, p.binary('maximum', arrived, p.like(arrived, 1))],
      null,
    );
    return wrap(fromChannelsFirst(p.reshape(mean, [batch, channels, ...out]), layout));
  });
}

/**
 * Maxima put back where maxPool1d found them, zeros elsewhere; where windows overlap, as in maxUnpool2d. Source: PyTorch `max_unpool1d`.
 *
 * @param x shape [N, C, L], or [N, L, C] with layout 'nhwc'
 * @param indices positions in each line, as maxPool1d returns them; of the shape of x
 * @param window size of the window
 * @param settings stride, padding, outputSize, layout
 * @returns shape [N, C, (L - 1) stride - 2 padding + size], or of outputSize
 * @throws ShapeError where shapes do not fit
 *
 * @example
 * const [top, places] = maxPool1d(tensor([[[1, 2, 4, 3]]]), 2, { returnIndices: true });
 * maxUnpool1d(top, places, 2); // [[[0, 2, 4, 0]]]
 */
export function maxUnpool1d(x: Tensor, indices: Tensor, window: PerAxis, settings: UnpoolSettings = {}): Tensor {
  return maxUnpool('maxUnpool1d', 1, x, indices, window, settings);
}

/**
 * Maxima put back where maxPool2d found them, zeros elsewhere. Source: Zeiler et al. (2011); PyTorch `max_unpool2d`.
 *
 * Where windows overlap, one element may be the maximum of several: what arrives at the same place is averaged, so equal values stay what
 * they are and the gradient is shared.
 *
 * @param x shape [N, C, H, W], or [N, H, W, C] with layout 'nhwc'
 * @param indices positions in each image, as maxPool2d returns them; of the shape of x
 * @param window size of the window
 * @param settings stride, padding, outputSize, layout
 * @returns shape [N, C, (H - 1) stride - 2 padding + size, ...], or of outputSize
 * @throws ShapeError where shapes do not fit
 *
 * @example
 * const [top, places] = maxPool2d(tensor([[[[1, 2], [4, 3]]]]), 2, { returnIndices: true });
 * maxUnpool2d(top, places, 2); // [[[[0, 0], [4, 0]]]]
 */
export function maxUnpool2d(x: Tensor, indices: Tensor, window: PerAxis, settings: UnpoolSettings = {}): Tensor {
  return maxUnpool('maxUnpool2d', 2, x, indices, window, settings);
}

/**
 * Maxima put back where maxPool3d found them, zeros elsewhere; where windows overlap, as in maxUnpool2d. Source: PyTorch `max_unpool3d`.
 *
 * @param x shape [N, C, D, H, W], or [N, D, H, W, C] with layout 'nhwc'
 * @param indices positions in each image, as maxPool3d returns them; of the shape of x
 * @param window size of the window
 * @param settings stride, padding, outputSize, layout
 * @returns shape [N, C, (D - 1) stride - 2 padding + size, ...], or of outputSize
 * @throws ShapeError where shapes do not fit
 *
 * @example
 * const [top, places] = maxPool3d(tensor([[[[[1, 2], [4, 3]]]]]), [1, 2, 2], { returnIndices: true });
 * maxUnpool3d(top, places, [1, 2, 2]); // [[[[[0, 0], [4, 0]]]]]
 */
export function maxUnpool3d(x: Tensor, indices: Tensor, window: PerAxis, settings: UnpoolSettings = {}): Tensor {
  return maxUnpool('maxUnpool3d', 3, x, indices, window, settings);
}

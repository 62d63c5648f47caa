/** Tensors taken apart along an axis. */
import * as p from '../../graph/primitives.ts';
import { beginOp } from '../../graph/scope.ts';
import { checkCount, checkList, mostParts, normalizeAxis } from '../../shape/axes.ts';
import { ShapeError, showShape } from '../../shape/errors.ts';
import { say } from '../../shape/shown.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { Tensor } from '../../tensor/types.ts';
import { axisOf, type JoinAxis } from './joining.ts';

/** Sizes of the parts of an axis of n in parts of `size`, the last one smaller. */
function evenSizes(op: string, n: number, size: number): number[] {
  checkCount(op, 'number of parts', Math.ceil(n / size), 0, mostParts);
  const sizes: number[] = [];
  for (let from = 0; from < n; from += size) sizes.push(Math.min(size, n - from));
  return n === 0 ? [0] : sizes;
}

function cutAt(op: string, x: Tensor, axis: number, sizes: (n: number) => number[]): Tensor[] {
  beginOp(op);
  const node = nodeOf(x);
  const which = normalizeAxis(op, axis, node.shape.length);
  const step = node.shape.map(() => 1);
  let from = 0;
  return sizes(node.shape[which]!).map((size) => {
    const start = node.shape.map((_, i) => (i === which && size > 0 ? from : 0));
    from += size;
    return wrap(
      p.slice(
        node,
        start,
        node.shape.map((n, i) => (i === which ? size : n)),
        step,
      ),
    );
  });
}

/**
 * A tensor cut along an axis, in parts of `size` (the last may be smaller) or of the sizes listed. Source: PyTorch `split`.
 *
 * @param axis one axis, or { axis }; 0
 * @throws ShapeError if listed sizes do not add up
 *
 * @example
 * split(arange(5), 2); // [0, 1], [2, 3], [4]
 */
export function split(x: Tensor, size: number | readonly number[], axis?: JoinAxis): Tensor[] {
  return cutAt('split', x, axisOf('split', axis), (n) => {
    if (typeof size !== 'number') {
      checkList('split', 'sizes', size, '[2, 3]');
      const total = size.reduce((sum, part) => sum + checkCount('split', 'size', part), 0);
      if (total !== n)
        throw new ShapeError(
          'split',
          say`sizes do not add up: ${showShape(size)} makes ${total}, the axis has ${n}; make them equal`,
        );
      return [...size];
    }
    return evenSizes('split', n, checkCount('split', 'size', size, 1, Number.MAX_SAFE_INTEGER));
  });
}

/**
 * A tensor cut along an axis in at most `count` parts of equal size (the last may be smaller). Source: PyTorch `chunk`.
 *
 * @param axis one axis, or { axis }; 0
 *
 * @example
 * chunk(arange(5), 2); // [0, 1, 2], [3, 4]
 */
export function chunk(x: Tensor, count: number, axis?: JoinAxis): Tensor[] {
  return cutAt('chunk', x, axisOf('chunk', axis), (n) => {
    checkCount('chunk', 'count', count, 1, Number.MAX_SAFE_INTEGER);
    return evenSizes('chunk', n, Math.max(1, Math.ceil(n / count)));
  });
}

/**
 * The slices of a tensor along an axis, which disappears. Source: PyTorch `unbind`.
 *
 * @param axis one axis, or { axis }; 0
 *
 * @example
 * unbind(tensor([[1, 2], [3, 4]])); // [1, 2], [3, 4]
 */
export function unbind(x: Tensor, axis?: JoinAxis): Tensor[] {
  beginOp('unbind');
  const node = nodeOf(x);
  const which = normalizeAxis('unbind', axisOf('unbind', axis), node.shape.length);
  checkCount('unbind', 'number of parts', node.shape[which]!, 0, mostParts);
  const step = node.shape.map(() => 1);
  const rest = node.shape.filter((_, i) => i !== which);
  return Array.from({ length: node.shape[which]! }, (_, index) => {
    const start = node.shape.map((_n, i) => (i === which ? index : 0));
    return wrap(
      p.reshape(
        p.slice(
          node,
          start,
          node.shape.map((n, i) => (i === which ? 1 : n)),
          step,
        ),
        rest,
      ),
    );
  });
}

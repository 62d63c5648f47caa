/** pad: elements put around a tensor, constant or taken from the tensor itself. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { checkList, checkShape } from '../../shape/axes.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkWeak } from '../../shape/promotion.ts';
import type { Shape } from '../../shape/view.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { Tensor } from '../../tensor/types.ts';
import { resolveSlices, type SliceRange } from '../../shape/slices.ts';
import { checkNames, shown } from '../../shape/options.ts';
import { say } from '../../shape/shown.ts';

/** Widths of pad: one number, one pair for all axes, or a pair per axis. */
export type PadWidths = number | readonly [number, number] | readonly (readonly [number, number])[];

export interface PadOptions {
  /** What the new elements are: `value`, the mirrored inside without or (symmetric) with the edge, the edge, the other end. Default 'constant'. */
  readonly mode?: 'constant' | 'reflect' | 'symmetric' | 'replicate' | 'circular';
  /** For mode 'constant'. Default 0. */
  readonly value?: number;
}

const modes: readonly string[] = ['constant', 'reflect', 'symmetric', 'replicate', 'circular'];

/**
 * Elements put around a tensor; negative widths cut instead, and mode 'circular' takes from what is left. Source: NumPy `pad`, PyTorch `pad` for
 * negative widths.
 *
 * @param widths before and after each axis: a number for all, a pair for all axes, or one pair per axis
 * @param options mode 'constant' (value 0), 'reflect', 'symmetric', 'replicate' or 'circular'
 * @throws ShapeError where a mode has too few elements to take from
 *
 * @example
 * pad(tensor([1, 2]), [[1, 2]], { value: 9 }); // [9, 1, 2, 9, 9]
 */
export function pad(x: Tensor, widths: PadWidths, options: PadOptions = {}): Tensor {
  checkNames('pad', options, 'mode value');
  return compose('pad', () => {
    const node = nodeOf(x);
    const { shape } = node;
    const pairs = readWidths(widths, shape);
    const low = pairs.map(([before]) => before);
    const high = pairs.map(([, after]) => after);
    const mode = options.mode ?? 'constant';
    if (!modes.includes(mode))
      throw new ArgumentError('pad', say`unknown mode: ${shown(mode)}; must be one of ${modes.join(', ')}`);
    const { value = 0 } = options;
    // 0 and 1 stand for false and true.
    if (node.dtype !== 'bool' || typeof value !== 'number') checkWeak('pad', value, node.dtype);
    if (mode === 'constant') return wrap(padded(node, low, high, value));
    let result = node;
    shape.forEach((n, axis) => {
      const [before, after] = pairs[axis]!;
      if (before === 0 && after === 0) return;
      result = extended(result, axis, n, before, after, mode);
    });
    return wrap(result);
  });
}

function readWidths(widths: PadWidths, shape: Shape): (readonly [number, number])[] {
  let pairs: (readonly [number, number])[];
  if (typeof widths !== 'number') checkList('pad', 'widths', widths, '[[1, 1], [0, 2]]');
  if (typeof widths === 'number') pairs = shape.map(() => [widths, widths]);
  else if (widths.length === 2 && typeof widths[0] === 'number')
    pairs = shape.map(() => widths as readonly [number, number]);
  else pairs = [...(widths as readonly (readonly [number, number])[])];
  if (pairs.length !== shape.length)
    throw new ShapeError(
      'pad',
      say`wrong number of widths: ${pairs.length} for shape ${showShape(shape)}; give one pair per axis`,
      [shape],
    );
  pairs.forEach((pair, axis) => {
    checkList('pad', `widths of axis ${axis}`, pair, '[1, 1]');
    const [before, after] = pair;
    if (
      pair.length !== 2 ||
      !Number.isInteger(before) ||
      !Number.isInteger(after) ||
      before + after + shape[axis]! < 0
    ) {
      throw new ArgumentError(
        'pad',
        say`bad widths: ${showShape(pair)} for axis ${axis} of shape ${showShape(shape)}; must be two integers that leave no negative size`,
      );
    }
  });
  checkShape(
    'pad',
    pairs.map(([before, after], axis) => shape[axis]! + before + after),
  );
  return pairs;
}

/** Constant padding where negative widths cut. */
function padded(node: Node, low: readonly number[], high: readonly number[], value: number): Node {
  const cut = low.some((n) => n < 0) || high.some((n) => n < 0);
  let inner = node;
  if (cut) {
    const start = low.map((n) => Math.max(0, -n));
    const length = node.shape.map((n, i) => Math.max(0, n - start[i]! - Math.max(0, -high[i]!)));
    inner = p.slice(
      node,
      length.includes(0) ? start.map(() => 0) : start,
      length,
      start.map(() => 1),
    );
  }
  // One end may cut more than the axis has: then that much less is put at the other.
  const put = (widths: readonly number[]): number[] =>
    widths.map((n, i) => Math.max(0, Math.min(n, node.shape[i]! + low[i]! + high[i]!)));
  return p.pad(inner, put(low), put(high), value);
}

function extended(
  node: Node,
  axis: number,
  n: number,
  before: number,
  after: number,
  mode: 'reflect' | 'symmetric' | 'replicate' | 'circular',
): Node {
  // What is left of the axis. Mirrors stand where nothing is cut and reach into what is; a circle is closed without it.
  const [first, end] = [Math.max(0, -before), n - Math.max(0, -after)];
  const most = { reflect: n - 1, symmetric: n, replicate: n > 0 ? Number.POSITIVE_INFINITY : 0, circular: end - first }[
    mode
  ];
  if (Math.max(before, after) > most) {
    throw new ShapeError(
      'pad',
      say`width too large for mode '${mode}': [${before}, ${after}] for axis ${axis} of size ${n}; at most ${Math.max(0, most)}`,
      [node.shape],
    );
  }
  const part = (range: SliceRange, of: Node = node): Node => {
    const specs = of.shape.map((_, i) => (i === axis ? range : null));
    const { start, length, step } = resolveSlices('pad', of.shape, specs);
    return p.slice(of, start, length, step);
  };
  // One end cuts more than the axis has: from what the other end put there, too.
  if (first > n) return part({ start: first }, extended(node, axis, n, 0, after, mode));
  if (end < 0) return part({ stop: end + before }, extended(node, axis, n, before, 0, mode));
  const edge = (index: number, count: number): Node => {
    const one = part({ start: index, stop: index + 1 });
    return p.expand(
      one,
      one.shape.map((size, i) => (i === axis ? count : size)),
    );
  };
  const pieces: Node[] = [];
  const inside = part({ start: first, stop: end });
  if (before > 0) {
    if (mode === 'replicate') pieces.push(edge(0, before));
    else if (mode === 'circular') pieces.push(part({ start: end - before, stop: end }));
    else pieces.push(p.flip(part(mode === 'reflect' ? { start: 1, stop: before + 1 } : { stop: before }), [axis]));
  }
  pieces.push(inside);
  if (after > 0) {
    if (mode === 'replicate') pieces.push(edge(n - 1, after));
    else if (mode === 'circular') pieces.push(part({ start: first, stop: first + after }));
    else
      pieces.push(
        p.flip(part(mode === 'reflect' ? { start: n - 1 - after, stop: n - 1 } : { start: n - after }), [axis]),
      );
  }
  return p.concat(pieces, axis);
}

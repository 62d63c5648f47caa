/**
 * Operations whose result has a size that depends on data. They are asynchronous: the size is read back first, everything else is
 * computed where the data is. Gradients flow to the elements that were picked.
 */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { gatherPrimitive, scatterAddPrimitive, scatterPrimitive } from '../../primitives/indexing.ts';
import { scanPrimitive } from '../../primitives/order.ts';
import { broadcastShapes, sizeOf } from '../../shape/view.ts';
import { DTypeError } from '../../shape/errors.ts';
import { checkNames } from '../../shape/options.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { keep } from '../../tensor/scope.ts';
import type { Tensor } from '../../tensor/types.ts';
import { orderOf } from './sort-order.ts';
import { say } from '../../shape/shown.ts';

const int = (value: number): Node => p.constant(value, 'int32');

/** For flags [n]: how many are true up to each one. */
function counted(flags: Node): Node {
  return makeNode(scanPrimitive, [p.cast(flags, 'int32')], { op: 'sum', axis: 0, reverse: false });
}

/** The last element of a line as a tensor of its own, to be read back. */
function lastOf(x: Node): Tensor {
  return wrap(p.reshape(p.slice(x, [x.shape[0]! - 1], [1], [1]), []));
}

/** `values` of the elements whose flag is true, in order; `ends` counts the flags, `count` is their number. */
function packed(flags: Node, ends: Node, values: Node, count: number): Node {
  // One place more, for all others.
  const place = p.where(flags, p.sub(ends, int(1)), int(count));
  const base = p.constant(0, values.dtype, [count + 1]);
  const all = makeNode(scatterPrimitive, [base, place, values], { axis: 0, op: 'set' });
  return p.slice(all, [0], [count], [1]);
}

/** Row-major positions [count] of the elements whose flag is true. Disposes what it makes on the way. */
async function positionsOf(op: string, flags: Tensor): Promise<Tensor> {
  const n = flags.size;
  if (n === 0) return compose(op, () => wrap(p.constant(0, 'int32', [0])));
  const made = compose(op, () => {
    const ends = counted(p.reshape(nodeOf(flags), [n]));
    return { ends: keep(wrap(ends)), total: keep(lastOf(ends)) };
  });
  const count = await made.total.item();
  const result = compose(op, () => wrap(packed(p.reshape(nodeOf(flags), [n]), nodeOf(made.ends), p.iota(n), count)));
  made.ends.dispose();
  made.total.dispose();
  return result;
}

/** A handle of its own on a node, so that the caller may end theirs, or the scope in progress, while we wait. */
function held(x: Node): Tensor {
  return keep(wrap(p.identity(x)));
}

function flagsOf(x: Node): Node {
  return x.dtype === 'bool' ? x : p.not(p.eq(x, p.constant(0, x.dtype)));
}

/**
 * Coordinates of the elements that are not 0, in row-major order. Asynchronous, because their number depends on data. Source: PyTorch `nonzero`.
 *
 * @param x tensor of any dtype; NaN is not 0
 * @returns int32 [count, x.ndim]
 *
 * @example
 * await nonZero(tensor([0, 3, 4])); // [[1], [2]]
 */
export async function nonZero(x: Tensor): Promise<Tensor> {
  const flags = compose('nonZero', () => held(flagsOf(nodeOf(x))));
  const { shape } = flags;
  const positions = await positionsOf('nonZero', flags);
  const result = compose('nonZero', () => {
    let rest = nodeOf(positions);
    const count = rest.shape[0]!;
    const columns: Node[] = [];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const n = shape[axis]!;
      if (axis === 0) columns.unshift(rest);
      else {
        columns.unshift(p.binary('irem', rest, int(n)));
        rest = p.binary('idiv', rest, int(n));
      }
    }
    if (columns.length === 0) return wrap(p.constant(0, 'int32', [count, 0]));
    return wrap(
      p.concat(
        columns.map((column) => p.reshape(column, [count, 1])),
        1,
      ),
    );
  });
  flags.dispose();
  positions.dispose();
  return result;
}

/**
 * The elements of x where the mask is true, in row-major order. Asynchronous, because their number depends on data. Source: PyTorch
 * `masked_select`.
 *
 * @param mask bool; broadcasts with x
 * @returns [count]
 * @throws DTypeError unless the mask is bool; ShapeError where the shapes do not broadcast
 *
 * @example
 * await maskedSelect(tensor([1, 2, 3]), tensor([true, false, true])); // [1, 3]
 */
export async function maskedSelect(x: Tensor, mask: Tensor): Promise<Tensor> {
  const made = compose('maskedSelect', () => {
    const flags = nodeOf(mask);
    if (flags.dtype !== 'bool')
      throw new DTypeError('maskedSelect', say`mask is ${flags.dtype}: needs bool; compare or cast first`, [
        flags.dtype,
      ]);
    const shape = broadcastShapes('maskedSelect', nodeOf(x).shape, flags.shape);
    return { data: held(nodeOf(x)), flags: held(p.broadcastTo(flags, shape)), shape };
  });
  const positions = await positionsOf('maskedSelect', made.flags);
  const result = compose('maskedSelect', () => {
    const flat = p.reshape(p.broadcastTo(nodeOf(made.data), made.shape), [sizeOf(made.shape)]);
    return wrap(makeNode(gatherPrimitive, [flat, nodeOf(positions)], { axis: 0 }));
  });
  made.data.dispose();
  made.flags.dispose();
  positions.dispose();
  return result;
}

/** Options of unique: what to return besides the values. */
export interface UniqueOptions {
  /** Where each value occurs first in the flattened x. */
  readonly returnIndices?: boolean;
  /** For each element of x, which value it is. */
  readonly returnInverse?: boolean;
  /** How often each value occurs. */
  readonly returnCounts?: boolean;
}

/** What unique found; all but the values only if asked for. Positions and counts are int32. */
export interface UniqueResult {
  readonly values: Tensor;
  readonly indices?: Tensor;
  readonly inverse?: Tensor;
  readonly counts?: Tensor;
}

/**
 * The different elements of x in increasing order; every NaN counts as different, 0 and -0 as equal. Asynchronous, because their number
 * depends on data. Source: Array API `unique_values`, `unique_all`.
 *
 * @param x tensor of any dtype and shape
 * @param options returnIndices, returnInverse, returnCounts: return an object instead, with these besides the values
 * @returns values [count]; or { values, indices [count], inverse (shape of x), counts [count] }
 *
 * @example
 * await unique(tensor([3, 1, 3])); // [1, 3]
 */
export async function unique(x: Tensor, options: UniqueOptions): Promise<UniqueResult>;
export async function unique(x: Tensor): Promise<Tensor>;
export async function unique(x: Tensor, options?: UniqueOptions): Promise<Tensor | UniqueResult> {
  checkNames('unique', options, 'returnIndices? returnInverse? returnCounts?');
  const op = 'unique';
  const wanted = options ?? {};
  const made = compose(op, () => {
    const node = nodeOf(x);
    const n = x.size;
    const flat = p.reshape(node, [n]);
    const order = orderOf(flat, 0, false);
    const sorted = makeNode(gatherPrimitive, [flat, order], { axis: 0 });
    const first = p.eq(p.iota(n), int(0));
    const before = n === 0 ? sorted : p.previous(sorted, 0, false, 0);
    const fresh = p.binary('or', first, p.not(p.eq(sorted, before)));
    const ends = counted(fresh);
    return { flat: held(flat), order: held(order), fresh: held(fresh), ends: held(ends) };
  });
  const total = x.size === 0 ? null : compose(op, () => keep(lastOf(nodeOf(made.ends))));
  const shape = [...x.shape];
  const count = total === null ? 0 : await total.item();
  total?.dispose();
  const result = compose(op, () => {
    const [flat, order, fresh, ends] = [made.flat, made.order, made.fresh, made.ends].map((t) => nodeOf(t)) as [
      Node,
      Node,
      Node,
      Node,
    ];
    const n = flat.shape[0]!;
    const indices = n === 0 ? p.constant(0, 'int32', [0]) : packed(fresh, ends, order, count);
    const found: { -readonly [K in keyof UniqueResult]: UniqueResult[K] } = {
      values: wrap(n === 0 ? flat : makeNode(gatherPrimitive, [flat, indices], { axis: 0 })),
    };
    if (wanted.returnIndices) found.indices = wrap(indices);
    const ranks = p.sub(ends, int(1));
    if (wanted.returnInverse) {
      const base = p.constant(0, 'int32', [n]);
      found.inverse = wrap(
        p.reshape(n === 0 ? base : makeNode(scatterPrimitive, [base, order, ranks], { axis: 0, op: 'set' }), shape),
      );
    }
    if (wanted.returnCounts) {
      const base = p.constant(0, 'int32', [count]);
      found.counts = wrap(
        n === 0 ? base : makeNode(scatterAddPrimitive, [base, ranks, p.constant(1, 'int32', [n])], { axis: 0 }),
      );
    }
    return options === undefined ? found.values : found;
  });
  for (const t of [made.flat, made.order, made.fresh, made.ends]) t.dispose();
  return result;
}

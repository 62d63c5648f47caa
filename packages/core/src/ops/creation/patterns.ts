/** Tensors of a pattern: ranges, identity, triangles, grids. They are computed where they are used and need no memory. */
import * as p from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { checkCount, checkList, checkShape } from '@polygrad/compiler/shape/axes';
import { type DType, isFloat, widenedFloat, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { weak } from '../../tensor/operand.ts';
import type { CreationOptions, NamedDType, PlainDType, Tensor } from '../../tensor/types.ts';
import { checkDiagonal, offsets } from '../products/matrices.ts';
import { checkCreation, leaf } from './creation.ts';

/** Number given by the user as a node; constants 0 and 1 need no binding. */
function numberNode(value: number, dtype: DType): Node {
  return value === 0 || value === 1 ? p.constant(value, dtype) : weak(value, dtype, true);
}

/**
 * Numbers from `start` in steps up to, but without, `stop`. Source: Array API `arange`.
 *
 * Called as arange(stop), arange(start, stop) or arange(start, stop, step), each with options at the end.
 *
 * @param options dtype (float32), requiresGrad
 * @returns shape [ceil((stop - start) / step)], or [0]
 * @throws ArgumentError for a step of 0 and numbers that are not finite; DTypeError for bool
 *
 * @example
 * arange(3); // [0, 1, 2]
 * arange(1, 6, 2, { dtype: 'int32' }); // [1, 3, 5]
 */
export function arange<const D extends DType = PlainDType>(
  start: number,
  ...rest: readonly (number | CreationOptions<D>)[]
): Tensor<NamedDType<D>> {
  return compose('arange', () => {
    const last = rest.at(-1);
    const options = typeof last === 'number' ? {} : (last ?? {});
    checkCreation('arange', options);
    const numbers = rest.filter((value) => typeof value === 'number');
    const [from, to] = numbers.length === 0 ? [0, start] : [start, numbers[0]!];
    const step = numbers[1] ?? 1;
    if (step === 0 || !Number.isFinite(step) || !Number.isFinite(from) || !Number.isFinite(to)) {
      throw new ArgumentError(
        'arange',
        say`bad range: from ${from} to ${to} in steps of ${step}; numbers must be finite and the step not 0`,
      );
    }
    const dtype = options.dtype ?? 'float32';
    if (dtype === 'bool') throw new DTypeError('arange', 'dtype not accepted: bool; needs numbers', [dtype]);
    const wide = widenedFloat(dtype);
    const count = Math.max(0, Math.ceil((to - from) / step));
    const steps = p.cast(p.iota(checkCount('arange', 'number of elements', count)), wide);
    const scaled = step === 1 ? steps : p.mul(steps, numberNode(step, wide));
    return leaf('arange', wrap(p.cast(from === 0 ? scaled : p.add(scaled, numberNode(from, wide)), dtype)), options);
  });
}

/**
 * `count` numbers at equal distances from `start` to `stop`, both included. Source: Array API `linspace`.
 *
 * @param options dtype (float32), requiresGrad
 * @returns shape [count]
 * @throws ArgumentError for a bad count; DTypeError for a dtype that is no float
 *
 * @example
 * linspace(0, 1, 5); // [0, 0.25, 0.5, 0.75, 1]
 */
export function linspace<const D extends DType = PlainDType>(
  start: number,
  stop: number,
  count: number,
  options: CreationOptions<D> = {},
): Tensor<NamedDType<D>> {
  checkCreation('linspace', options);
  return compose('linspace', () => {
    checkShape('linspace', [checkCount('linspace', 'count', count, 0, Number.MAX_SAFE_INTEGER)]);
    for (const end of [start, stop])
      if (typeof end !== 'number') throw new ArgumentError('linspace', say`bad limit: ${shown(end)}; must be a number`);
    const dtype = options.dtype ?? 'float32';
    if (!isFloat(dtype))
      throw new DTypeError('linspace', say`dtype not accepted: ${dtype}; needs a floating-point dtype`, [dtype]);
    const index = p.iota(count);
    const parts = Math.max(1, count - 1);
    const distance = (stop - start) / parts;
    const step = Number.isFinite(distance) ? distance : stop / parts - start / parts;
    const wide = widenedFloat(dtype);
    // From the nearer end: both are exact, and no product is larger than half of the way.
    const isFirst = p.lt(index, p.constant(Math.ceil(count / 2), 'int32'));
    const by = (first: number, last: number): Node => p.where(isFirst, weak(first, wide, true), weak(last, wide, true));
    const away = p.where(isFirst, index, p.sub(p.constant(count - 1, 'int32'), index));
    const result = p.add(p.mul(p.cast(away, wide), by(step, -step)), by(start, stop));
    return leaf('linspace', wrap(p.cast(result, dtype)), options);
  });
}

/** Column minus row (`offsets`), for sizes that a user gives. Throws ArgumentError or ShapeError for bad ones. */
function matrixOffsets(op: string, rows: number, columns: number): Node {
  checkCount(op, 'rows', rows);
  checkCount(op, 'columns', columns);
  checkShape(op, [rows, columns]);
  return offsets(rows, columns);
}

/** Options of `eye` and `tri`. */
export interface EyeOptions<D extends DType = DType> extends CreationOptions<D> {
  /** Which diagonal: 0 the main one, positive above. */
  readonly diagonal?: number;
}

function checkEye(op: string, options: EyeOptions): void {
  checkNames(op, options, 'dtype% requiresGrad? diagonal#');
}

/**
 * Ones on a diagonal, zeros elsewhere. Source: Array API `eye`.
 *
 * @param columns as many as rows if left out
 * @param options diagonal (0), dtype (float32), requiresGrad
 *
 * @example
 * eye(2); // [[1, 0], [0, 1]]
 */
export function eye<const D extends DType = PlainDType>(
  rows: number,
  columns?: number | EyeOptions<D>,
  options?: EyeOptions<D>,
): Tensor<NamedDType<D>> {
  return compose('eye', () => {
    const settings = options ?? (typeof columns === 'number' ? {} : (columns ?? {}));
    checkEye('eye', settings);
    const width = typeof columns === 'number' ? columns : rows;
    const on = p.eq(
      matrixOffsets('eye', rows, width),
      p.constant(checkDiagonal('eye', 'diagonal', settings.diagonal ?? 0), 'int32'),
    );
    return leaf('eye', wrap(p.cast(on, settings.dtype ?? 'float32')), settings);
  });
}

/**
 * Ones on and below a diagonal, zeros above. Source: NumPy `tri`.
 *
 * @param columns as many as rows unless given
 * @param options diagonal (0: the main one), dtype (float32), requiresGrad
 *
 * @example
 * tri(2); // [[1, 0], [1, 1]]
 */
export function tri<const D extends DType = PlainDType>(
  rows: number,
  columns?: number | EyeOptions<D>,
  options?: EyeOptions<D>,
): Tensor<NamedDType<D>> {
  return compose('tri', () => {
    const settings = options ?? (typeof columns === 'number' ? {} : (columns ?? {}));
    checkEye('tri', settings);
    const width = typeof columns === 'number' ? columns : rows;
    const on = p.le(
      matrixOffsets('tri', rows, width),
      p.constant(checkDiagonal('tri', 'diagonal', settings.diagonal ?? 0), 'int32'),
    );
    return leaf('tri', wrap(p.cast(on, settings.dtype ?? 'float32')), settings);
  });
}

/**
 * Coordinates of a grid: each vector stretched along another axis. Source: Array API `meshgrid`.
 *
 * @param vectors one per axis, shape [n] (scalars count as [1])
 * @param options indexing 'xy' (default: the first vector runs along the columns, the second along the rows) or 'ij' (the i-th
 *   vector runs along axis i)
 * @returns one tensor per vector, all of the shape of the grid, without copies
 * @throws ShapeError for matrices and more axes
 *
 * @example
 * meshgrid([tensor([1, 2]), tensor([3, 4])]); // [[1, 2], [1, 2]], [[3, 3], [4, 4]]
 */
export function meshgrid(vectors: readonly Tensor[], options: { readonly indexing?: 'xy' | 'ij' } = {}): Tensor[] {
  checkNames('meshgrid', options, 'indexing');
  return compose('meshgrid', () => {
    const { indexing = 'xy' } = options;
    if (indexing !== 'xy' && indexing !== 'ij')
      throw new ArgumentError('meshgrid', say`bad indexing: ${shown(indexing)}; must be 'xy' or 'ij'`);
    checkList('meshgrid', 'vectors', vectors, '[x, y]');
    if (vectors.length === 0) throw new ArgumentError('meshgrid', 'no vectors: the list is empty; give at least one');
    const nodes = vectors.map((vector) => nodeOf(vector));
    for (const { shape } of nodes) {
      if (shape.length > 1)
        throw new ShapeError('meshgrid', say`no vector: shape ${showShape(shape)}; needs one axis; use flatten()`, [
          shape,
        ]);
    }
    const sizes = nodes.map((node) => node.shape[0] ?? 1);
    const axisOf = (i: number): number => (indexing === 'xy' && sizes.length > 1 && i < 2 ? 1 - i : i);
    const grid = sizes.map((_, i) => sizes[axisOf(i)]!);
    return nodes.map((node, i) => {
      const own = grid.map((_, axis) => (axis === axisOf(i) ? sizes[i]! : 1));
      return wrap(p.expand(p.reshape(node, own), grid));
    });
  });
}

/** Tensors of a pattern: ranges, identity, triangles, one-hot rows. They are computed where they are used and need no memory. */
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { compose } from '../graph/scope.ts';
import { checkCount, checkShape } from '../shape/axes.ts';
import { ArgumentError, DTypeError, ShapeError, showShape } from '../shape/errors.ts';
import { type DType, isFloat, isInteger, widenedFloat } from '../shape/dtype.ts';
import { checkNames, shown } from '../shape/options.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import { weak } from '../tensor/operand.ts';
import type { CreationOptions, Tensor } from '../tensor/types.ts';
import { leaf } from './creation.ts';
import { sum } from './reduction.ts';
import { say } from '../shape/shown.ts';

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
 *
 * @example
 * arange(3); // [0, 1, 2]
 * arange(1, 6, 2, { dtype: 'int32' }); // [1, 3, 5]
 */
export function arange(start: number, ...rest: readonly (number | CreationOptions)[]): Tensor {
  return compose('arange', () => {
    const last = rest.at(-1);
    const options = typeof last === 'number' ? {} : (last ?? {});
    checkNames('arange', options, 'dtype% requiresGrad?');
    const numbers = rest.filter((value) => typeof value === 'number');
    const [from, to] = numbers.length === 0 ? [0, start] : [start, numbers[0] as number];
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
 *
 * @example
 * linspace(0, 1, 5); // [0, 0.25, 0.5, 0.75, 1]
 */
export function linspace(start: number, stop: number, count: number, options: CreationOptions = {}): Tensor {
  checkNames('linspace', options, 'dtype% requiresGrad?');
  return compose('linspace', () => {
    checkShape('linspace', [checkCount('linspace', 'count', count, 0, Number.MAX_SAFE_INTEGER)]);
    for (const end of [start, stop])
      if (typeof end !== 'number') throw new ArgumentError('linspace', say`bad limit: ${shown(end)}; must be a number`);
    const dtype = options.dtype ?? 'float32';
    if (!isFloat(dtype))
      throw new DTypeError('linspace', say`dtype not accepted: ${dtype}; needs a floating-point dtype`, [dtype]);
    const index = p.iota(count);
    const step = count > 1 ? (stop - start) / (count - 1) : 0;
    const wide = widenedFloat(dtype);
    const inner = p.add(p.mul(p.cast(index, wide), weak(step, wide, true)), weak(start, wide, true));
    // The last one exactly.
    const result =
      count > 1 ? p.where(p.eq(index, p.constant(count - 1, 'int32')), weak(stop, wide, true), inner) : inner;
    return leaf('linspace', wrap(p.cast(result, dtype)), options);
  });
}

function checkDiagonal(op: string, name: string, diagonal: number): number {
  if (!Number.isInteger(diagonal)) throw new ArgumentError(op, say`bad ${name}: ${diagonal}; must be an integer`);
  return diagonal;
}

/** Column minus row of a matrix of the given sizes, int32. */
export function offsets(rows: number, columns: number): Node {
  return p.sub(p.iota(columns), p.insertAxes(p.iota(rows), [1]));
}

/** The same for sizes that a user gives. */
function matrixOffsets(op: string, rows: number, columns: number): Node {
  checkCount(op, 'rows', rows);
  checkCount(op, 'columns', columns);
  checkShape(op, [rows, columns]);
  return offsets(rows, columns);
}

export interface EyeOptions extends CreationOptions {
  /** Which diagonal: 0 the main one, positive above. */
  readonly diagonal?: number;
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
export function eye(rows: number, columns?: number | EyeOptions, options?: EyeOptions): Tensor {
  return compose('eye', () => {
    const settings = options ?? (typeof columns === 'number' ? {} : (columns ?? {}));
    checkNames('eye', settings, 'dtype% requiresGrad? diagonal#');
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
export function tri(rows: number, columns?: number | EyeOptions, options?: EyeOptions): Tensor {
  return compose('tri', () => {
    const settings = options ?? (typeof columns === 'number' ? {} : (columns ?? {}));
    checkNames('tri', settings, 'dtype% requiresGrad? diagonal#');
    const width = typeof columns === 'number' ? columns : rows;
    const on = p.le(
      matrixOffsets('tri', rows, width),
      p.constant(checkDiagonal('tri', 'diagonal', settings.diagonal ?? 0), 'int32'),
    );
    return leaf('tri', wrap(p.cast(on, settings.dtype ?? 'float32')), settings);
  });
}

function triangle(op: string, x: Tensor, diagonal: number, lower: boolean): Tensor {
  return compose(op, () => {
    const node = nodeOf(x);
    const rank = node.shape.length;
    if (rank < 2)
      throw new ShapeError(op, say`too few axes: ${showShape(node.shape)}; needs at least a matrix`, [node.shape]);
    const distance = offsets(node.shape[rank - 2] as number, node.shape[rank - 1] as number);
    const limit = p.constant(checkDiagonal(op, 'diagonal', diagonal), 'int32');
    const keep = lower ? p.le(distance, limit) : p.le(limit, distance);
    return wrap(p.where(keep, node, p.like(node, 0)));
  });
}

/**
 * The lower triangles of the matrices in the last two axes, zeros above. Source: Array API `tril`.
 *
 * @param options diagonal up to which elements stay, 0
 *
 * @example
 * tril(ones([2, 2])); // [[1, 0], [1, 1]]
 */
export function tril(x: Tensor, options: { readonly diagonal?: number } = {}): Tensor {
  checkNames('tril', options, 'diagonal#');
  return triangle('tril', x, options.diagonal ?? 0, true);
}

/**
 * The upper triangles of the matrices in the last two axes, zeros below. Source: Array API `triu`.
 *
 * @param options diagonal from which elements stay, 0
 *
 * @example
 * triu(ones([2, 2])); // [[1, 1], [0, 1]]
 */
export function triu(x: Tensor, options: { readonly diagonal?: number } = {}): Tensor {
  checkNames('triu', options, 'diagonal#');
  return triangle('triu', x, options.diagonal ?? 0, false);
}

/**
 * Rows with a 1 at the index and 0 elsewhere; all zeros for indices outside. Source: PyTorch `one_hot`.
 *
 * @param indices integers of any shape
 * @param classes length of a row
 * @param options dtype (float32)
 * @returns shape [...indices.shape, classes]
 *
 * @example
 * oneHot(tensor([1], { dtype: 'int32' }), 3); // [[0, 1, 0]]
 */
export function oneHot(indices: Tensor, classes: number, options: { readonly dtype?: DType } = {}): Tensor {
  checkNames('oneHot', options, 'dtype%');
  return compose('oneHot', () => {
    const node = nodeOf(indices);
    if (!isInteger(node.dtype))
      throw new DTypeError('oneHot', say`index dtype is ${node.dtype}: needs integers; convert with cast()`, [
        node.dtype,
      ]);
    checkCount('oneHot', 'number of classes', classes);
    checkShape('oneHot', [...node.shape, classes]);
    const index = p.insertAxes(p.cast(node, 'int32'), [node.shape.length]);
    return wrap(p.cast(p.eq(index, p.iota(classes)), options.dtype ?? 'float32'));
  });
}

/**
 * The diagonal of the matrices in two axes, as the last axis. Source: NumPy `diagonal`.
 *
 * @param options offset (0; positive above), axis1 -2, axis2 -1
 *
 * @example
 * diagonal(tensor([[1, 2], [3, 4]])); // [1, 4]
 */
export function diagonal(
  x: Tensor,
  options: { readonly offset?: number; readonly axis1?: number; readonly axis2?: number } = {},
): Tensor {
  checkNames('diagonal', options, 'offset# axis1# axis2#');
  return compose('diagonal', () =>
    wrap(diagonalNode('diagonal', nodeOf(x), options.offset ?? 0, options.axis1 ?? -2, options.axis2 ?? -1)),
  );
}

/** The diagonal of axes a and b as the last axis: every (columns + 1)-th element of the flattened matrix. */
export function diagonalNode(op: string, x: Node, offset: number, axis1: number, axis2: number): Node {
  const rank = x.shape.length;
  const a = axis1 < 0 ? axis1 + rank : axis1;
  const b = axis2 < 0 ? axis2 + rank : axis2;
  if (rank < 2 || a === b || x.shape[a] === undefined || x.shape[b] === undefined) {
    throw new ShapeError(
      op,
      say`no matrix: axes ${axis1} and ${axis2} of shape ${showShape(x.shape)}; needs two different axes`,
      [x.shape],
    );
  }
  checkDiagonal(op, 'offset', offset);
  const lead = x.shape.map((_, i) => i).filter((i) => i !== a && i !== b);
  const matrix = p.permute(x, [...lead, a, b]);
  const [rows, columns] = [x.shape[a] as number, x.shape[b] as number];
  const count = Math.max(0, Math.min(rows + Math.min(offset, 0), columns - Math.max(offset, 0)));
  const sizes = lead.map((i) => x.shape[i] as number);
  const flat = p.reshape(matrix, [...sizes, rows * columns]);
  const first = offset >= 0 ? offset : -offset * columns;
  const at = (value: number, other: number): number[] => [...sizes.map(() => other), value];
  return p.slice(flat, at(count === 0 ? 0 : first, 0), [...sizes, count], at(columns + 1, 1));
}

/**
 * The sum of a matrix's diagonal; of all matrices in the last two axes. Source: Array API `linalg.trace`.
 *
 * @param options offset, 0
 *
 * @example
 * trace(tensor([[1, 2], [3, 4]])); // 5
 */
export function trace(x: Tensor, options: { readonly offset?: number } = {}): Tensor {
  checkNames('trace', options, 'offset#');
  return compose('trace', () => {
    const line = diagonalNode('trace', nodeOf(x), options.offset ?? 0, -2, -1);
    return sum(wrap(line), -1);
  });
}

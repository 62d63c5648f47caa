/** Checks that shape and dtype rules share, and the errors they throw. */
import { type DType, isFloat, isInteger } from '../shape/dtype.ts';
import { DTypeError, ShapeError, showShape } from '../shape/errors.ts';
import type { Shape } from '../shape/view.ts';
import type { Attrs, PrimitiveName } from './attrs.ts';
import type { Node } from './node.ts';
import { opName } from './scope.ts';
import { say } from '../shape/shown.ts';

/** Computes shape and dtype of a node from its sources; throws ShapeError or DTypeError. */
export interface InferRule<P extends PrimitiveName> {
  shape(src: readonly Node[], attr: Attrs[P], op: P): Shape;
  dtype(src: readonly Node[], attr: Attrs[P], op: P): DType;
}

/** Families of dtypes. */
export type Accepts = 'float' | 'number' | 'integer' | 'bits' | 'any';

function accepted(kind: Accepts, dtype: DType): boolean {
  switch (kind) {
    case 'float':
      return isFloat(dtype);
    case 'number':
      return dtype !== 'bool';
    case 'integer':
      return isInteger(dtype);
    case 'bits':
      return !isFloat(dtype);
    case 'any':
      return true;
    default:
      return kind satisfies never;
  }
}

const wanted: Readonly<Record<Accepts, string>> = {
  float: 'a floating-point dtype',
  number: 'numbers, not bool',
  integer: 'an integer dtype',
  bits: 'integers or bool',
  any: 'any dtype',
};

/** Throws DTypeError unless the primitive takes the dtype. */
export function checkDType(kind: Accepts, primitive: PrimitiveName, dtype: DType): void {
  if (!accepted(kind, dtype)) {
    throw new DTypeError(
      opName(primitive),
      say`dtype not accepted: ${dtype}; needs ${wanted[kind]}; convert with cast()`,
      [dtype],
    );
  }
}

/** Dtype shared by both operands. */
export function common(primitive: PrimitiveName, kind: Accepts, a: Node, b: Node): DType {
  if (a.dtype !== b.dtype) {
    throw new DTypeError(opName(primitive), say`dtypes differ: ${a.dtype} and ${b.dtype}; convert one with cast()`, [
      a.dtype,
      b.dtype,
    ]);
  }
  checkDType(kind, primitive, a.dtype);
  return a.dtype;
}

/** Throws a ShapeError in the name of the operation in progress. */
export function fail(op: PrimitiveName, message: string, ...shapes: Shape[]): never {
  throw new ShapeError(opName(op), message, shapes);
}

/** Throws unless there are `rank` integer entries. */
export function checkRank(op: PrimitiveName, what: string, entries: readonly number[], shape: Shape): void {
  if (entries.length !== shape.length) {
    fail(op, say`wrong number of ${what}: ${entries.length} for shape ${showShape(shape)}; give one per axis`, shape);
  }
}

/** Throws unless the axes exist, each once, in ascending order. */
export function sortedDistinct(op: PrimitiveName, axes: readonly number[], shape: Shape): void {
  for (let i = 0; i < axes.length; i++) {
    const axis = axes[i]!;
    if (axis < 0 || axis >= shape.length || (i > 0 && axis <= axes[i - 1]!)) {
      fail(op, say`bad axes ${showShape(axes)} for shape ${showShape(shape)}; must be distinct and ascending`, shape);
    }
  }
}

/** The shape with one axis replaced by others. */
export function spliced(shape: Shape, axis: number, middle: Shape): number[] {
  return [...shape.slice(0, axis), ...middle, ...shape.slice(axis + 1)];
}

/** Throws DTypeError unless the node is int32. */
export function checkIndex(op: PrimitiveName, index: Node): void {
  if (index.dtype !== 'int32')
    throw new DTypeError(opName(op), say`index dtype is ${index.dtype}: needs int32; convert with cast()`, [
      index.dtype,
    ]);
}

/** Throws unless the axis exists. */
export function checkAxis(op: PrimitiveName, axis: number, shape: Shape): void {
  if (axis < 0 || axis >= shape.length) fail(op, say`no axis ${axis} in shape ${showShape(shape)}`, shape);
}

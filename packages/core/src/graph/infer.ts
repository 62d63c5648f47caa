/**
 * Shape rule and dtype rule of every primitive: what a node's result looks like, and whether its inputs are allowed.
 *
 * Rules check everything that must hold of a node, so that later stages need not; ops check again only where they can
 * say something clearer. Convolution arithmetic is in infer-conv.ts.
 */
import { dropAxes } from '../shape/axes.ts';
import { broadcastShapes } from '../shape/broadcast.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { DTypeError, showShape } from '../shape/errors.ts';
import type { Shape } from '../shape/view.ts';
import type { PrimitiveName } from './attrs.ts';
import { binaryInfer as binary, unaryInfer as unary } from './infer-elementwise.ts';
import { convShape, foldShape, windowShape } from './infer-conv.ts';
import { checkDType, common, fail, type InferRule, sortedDistinct } from './infer-checks.ts';
import { movementRules } from './infer-movement.ts';
import type { CommonPrimitive } from './definition.ts';
import type { Node } from './node.ts';
import { opName } from './scope.ts';
import { say } from '../shape/shown.ts';

const first = (src: readonly Node[]): Node => src[0]!;
const second = (src: readonly Node[]): Node => src[1]!;
const shapeOfFirst = (src: readonly Node[]): Shape => first(src).shape;
const dtypeOfFirst = (src: readonly Node[]): DType => first(src).dtype;

/** Throws unless axes that belong together have one size. */
function checkPaired(lhs: Shape, lhsAxes: readonly number[], rhs: Shape, rhsAxes: readonly number[]): void {
  const count = Math.max(lhsAxes.length, rhsAxes.length);
  for (let i = 0; i < count; i++) {
    const m = lhsAxes[i] ?? -1;
    const n = rhsAxes[i] ?? -1;
    if (lhs[m] === undefined || lhs[m] !== rhs[n]) {
      fail(
        'dotGeneral',
        say`sizes differ: axis ${m} of ${showShape(lhs)} and axis ${n} of ${showShape(rhs)}; paired axes must be equal`,
        lhs,
        rhs,
      );
    }
  }
}

/** Writes the sizes of the axes that are neither batch nor contracted from position `at` on; returns where it ended. */
function writeFree(
  to: number[],
  at: number,
  shape: Shape,
  batch: readonly number[],
  contract: readonly number[],
): number {
  let end = at;
  for (let axis = 0; axis < shape.length; axis++) {
    if (!has(batch, axis) && !has(contract, axis)) to[end++] = shape[axis]!;
  }
  return end;
}

/** `includes` for lists of a few numbers, without a call: products are recorded often. */
function has(list: readonly number[], value: number): boolean {
  for (let i = 0; i < list.length; i++) if (list[i] === value) return true;
  return false;
}

/** The rules, one per primitive; defined ones (primitives/) bring theirs. */
export const inferRules: { readonly [P in CommonPrimitive]: InferRule<P> } = {
  buffer: { shape: (_, attr) => attr.shape, dtype: (_, attr) => attr.dtype },
  scalar: { shape: () => [], dtype: (_, attr) => attr.dtype },
  constant: { shape: (_, attr) => attr.shape, dtype: (_, attr) => attr.dtype },
  iota: { shape: (_, attr) => [attr.length], dtype: () => 'int32' },
  randomBits: {
    shape: (_, attr) => attr.shape,
    dtype: (src) => {
      if (src.length !== 2 || src.some((key) => key.dtype !== 'uint32' || key.shape.length !== 0)) {
        fail(
          'randomBits',
          say`a key is two uint32 scalars: got ${src.map((key) => key.dtype + showShape(key.shape)).join(', ')}`,
        );
      }
      return 'uint32';
    },
  },

  neg: unary('neg', 'number'),
  not: unary('not', 'bits'),
  abs: unary('abs', 'number'),
  sign: unary('sign', 'number'),
  sqrt: unary('sqrt', 'float'),
  rsqrt: unary('rsqrt', 'float'),
  reciprocal: unary('reciprocal', 'float'),
  floor: unary('floor', 'float'),
  exp: unary('exp', 'float'),
  log: unary('log', 'float'),
  isNaN: unary('isNaN', 'float', 'bool'),

  add: binary('add', 'number'),
  sub: binary('sub', 'number'),
  mul: binary('mul', 'number'),
  div: binary('div', 'float'),
  idiv: binary('idiv', 'integer'),
  irem: binary('irem', 'integer'),
  maximum: binary('maximum', 'number'),
  minimum: binary('minimum', 'number'),
  and: binary('and', 'bits'),
  or: binary('or', 'bits'),
  xor: binary('xor', 'bits'),
  shl: binary('shl', 'integer'),
  shr: binary('shr', 'integer'),
  lt: binary('lt', 'number', 'bool'),
  le: binary('le', 'number', 'bool'),
  eq: binary('eq', 'any', 'bool'),

  where: {
    shape: (src) => {
      const op = opName('where');
      return broadcastShapes(op, broadcastShapes(op, first(src).shape, second(src).shape), src[2]!.shape);
    },
    dtype: (src) => {
      const condition = first(src).dtype;
      if (condition !== 'bool')
        throw new DTypeError(opName('where'), say`condition is ${condition}: needs bool; compare or cast first`, [
          condition,
        ]);
      return common('where', 'any', second(src), src[2]!);
    },
  },
  cast: { shape: shapeOfFirst, dtype: (_, attr) => attr.dtype },
  bitcast: {
    shape: shapeOfFirst,
    dtype: (src, attr) => {
      const from = first(src).dtype;
      if (dtypeInfo[from].bytes !== dtypeInfo[attr.dtype].bytes || from === 'bool' || attr.dtype === 'bool') {
        throw new DTypeError(
          opName('bitcast'),
          say`sizes differ: ${from} and ${attr.dtype}; both must have the same number of bytes`,
          [from, attr.dtype],
        );
      }
      return attr.dtype;
    },
  },

  reduce: {
    shape: (src, attr) => {
      const { shape } = first(src);
      sortedDistinct('reduce', attr.axes, shape);
      if (attr.op === 'max' || attr.op === 'min') checkNotEmpty('reduce', shape, attr.axes);
      return dropAxes(shape, attr.axes);
    },
    dtype: (src) => {
      checkDType('number', 'reduce', first(src).dtype);
      return first(src).dtype;
    },
  },
  argReduce: {
    shape: (src, attr) => {
      const { shape } = first(src);
      sortedDistinct('argReduce', attr.axes, shape);
      checkNotEmpty('argReduce', shape, attr.axes);
      return dropAxes(shape, attr.axes);
    },
    dtype: (src) => {
      checkDType('number', 'argReduce', first(src).dtype);
      return 'int32';
    },
  },

  ...movementRules,
  window: { shape: (src, attr) => windowShape(first(src).shape, attr), dtype: dtypeOfFirst },
  fold: { shape: (src, attr) => foldShape(first(src).shape, attr), dtype: dtypeOfFirst },

  dotGeneral: {
    shape: (src, attr) => {
      const { lhsBatch, rhsBatch, lhsContract, rhsContract } = attr;
      const lhs = first(src).shape;
      const rhs = second(src).shape;
      checkPaired(lhs, lhsBatch, rhs, rhsBatch);
      checkPaired(lhs, lhsContract, rhs, rhsContract);
      const batches = lhsBatch.length;
      const shape = new Array<number>(lhs.length + rhs.length - batches - 2 * lhsContract.length);
      for (let i = 0; i < batches; i++) shape[i] = lhs[lhsBatch[i]!]!;
      writeFree(shape, writeFree(shape, batches, lhs, lhsBatch, lhsContract), rhs, rhsBatch, rhsContract);
      return shape;
    },
    dtype: (src) => common('dotGeneral', 'number', first(src), second(src)),
  },
  conv: {
    shape: (src, attr) => convShape(first(src).shape, second(src).shape, attr),
    dtype: (src) => common('conv', 'number', first(src), second(src)),
  },

  stopGradient: { shape: shapeOfFirst, dtype: dtypeOfFirst },
  after: { shape: shapeOfFirst, dtype: dtypeOfFirst },
  contiguous: { shape: shapeOfFirst, dtype: dtypeOfFirst },
};

function checkNotEmpty(op: PrimitiveName, shape: Shape, axes: readonly number[]): void {
  for (const axis of axes) {
    if (shape[axis] === 0) {
      fail(
        op,
        say`reduction over nothing: axis ${axis} of ${showShape(shape)} is empty and this reduction has no value for it; check the size first`,
        shape,
      );
    }
  }
}

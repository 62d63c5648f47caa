/**
 * Shape rule and dtype rule of every primitive: what a node's result looks like, and whether its inputs are allowed.
 *
 * Rules check everything that must hold of a node, so that later stages need not; ops check again only where they can
 * say something clearer. Convolution arithmetic is in infer-conv.ts.
 */
import { dropAxes } from '../shape/axes.ts';
import { broadcastShapes } from '../shape/broadcast.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { DTypeError, ShapeError, showShape } from '../shape/errors.ts';
import { type Shape, sizeOf } from '../shape/view.ts';
import type { Attrs, BinaryPrimitive, PrimitiveName, UnaryPrimitive } from './attrs.ts';
import { convShape, foldShape, windowShape } from './infer-conv.ts';
import { type Accepts, checkDType, common } from './infer-dtype.ts';
import type { Node } from './node.ts';
import { opName } from './scope.ts';

/** Computes shape and dtype of a node from its sources; throws ShapeError or DTypeError. */
export interface InferRule<P extends PrimitiveName> {
  shape(src: readonly Node[], attr: Attrs[P]): Shape;
  dtype(src: readonly Node[], attr: Attrs[P]): DType;
}

const first = (src: readonly Node[]): Node => src[0] as Node;
const second = (src: readonly Node[]): Node => src[1] as Node;
const shapeOfFirst = (src: readonly Node[]): Shape => first(src).shape;
const dtypeOfFirst = (src: readonly Node[]): DType => first(src).dtype;

function unary<P extends UnaryPrimitive>(op: P, kind: Accepts, result?: DType): InferRule<P> {
  return {
    shape: shapeOfFirst,
    dtype: (src) => {
      const { dtype } = first(src);
      checkDType(kind, op, dtype);
      return result ?? dtype;
    },
  };
}

function binary<P extends BinaryPrimitive>(op: P, kind: Accepts, result?: DType): InferRule<P> {
  return {
    shape: (src) => broadcastShapes(opName(op), first(src).shape, second(src).shape),
    dtype: (src) => {
      const dtype = common(op, kind, first(src), second(src));
      return result ?? dtype;
    },
  };
}

function fail(op: PrimitiveName, message: string, ...shapes: Shape[]): never {
  throw new ShapeError(opName(op), message, shapes);
}

/** Throws unless there are `rank` integer entries. */
function checkRank(op: PrimitiveName, what: string, entries: readonly number[], shape: Shape): void {
  if (entries.length !== shape.length) {
    fail(op, `wrong number of ${what}: ${entries.length} for shape ${showShape(shape)}; give one per axis`, shape);
  }
}

function sortedDistinct(op: PrimitiveName, axes: readonly number[], shape: Shape): void {
  for (let i = 0; i < axes.length; i++) {
    const axis = axes[i] as number;
    if (axis < 0 || axis >= shape.length || (i > 0 && axis <= (axes[i - 1] as number))) {
      fail(op, `bad axes [${axes.join(', ')}] for shape ${showShape(shape)}; must be distinct and ascending`, shape);
    }
  }
}

function checkIndex(op: PrimitiveName, index: Node): void {
  if (index.dtype !== 'int32')
    throw new DTypeError(opName(op), `index dtype is ${index.dtype}: needs int32; convert with cast()`, [index.dtype]);
}

function spliced(shape: Shape, axis: number, middle: Shape): number[] {
  return [...shape.slice(0, axis), ...middle, ...shape.slice(axis + 1)];
}

/** The rules, one per primitive. */
export const inferRules: { readonly [P in PrimitiveName]: InferRule<P> } = {
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
          `a key is two uint32 scalars: got ${src.map((key) => key.dtype + showShape(key.shape)).join(', ')}`,
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
  ceil: unary('ceil', 'float'),
  trunc: unary('trunc', 'float'),
  round: unary('round', 'float'),
  exp: unary('exp', 'float'),
  exp2: unary('exp2', 'float'),
  expm1: unary('expm1', 'float'),
  log: unary('log', 'float'),
  log2: unary('log2', 'float'),
  log1p: unary('log1p', 'float'),
  sin: unary('sin', 'float'),
  cos: unary('cos', 'float'),
  tan: unary('tan', 'float'),
  asin: unary('asin', 'float'),
  acos: unary('acos', 'float'),
  atan: unary('atan', 'float'),
  sinh: unary('sinh', 'float'),
  cosh: unary('cosh', 'float'),
  tanh: unary('tanh', 'float'),
  erf: unary('erf', 'float'),
  isNaN: unary('isNaN', 'float', 'bool'),

  add: binary('add', 'number'),
  sub: binary('sub', 'number'),
  mul: binary('mul', 'number'),
  div: binary('div', 'float'),
  idiv: binary('idiv', 'integer'),
  irem: binary('irem', 'integer'),
  fmod: binary('fmod', 'float'),
  pow: binary('pow', 'float'),
  atan2: binary('atan2', 'float'),
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
      return broadcastShapes(op, broadcastShapes(op, first(src).shape, second(src).shape), (src[2] as Node).shape);
    },
    dtype: (src) => {
      const condition = first(src).dtype;
      if (condition !== 'bool')
        throw new DTypeError(opName('where'), `condition is ${condition}: needs bool; compare or cast first`, [
          condition,
        ]);
      return common('where', 'any', second(src), src[2] as Node);
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
          `sizes differ: ${from} and ${attr.dtype}; both must have the same number of bytes`,
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

  reshape: {
    shape: (src, attr) => {
      const { shape } = first(src);
      if (sizeOf(shape) !== sizeOf(attr.shape)) {
        fail(
          'reshape',
          `number of elements differs: ${sizeOf(shape)} in ${showShape(shape)} and ${sizeOf(attr.shape)} in ${showShape(attr.shape)}; they must be equal`,
          shape,
          attr.shape,
        );
      }
      return attr.shape;
    },
    dtype: dtypeOfFirst,
  },
  permute: {
    shape: (src, attr) => {
      const { shape } = first(src);
      checkRank('permute', 'axes', attr.axes, shape);
      sortedDistinct(
        'permute',
        [...attr.axes].sort((a, b) => a - b),
        shape,
      );
      return attr.axes.map((axis) => shape[axis] as number);
    },
    dtype: dtypeOfFirst,
  },
  expand: {
    shape: (src, attr) => {
      const { shape } = first(src);
      if (shape.length !== attr.shape.length || shape.some((n, i) => n !== 1 && n !== attr.shape[i])) {
        fail(
          'expand',
          `cannot stretch ${showShape(shape)} to ${showShape(attr.shape)}; only axes of size 1 stretch`,
          shape,
          attr.shape,
        );
      }
      return attr.shape;
    },
    dtype: dtypeOfFirst,
  },
  slice: {
    shape: (src, attr) => {
      const { shape } = first(src);
      checkRank('slice', 'ranges', attr.length, shape);
      for (let i = 0; i < shape.length; i++) {
        const n = attr.length[i] as number;
        const start = attr.start[i] as number;
        const last = start + (n - 1) * (attr.step[i] as number);
        const inside = (at: number): boolean => at >= 0 && at < (shape[i] as number);
        if (n < 0 || (n > 0 && !(inside(start) && inside(last)))) {
          fail(
            'slice',
            `range ${start} .. ${last} lies outside axis ${i} of shape ${showShape(shape)}; stay within 0 .. ${(shape[i] as number) - 1}`,
            shape,
          );
        }
      }
      return attr.length;
    },
    dtype: dtypeOfFirst,
  },
  pad: {
    shape: (src, attr) => {
      const { shape } = first(src);
      checkRank('pad', 'pad widths', attr.low, shape);
      checkRank('pad', 'pad widths', attr.high, shape);
      const result = shape.map((n, i) => n + (attr.low[i] as number) + (attr.high[i] as number));
      if (attr.low.some((n) => n < 0) || attr.high.some((n) => n < 0))
        fail('pad', `negative width: low ${showShape(attr.low)}, high ${showShape(attr.high)}`, shape);
      return result;
    },
    dtype: dtypeOfFirst,
  },
  concat: {
    shape: (src, attr) => {
      const { shape } = first(src);
      let total = 0;
      for (const part of src) {
        if (part.shape.length !== shape.length || part.shape.some((n, i) => i !== attr.axis && n !== shape[i])) {
          fail(
            'concat',
            `shapes differ besides axis ${attr.axis}: ${showShape(shape)} and ${showShape(part.shape)}; make the other sizes equal`,
            shape,
            part.shape,
          );
        }
        total += part.shape[attr.axis] as number;
      }
      return spliced(shape, attr.axis, [total]);
    },
    dtype: (src) => {
      for (const part of src) common('concat', 'any', first(src), part);
      return first(src).dtype;
    },
  },
  window: { shape: (src, attr) => windowShape(first(src).shape, attr), dtype: dtypeOfFirst },
  fold: { shape: (src, attr) => foldShape(first(src).shape, attr), dtype: dtypeOfFirst },

  dotGeneral: {
    shape: (src, attr) => {
      const [lhs, rhs] = [first(src).shape, second(src).shape];
      const pairs = [
        ...attr.lhsBatch.map((axis, i) => [axis, attr.rhsBatch[i]]),
        ...attr.lhsContract.map((axis, i) => [axis, attr.rhsContract[i]]),
      ];
      for (const [m, n] of pairs) {
        if (m === undefined || n === undefined || lhs[m] === undefined || lhs[m] !== rhs[n]) {
          fail(
            'dotGeneral',
            `sizes differ: axis ${m} of ${showShape(lhs)} and axis ${n} of ${showShape(rhs)}; paired axes must be equal`,
            lhs,
            rhs,
          );
        }
      }
      const lhsUsed = [...attr.lhsBatch, ...attr.lhsContract];
      const rhsUsed = [...attr.rhsBatch, ...attr.rhsContract];
      return [
        ...attr.lhsBatch.map((axis) => lhs[axis] as number),
        ...lhs.filter((_, axis) => !lhsUsed.includes(axis)),
        ...rhs.filter((_, axis) => !rhsUsed.includes(axis)),
      ];
    },
    dtype: (src) => common('dotGeneral', 'number', first(src), second(src)),
  },
  conv: {
    shape: (src, attr) => convShape(first(src).shape, second(src).shape, attr),
    dtype: (src) => common('conv', 'number', first(src), second(src)),
  },

  gather: {
    shape: (src, attr) => {
      const { shape } = first(src);
      if (attr.axis < 0 || attr.axis >= shape.length)
        fail('gather', `no axis ${attr.axis} in shape ${showShape(shape)}`, shape);
      return spliced(shape, attr.axis, second(src).shape);
    },
    dtype: (src) => {
      checkIndex('gather', second(src));
      return first(src).dtype;
    },
  },
  scatterAdd: {
    shape: (src, attr) => {
      const [base, index, updates] = [first(src).shape, second(src).shape, (src[2] as Node).shape];
      const expected = spliced(base, attr.axis, index);
      if (updates.length !== expected.length || updates.some((n, i) => n !== expected[i])) {
        fail(
          'scatterAdd',
          `updates have shape ${showShape(updates)}: needs ${showShape(expected)} for base ${showShape(base)} and index ${showShape(index)}`,
          updates,
          expected,
        );
      }
      return base;
    },
    dtype: (src) => {
      checkIndex('scatterAdd', second(src));
      return common('scatterAdd', 'number', first(src), src[2] as Node);
    },
  },

  stopGradient: { shape: shapeOfFirst, dtype: dtypeOfFirst },
  contiguous: { shape: shapeOfFirst, dtype: dtypeOfFirst },
};

function checkNotEmpty(op: PrimitiveName, shape: Shape, axes: readonly number[]): void {
  for (const axis of axes) {
    if (shape[axis] === 0) {
      fail(
        op,
        `reduction over nothing: axis ${axis} of ${showShape(shape)} is empty and this reduction has no value for it; check the size first`,
        shape,
      );
    }
  }
}

/**
 * The elementwise functions that every page carries, and `unaryFunction` and `binaryFunction`, which define all others. Before them stand helpers
 * that the rules of many primitives share.
 */
import * as p from '../graph/primitives.ts';
import type { FloatFunctions } from '@polygrad/compiler/arithmetic/decompose/functions';
import {
  type Accepts,
  type BatchContext,
  checkDType,
  common,
  type CommonPrimitive,
  customRules,
  define,
  type Definition,
  elementwiseCustom,
  type Facts,
  type Family,
  type GradientRule,
  type Gradients,
  type InferRule,
  type TangentContext,
  type Tangents,
} from '../graph/definition.ts';
import type { Attrs, BinaryAttrs, Node, PrimitiveName, UnaryAttrs } from '../graph/node.ts';
import {
  binary as recordBinary,
  cast,
  div,
  le,
  like,
  lt,
  makeAgain,
  makeNode,
  mul,
  neg,
  sub,
  unary as recordUnary,
  where,
} from '../graph/primitives.ts';
import { opName } from '../graph/scope.ts';
import type { KNode } from '@polygrad/compiler/ir/ir';
import type { BinaryOp, UnaryOp } from '@polygrad/compiler/ir/operations';
import { part } from '../planner/lowering/rules.ts';
import { type DType, dtypeInfo, isFloat, DTypeError } from '@polygrad/compiler/shape/dtype';
import { say } from '@polygrad/compiler/shape/shown';
import { sameShape } from '@polygrad/compiler/shape/view';
import { broadcastShapes } from '@polygrad/compiler/shape/broadcast';

// Helpers for the rules of many primitives. A batching rule records a node again for a whole batch, which is axis 0 of its sources and its result.

export const dtypeOfFirst = (src: readonly Node[]): Node['dtype'] => src[0]!.dtype;

export const inferSame: InferRule<PrimitiveName> = { shape: (src) => src[0]!.shape, dtype: dtypeOfFirst };

/** The tangent of primitives that are linear in their first source and have no other. */
export function linear<P extends PrimitiveName>({ node, attr, tangents }: TangentContext<P>): Node {
  return makeAgain(node, [tangents[0]!], attr);
}

/** The source with the batch in front, stretched over it if all elements share it. */
export function whole(c: BatchContext<PrimitiveName>, i: number): Node {
  const source = c.src[i]!;
  return c.sources[i] ?? p.broadcastTo(source, [c.size, ...source.shape]);
}

/** All sources with the batch in front. */
export function everySource(c: BatchContext<PrimitiveName>): Node[] {
  return c.src.map((_, i) => whole(c, i));
}

/** The batch of a primitive with one source; `attr` are its attributes for a source with one more axis in front. */
export function again<P extends PrimitiveName>(c: BatchContext<P>, attr: Attrs[P] = c.attr): Node {
  return makeAgain(c.node, [whole(c, 0)], attr);
}

/** Axes of one example as axes of the batch: one further back. */
export const behind = (axes: readonly number[]): number[] => axes.map((axis) => axis + 1);

/** The order of axes that moves one axis of `rank` to another place. */
export function moved(rank: number, from: number, to: number): number[] {
  const axes = Array.from({ length: rank }, (_, i) => i).filter((axis) => axis !== from);
  axes.splice(to, 0, from);
  return axes;
}

/** One axis moved to the front. */
export function toFront(x: Node, axis: number): Node {
  return p.permute(x, moved(x.shape.length, axis, 0));
}

/** Elementwise primitives broadcast at the trailing axes. So batched sources of lower rank get axes of size 1 behind the batch; shared ones fit. */
export function elementwiseBatch<P extends PrimitiveName>(c: BatchContext<P>): Node {
  const rank = c.node.shape.length;
  const sources = c.sources.map((source, i) => {
    if (source === null) return c.src[i]!;
    const [, ...shape] = source.shape;
    return p.reshape(source, [c.size, ...new Array<number>(rank - shape.length).fill(1), ...shape]);
  });
  return makeAgain(c.node, sources, c.attr);
}

/** One source; `result`: the dtype of the result, if it is another. */
function unary<P extends PrimitiveName>(takes: Accepts, kernelOp: UnaryOp | null, work = 1, result?: DType): Facts<P> {
  return {
    infer: {
      shape: (src) => src[0]!.shape,
      dtype: (src, _, op) => {
        const { dtype } = src[0]!;
        checkDType(takes, op, dtype);
        return result ?? dtype;
      },
    },
    role: 'elementwise',
    work,
    kernelOp,
  };
}

/** Two sources of one dtype that broadcast. */
function binary<P extends PrimitiveName>(takes: Accepts, kernelOp: BinaryOp, work = 1, result?: DType): Facts<P> {
  return {
    infer: {
      shape: (src, _, op) => {
        const a = src[0]!.shape;
        const b = src[1]!.shape;
        return a === b || sameShape(a, b) ? a : broadcastShapes(opName(op), a, b);
      },
      dtype: (src, _, op) => {
        const dtype = common(op, takes, src[0]!, src[1]!);
        return result ?? dtype;
      },
    },
    role: 'elementwise',
    work,
    kernelOp,
  };
}

type Common = Extract<CommonPrimitive, keyof UnaryAttrs | keyof BinaryAttrs> | 'where' | 'cast' | 'bitcast';

export const elementwise: Family<Common> = {
  neg: unary('number', 'NEG'),
  not: unary('bits', 'NOT'),
  abs: unary('number', 'ABS'),
  sign: {
    ...unary<'sign'>('number', null, 3),
    value: ({ e }, demand, node) => {
      const x = part(demand);
      const of = (value: number): KNode => e.constant(node.dtype, value);
      const negative = isFloat(node.dtype) || node.dtype.startsWith('int') ? e.where(e.lt(x, of(0)), of(-1), x) : x;
      return e.where(e.lt(of(0), x), of(1), negative);
    },
  },
  sqrt: unary('float', 'SQRT', 3),
  rsqrt: unary('float', 'RSQRT', 4),
  reciprocal: unary('float', 'RECIP', 3),
  floor: unary('float', 'FLOOR'),
  exp: unary('float', 'EXP', 10),
  log: unary('float', 'LOG', 12),
  isNaN: unary('float', 'ISNAN', 2, 'bool'),

  add: binary('number', 'ADD'),
  sub: binary('number', 'SUB'),
  mul: binary('number', 'MUL'),
  div: binary('float', 'DIV', 3),
  idiv: binary('integer', 'IDIV', 6),
  irem: binary('integer', 'IREM', 6),
  maximum: binary('number', 'MAX'),
  minimum: binary('number', 'MIN'),
  and: binary('bits', 'AND'),
  or: binary('bits', 'OR'),
  xor: binary('bits', 'XOR'),
  shl: binary('integer', 'SHL'),
  shr: binary('integer', 'SHR'),
  lt: binary('number', 'LT', 1, 'bool'),
  le: binary('number', 'LE', 1, 'bool'),
  eq: binary('any', 'EQ', 1, 'bool'),

  where: {
    infer: {
      shape: (src) => {
        const op = opName('where');
        const [condition, a, b] = src as [Node, Node, Node];
        return broadcastShapes(op, broadcastShapes(op, condition.shape, a.shape), b.shape);
      },
      dtype: (src) => {
        const [{ dtype }, a, b] = src as [Node, Node, Node];
        if (dtype !== 'bool')
          throw new DTypeError(opName('where'), say`condition is ${dtype}: needs bool; compare or cast first`, [dtype]);
        return common('where', 'any', a, b);
      },
    },
    role: 'elementwise',
    work: 1,
    value: ({ e }, demand) => e.where(part(demand, 0), part(demand, 1), part(demand, 2)),
  },
  cast: {
    infer: { shape: (src) => src[0]!.shape, dtype: (_, attr) => attr.dtype },
    role: 'elementwise',
    work: 1,
    encode: (a, out) => out.push(dtypeInfo[a.dtype].id),
    value: ({ e }, demand, node) => e.cast(part(demand), node.attr.dtype),
  },
  bitcast: {
    infer: {
      shape: (src) => src[0]!.shape,
      dtype: (src, { dtype: to }) => {
        const { dtype: from } = src[0]!;
        if (dtypeInfo[from].bytes !== dtypeInfo[to].bytes || from === 'bool' || to === 'bool') {
          throw new DTypeError(
            opName('bitcast'),
            say`sizes differ: ${from} and ${to}; both must have the same number of bytes`,
            [from, to],
          );
        }
        return to;
      },
    },
    role: 'elementwise',
    work: 0,
    encode: (a, out) => out.push(dtypeInfo[a.dtype].id),
    value: ({ e }, demand, node) => e.bitcast(part(demand), node.attr.dtype),
  },
};

/**
 * The definition of a function of one float.
 *
 * @param work its cost in additions
 * @param functions the arithmetic of its kernel operation, for engines without it
 * @param gradient the gradient of the source x, from the gradient g of the result y; null for zero
 */
export function unaryFunction<P extends keyof UnaryAttrs>(
  op: P,
  kernelOp: UnaryOp,
  work: number,
  functions: FloatFunctions,
  gradient: (g: Node, x: Node, y: Node) => Node | null,
): Definition<P> {
  return define(op, {
    ...unary<P>('float', kernelOp, work),
    gradient: slope(gradient),
    functions,
  });
}

/** The definition of a function of two floats of one dtype that broadcast. */
export function binaryFunction<P extends keyof BinaryAttrs>(
  op: P,
  kernelOp: BinaryOp,
  work: number,
  functions: FloatFunctions,
  gradient: GradientRule<P>,
): Definition<P> {
  return define(op, { ...binary<P>('float', kernelOp, work), gradient, functions });
}

export const times = (x: Node, factor: number): Node => mul(x, like(x, factor));

/** 1 - x^2. */
export const fromOne = (x: Node): Node => sub(like(x, 1), mul(x, x));

/**
 * A value with the derivative of a formula of its own, element by element, instead of that of the steps that computed it.
 *
 * @param rule the gradient of the source x, from the gradient g of the value y
 */
export function withSlope(value: Node, x: Node, rule: (g: Node, x: Node, y: Node) => Node): Node {
  const node = makeNode('stopGradient', [value, x], null);
  elementwiseCustom.add(node);
  customRules.set(node, (grad, self) => [null, rule(grad, self.src[1]!, self)]);
  return node;
}

/** y = exp(-x^2). Its derivative is -2 x y, and 0 where y is, also where x is infinite or twice x would be. */
export function bell(argument: Node): Node {
  const value = recordUnary('exp', neg(mul(argument, argument)));
  return withSlope(value, argument, (g, x, y) => {
    const near = where(lt(recordUnary('abs', x), like(x, 28)), x, like(x, 0));
    return times(mul(g, mul(near, y)), -2);
  });
}

/** `x` is the source, `y` the result, `g` the gradient of the result. */
function slope<P extends PrimitiveName>(rule: (g: Node, x: Node, y: Node) => Node | null): GradientRule<P> {
  return ({ grad, src, node }) => [rule(grad, src[0]!, node)];
}

/** Step functions, tests and integer operations: the gradient is zero. */
const none = (): readonly null[] => [];

/** The larger (or smaller) operand gets the gradient; equal ones get half of it each. NaN wins, so beside it there is no derivative. */
function winner<P extends 'maximum' | 'minimum'>(aWins: (a: Node, b: Node) => Node): GradientRule<P> {
  return ({ grad, src, needs }) => {
    const [a, b] = src as [Node, Node];
    const zero = like(grad, 0);
    // NaN as a factor, so that forward mode has it, too; and only where nothing wins: derivatives of the gradient multiply the factor by 0 elsewhere.
    const known = recordBinary('or', le(a, b), lt(b, a));
    const half = mul(grad, where(known, like(grad, 0.5), like(grad, Number.NaN)));
    const share = (x: Node, y: Node): Node => where(aWins(x, y), grad, where(aWins(y, x), zero, half));
    return [needs[0] ? share(a, b) : null, needs[1] ? share(b, a) : null];
  };
}

export const elementwiseGradients: Gradients<Common> = {
  neg: slope((g) => neg(g)),
  not: none,
  abs: slope((g, x) => mul(g, recordUnary('sign', x))),
  sign: none,
  sqrt: slope((g, _, y) => div(times(g, 0.5), y)),
  rsqrt: slope((g, _, y) => mul(times(g, -0.5), mul(mul(y, y), y))),
  reciprocal: slope((g, _, y) => neg(mul(g, mul(y, y)))),
  floor: none,
  exp: slope((g, _, y) => mul(g, y)),
  log: slope((g, x) => div(g, x)),
  isNaN: none,

  add: ({ grad }) => [grad, grad],
  sub: ({ grad, needs }) => [grad, needs[1] ? neg(grad) : null],
  mul: ({ grad, src, needs }) => [needs[0] ? mul(grad, src[1]!) : null, needs[1] ? mul(grad, src[0]!) : null],
  div: ({ grad, src, node, needs }) => {
    const b = src[1]!;
    // By the divisor -y / b: 1 / b alone may overflow.
    return [needs[0] ? div(grad, b) : null, needs[1] ? neg(mul(grad, div(node, b))) : null];
  },
  idiv: none,
  irem: none,
  maximum: winner((a, b) => lt(b, a)),
  minimum: winner((a, b) => lt(a, b)),
  and: none,
  or: none,
  xor: none,
  shl: none,
  shr: none,
  lt: none,
  le: none,
  eq: none,

  where: ({ grad, src, needs }) => {
    const condition = src[0]!;
    const zero = like(grad, 0);
    return [null, needs[1] ? where(condition, grad, zero) : null, needs[2] ? where(condition, zero, grad) : null];
  },
  cast: ({ grad, src }) => {
    const { dtype } = src[0]!;
    return [isFloat(dtype) ? cast(grad, dtype) : null];
  },
  bitcast: none,
};

export const elementwiseTangents: Tangents<'where' | 'cast'> = {
  where: ({ src, tangents }) => {
    const [condition, a, b] = src as [Node, Node, Node];
    return where(condition, tangents[1] ?? like(a, 0), tangents[2] ?? like(b, 0));
  },
  cast: ({ attr, tangents }) => cast(tangents[0]!, attr.dtype),
};

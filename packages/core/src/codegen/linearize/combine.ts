/**
 * What a reduction computes in, starts with and does to two numbers.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { KNode, ReduceOp } from '../../ir/ir.ts';
import { nodesOf } from '../../ir/traverse.ts';
import { type DType, dtypeInfo, isFloat, neutral } from '../../shape/dtype.ts';

/** The dtype a reduction computes in. */
export function accumulatorDtype(dtype: DType): DType {
  const { kind, bytes } = dtypeInfo[dtype];
  if (bytes >= 4) return dtype;
  return kind === 'float' ? 'float32' : 'int32';
}

/** What a reduction of nothing gives. */
export function identityOf(e: Exprs, op: ReduceOp, dtype: DType): KNode {
  return e.constant(dtype, neutral(op === 'argmax' ? 'max' : op === 'argmin' ? 'min' : op, dtype));
}

/** Two numbers into one. */
export function combined(e: Exprs, op: 'sum' | 'prod' | 'max' | 'min', a: KNode, b: KNode): KNode {
  switch (op) {
    case 'sum':
      return e.add(a, b);
    case 'prod':
      return e.mul(a, b);
    case 'max':
      return e.max(a, b);
    case 'min':
      return e.min(a, b);
    default:
      return op satisfies never;
  }
}

/** True where `b` takes the place of `a`, which lies before it. The first NaN stays. `simt`: devices do not say how theirs compare. */
export function takesPlace(e: Exprs, op: 'argmax' | 'argmin', a: KNode, b: KNode, simt: boolean): KNode {
  const beyond = op === 'argmax' ? e.lt(a, b) : e.lt(b, a);
  if (!isFloat(a.dtype as DType)) return beyond;
  const number = e.eq(a, a);
  if (simt) return e.or(beyond, e.and(e.not(e.eq(b, b)), number));
  return e.and(number, e.not(op === 'argmax' ? e.le(b, a) : e.le(a, b)));
}

/** True for a reduction that elements may enter twice; not of stages, which are filled anew for every part of a loop. */
export function mayEnterTwice(n: KNode): boolean {
  if (n.op !== 'REDUCE' || n.arg.op === 'sum' || n.arg.op === 'prod') return false;
  for (const x of nodesOf([n.src[0]])) if (x.op === 'STAGE') return false;
  return true;
}

// Maxima and minima of vectors of float32 in three parts, one instruction of a CPU each.
//
// MAX keeps NaN and orders zeros (+0 above -0), which takes x86 eight instructions where `maxps` is one. So a long reduction
// carries the greatest number without regard to either, and the greatest bits, signed and unsigned. In the end these tell whether there
// was a NaN (of either sign: 0x7f800001 and up, 0xff800001 and up) and, where the result is zero, a zero of the sign that wins.
// From the second level cache of an AMD EPYC rows are read twice as fast as with MAX.

/** The number, its greatest bits as int32, its greatest bits as uint32. */
export type Extremum = readonly [value: KNode, signed: KNode, unsigned: KNode];

/** Elements below which bringing the parts together costs more than they save. */
const leastElements = 8;

/** True if a reduction of so many elements in so many lanes goes by parts, on an engine that is no GPU. */
export function goesByParts(op: ReduceOp, dtype: DType, elements: number, lanes: number): boolean {
  return (op === 'max' || op === 'min') && dtype === 'float32' && elements >= leastElements && lanes > 1;
}

/** The dtypes of the parts and what they are for nothing at all. */
export function noExtremum(e: Exprs, op: ReduceOp): Extremum {
  const end = op === 'max' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return [e.f32(end), e.i32(-(2 ** 31)), e.constant('uint32', 0)];
}

/** The parts after one more element. */
export function extendExtremum(e: Exprs, op: ReduceOp, before: Extremum, x: KNode): Extremum {
  return [pick(e, op, before[0], x), e.max(before[1], e.bitcast(x, 'int32')), e.max(before[2], e.bitcast(x, 'uint32'))];
}

/** `later` where it is beyond `now`: emitters have an instruction for this shape. */
export function pick(e: Exprs, op: ReduceOp, now: KNode, later: KNode): KNode {
  return e.where(op === 'max' ? e.lt(now, later) : e.lt(later, now), later, now);
}

/** The extremum that the parts stand for, as MAX and MIN would have given it. */
export function wholeExtremum(e: Exprs, op: ReduceOp, [value, signed, unsigned]: Extremum): KNode {
  const { lanes } = value;
  const u = (bits: number): KNode => e.constant('uint32', bits, lanes);
  // A maximum of zero is -0 if no sign was free; a minimum is if one was set.
  const sign = e.and(op === 'max' ? e.bitcast(signed, 'uint32') : unsigned, u(0x80000000));
  const number = e.where(e.eq(value, e.constant('float32', 0, lanes)), e.bitcast(sign, 'float32'), value);
  const nan = e.or(e.lt(e.constant('int32', 0x7f800000, lanes), signed), e.lt(u(0xff800000), unsigned));
  return e.where(nan, e.constant('float32', Number.NaN, lanes), number);
}

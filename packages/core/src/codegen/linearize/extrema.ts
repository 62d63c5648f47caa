/**
 * Maxima and minima of vectors of float32 in three parts, one instruction of a CPU each.
 *
 * MAX keeps NaN and orders zeros (+0 above -0), which takes x86 eight instructions where `maxps` is one. So a long reduction
 * carries the greatest number without regard to either, and the greatest bits, signed and unsigned. In the end these tell whether there
 * was a NaN (of either sign: 0x7f800001 and up, 0xff800001 and up) and, where the result is zero, a zero of the sign that wins.
 * From the second level cache of an AMD EPYC rows are read twice as fast as with MAX.
 */
import type { DType } from '../../shape/dtype.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { KNode, ReduceOp } from '../../ir/ir.ts';

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

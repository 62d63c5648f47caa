/**
 * What a reduction computes in, starts with and does to two numbers.
 */
import { type DType, dtypeInfo, isFloat, neutral } from '../../shape/dtype.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { KNode, ReduceOp } from '../../ir/ir.ts';
import { nodesOf } from '../../ir/traverse.ts';

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

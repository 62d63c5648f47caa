/**
 * The same operation on other sources: what passes that walk over expressions do with most nodes. Everything is simplified again on the way.
 */
import type { DType } from '../shape/dtype.ts';
import { isArithmetic } from './arithmetic.ts';
import type { Exprs } from './expr.ts';
import type { RangeList } from './free-ranges.ts';
import type { BinaryOp, KNode, TernaryOp, UnaryOp } from './ir.ts';
import { highOf } from './node.ts';

/** The node with other sources; REDUCE and STAGE bind the ranges among them. Memory and scalars stay what they are. */
export function remake(e: Exprs, n: KNode, src: readonly KNode[]): KNode {
  const [a, b, c, d] = src as readonly [KNode, KNode, KNode, KNode];
  const dtype = n.dtype as DType;
  switch (n.op) {
    case 'PARAM':
    case 'SCALAR':
    case 'SHARED':
      return n;
    case 'CONST':
      return e.constant(dtype, n.arg.value, n.lanes);
    case 'SPECIAL':
      return e.special(n.arg.kind, n.arg.axis, highOf(n) + 1);
    case 'IOTA':
      return e.iota(n.lanes);
    case 'REDUCE':
      return e.reduce(n.arg.op, a, src.slice(1) as readonly KNode[] as RangeList);
    case 'STAGE':
      return e.stage(n.arg.space, a, src.slice(1) as readonly KNode[] as RangeList);
    case 'LOAD':
      return e.load(a, b, c, d, n.lanes);
    case 'CAST':
      return e.cast(a, dtype);
    case 'BITCAST':
      return e.bitcast(a, dtype);
    case 'VEC':
      return src.length === 1 ? e.splat(a, n.lanes) : e.vec(src);
    case 'LANE':
      return e.lane(a, n.arg.lane);
    default:
      if (!isArithmetic(n.op)) throw new Error(`[kernel] ${n.op} cannot be part of a value`);
      if (src.length === 1) return e.unary(n.op as UnaryOp, a);
      if (src.length === 2) return e.binary(n.op as BinaryOp, a, b);
      return e.ternary(n.op as TernaryOp, a, b, c);
  }
}

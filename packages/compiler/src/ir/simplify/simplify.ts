/**
 * The rules applied while a node is made: one function per arity, tried after constant folding.
 *
 * Integers and bool are simplified fully (integers.ts has the arithmetic). Floats only where the result has the same
 * bits for every input, NaN, infinities and signed zeros included: x * 1, x / 1, -(-x), constants.
 */
import { type DType, isFloat } from '../../shape/dtype.ts';
import type { Factory } from './factory.ts';
import type { KNode } from '../ir.ts';
import type { BinaryOp, TernaryOp, UnaryOp } from '../operations.ts';
import { highOf, lowOf } from '../node.ts';
import { foldBinary, foldUnary } from './fold.ts';
import { addScaled, divideByConstant, equal, isLiteral, lessThan, literalOf, mustSwap, scaleBy } from './integers.ts';

/** A simpler node for a unary operation, or null. */
export function simplifyUnary(e: Factory, op: UnaryOp, x: KNode): KNode | null {
  const dtype = x.dtype as DType;
  if (x.op === 'CONST') {
    const v = foldUnary(op, dtype, x.arg.value);
    if (v !== undefined) return e.constant(op === 'ISNAN' ? 'bool' : dtype, v, x.lanes);
  }
  switch (op) {
    case 'NEG':
      if (x.op === 'NEG') return x.src[0];
      return dtype === 'int32' && x.lanes === 1 ? scaleBy(e, x, -1) : null;
    case 'NOT':
      if (x.op === 'NOT') return x.src[0];
      if (x.op === 'LT' && !isFloat(x.src[0]?.dtype)) return e.le(x.src[1], x.src[0]);
      return null;
    case 'ABS':
      if (!isFloat(dtype) && lowOf(x) >= 0) return x;
      return x.op === 'ABS' || x.op === 'NEG' ? e.unary('ABS', x.src[0], x.op === 'ABS') : null;
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return isFloat(dtype) && x.op !== 'FLOOR' && x.op !== 'CEIL' && x.op !== 'TRUNC' && x.op !== 'ROUND' ? null : x;
    default:
      return null;
  }
}

/** A simpler node for a binary operation, or null. Operands have one dtype and equal lanes. */
export function simplifyBinary(e: Factory, op: BinaryOp, a: KNode, b: KNode): KNode | null {
  const dtype = a.dtype as DType;
  if (a.op === 'CONST' && b.op === 'CONST') {
    const v = foldBinary(op, dtype, a.arg.value, b.arg.value);
    if (v !== undefined) return e.constant(op === 'LT' || op === 'LE' || op === 'EQ' ? 'bool' : dtype, v, a.lanes);
  }
  if (isFloat(dtype))
    return (op === 'MUL' || op === 'DIV') && isLiteral(b, 1) ? a : op === 'MUL' && isLiteral(a, 1) ? b : null;
  if (mustSwap(op, a, b)) return e.binary(op, b, a);
  if (dtype === 'bool') return simplifyBool(e, op, a, b);
  const index = dtype === 'int32' && a.lanes === 1;
  switch (op) {
    case 'ADD':
      if (isLiteral(b, 0)) return a;
      if (index) return addScaled(e, a, b, 1);
      return a.op === 'ADD' && b.op === 'CONST' && a.src[1]?.op === 'CONST'
        ? e.add(a.src[0], e.add(a.src[1], b))
        : null;
    case 'SUB':
      if (isLiteral(b, 0)) return a;
      if (a === b) return e.constant(dtype, 0, a.lanes);
      return index ? addScaled(e, a, b, -1) : null;
    case 'MUL':
      if (isLiteral(b, 1)) return a;
      if (isLiteral(b, 0)) return b;
      if (index && b.op === 'CONST') return scaleBy(e, a, b.arg.value as number);
      if (a.op === 'MUL' && a.src[1]?.op === 'CONST') {
        return b.op === 'CONST' ? e.mul(a.src[0], e.mul(a.src[1], b)) : e.mul(e.mul(a.src[0], b), a.src[1]);
      }
      return null;
    case 'IDIV':
    case 'IREM': {
      const c = literalOf(b);
      if (c === null || c <= 0) return null;
      if (isLiteral(b, 1)) return op === 'IDIV' ? a : e.constant(dtype, 0, a.lanes);
      if (index) return divideByConstant(e, op, a, c as number);
      return lowOf(a) >= 0 && highOf(a) < c ? (op === 'IDIV' ? e.constant(dtype, 0, a.lanes) : a) : null;
    }
    case 'MAX':
      return a === b || lowOf(a) >= highOf(b) ? a : lowOf(b) >= highOf(a) ? b : null;
    case 'MIN':
      return a === b || highOf(a) <= lowOf(b) ? a : highOf(b) <= lowOf(a) ? b : null;
    case 'AND':
      return a === b || isAllOnes(b) ? a : isLiteral(b, 0) ? b : null;
    case 'OR':
      return a === b || isLiteral(b, 0) ? a : isAllOnes(b) ? b : null;
    case 'XOR':
      return a === b ? e.constant(dtype, 0, a.lanes) : isLiteral(b, 0) ? a : null;
    case 'SHL':
      if (isLiteral(b, 0)) return a;
      return index && b.op === 'CONST' && (b.arg.value as number) > 0 && (b.arg.value as number) < 31
        ? scaleBy(e, a, 2 ** (b.arg.value as number))
        : null;
    case 'SHR':
      return isLiteral(b, 0) ? a : null;
    case 'LT':
      return resize(e, lessThan(e, a, b), a.lanes);
    case 'LE': {
      if (b.op === 'CONST' && highOf(b) < 2147483647 && a.lanes === 1 && dtype === 'int32') return e.lt(a, e.add(b, 1));
      if (a.op === 'CONST' && lowOf(a) > -2147483648 && a.lanes === 1 && dtype === 'int32')
        return e.lt(e.add(a, -1), b);
      const inverse = lessThan(e, b, a);
      return inverse !== null && inverse.op === 'CONST' ? e.bool(inverse.arg.value === 0, a.lanes) : null;
    }
    case 'EQ':
      return resize(e, equal(e, a, b), a.lanes);
    default:
      return null;
  }
}

function resize(e: Factory, n: KNode | null, lanes: number): KNode | null {
  return n === null || n.lanes === lanes ? n : e.splat(n, lanes);
}

function isAllOnes(n: KNode): boolean {
  return n.op === 'CONST' && (n.arg.value === -1 || n.arg.value === -1n);
}

function simplifyBool(e: Factory, op: BinaryOp, a: KNode, b: KNode): KNode | null {
  switch (op) {
    case 'AND':
    case 'MIN':
      if (a === b || isLiteral(b, 1)) return a;
      if (isLiteral(b, 0)) return b;
      return isNegation(a, b) ? e.bool(false, a.lanes) : null;
    case 'OR':
    case 'MAX':
      if (a === b || isLiteral(b, 0)) return a;
      if (isLiteral(b, 1)) return b;
      return isNegation(a, b) ? e.bool(true, a.lanes) : null;
    case 'XOR':
      return a === b ? e.bool(false, a.lanes) : isLiteral(b, 0) ? a : isLiteral(b, 1) ? e.not(a) : null;
    case 'EQ':
      return a === b ? e.bool(true, a.lanes) : isLiteral(b, 1) ? a : isLiteral(b, 0) ? e.not(a) : null;
    default:
      return null;
  }
}

function isNegation(a: KNode, b: KNode): boolean {
  if ((a.op === 'NOT' && a.src[0] === b) || (b.op === 'NOT' && b.src[0] === a)) return true;
  if (!((a.op === 'LT' && b.op === 'LE') || (a.op === 'LE' && b.op === 'LT'))) return false;
  // NaN is neither less nor greater.
  return !isFloat(a.src[0]?.dtype) && a.src[0] === b.src[1] && a.src[1] === b.src[0];
}

/** A simpler node for a ternary operation, or null. */
export function simplifyTernary(e: Factory, op: TernaryOp, a: KNode, b: KNode, c: KNode): KNode | null {
  if (op !== 'WHERE') return null;
  if (b === c) return b;
  if (a.op === 'CONST') return a.arg.value === 0 ? c : b;
  if (a.op === 'NOT') return e.where(a.src[0], c, b);
  if (b.dtype === 'bool') {
    if (isLiteral(b, 1) && isLiteral(c, 0)) return a;
    if (isLiteral(b, 0) && isLiteral(c, 1)) return e.not(a);
    if (isLiteral(c, 0)) return e.and(a, b);
    if (isLiteral(b, 1)) return e.or(a, c);
  }
  if (b.op === 'WHERE' && b.src[0] === a) return e.where(a, b.src[1], c);
  return c.op === 'WHERE' && c.src[0] === a ? e.where(a, b, c.src[2]) : null;
}

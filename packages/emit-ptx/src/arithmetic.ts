/**
 * Arithmetic on one lane. Every float operation says `.rn`, which keeps the assembler from contracting; nothing flushes denormal numbers.
 */
import { type KNode, type KNodeOf, lowOf } from '@polygrad/core/kernel';
import {
  bitsType,
  computeType,
  float32Text,
  float64Text,
  isFloat,
  isHalf,
  isSmall,
  isUnsigned,
  narrow,
  registerOf,
  widen,
  wrapped,
} from './dtypes.ts';
import type { DType } from './kernel.ts';
import type { Writer } from './writer.ts';

type Rounding = 'FLOOR' | 'CEIL' | 'TRUNC' | 'ROUND';
const roundings: Readonly<Record<Rounding, string>> = { FLOOR: 'rmi', CEIL: 'rpi', TRUNC: 'rzi', ROUND: 'rni' };

/** One of two by a condition. */
export function choose(w: Writer, dtype: DType, condition: string, yes: string, no: string): string {
  if (yes === no) return yes;
  if (dtype !== 'bool') {
    const kind = registerOf[dtype];
    return w.op(kind, `selp.${bitsType[kind]}`, yes, no, condition);
  }
  const taken = w.op('p', 'and.pred', condition, yes);
  const other = w.op('p', 'and.pred', w.op('p', 'not.pred', condition), no);
  return w.op('p', 'or.pred', taken, other);
}

/** The operation of a node on one lane of its operands. */
export function operation(w: Writer, n: KNode, args: readonly string[]): string {
  const [a = '', b = '', c = ''] = args;
  if (n.op === 'WHERE') return choose(w, n.dtype, a, b, c);
  // Comparisons give bool: what is computed in is the dtype of the operands.
  const dtype = n.src[0]?.dtype as DType;
  if (dtype === 'bool') return logical(w, n, a, b);
  if (isHalf(dtype)) return inFloat32(w, n, dtype, args);
  return isFloat(dtype) ? float(w, n, dtype as 'float32' | 'float64', a, b, c) : integer(w, n, dtype, a, b, c);
}

function logical(w: Writer, n: KNode, a: string, b: string): string {
  switch (n.op) {
    case 'AND':
    case 'MUL':
    case 'MIN':
      return w.op('p', 'and.pred', a, b);
    case 'OR':
    case 'ADD':
    case 'MAX':
      return w.op('p', 'or.pred', a, b);
    case 'XOR':
    case 'SUB':
      return w.op('p', 'xor.pred', a, b);
    case 'NOT':
      return w.op('p', 'not.pred', a);
    case 'EQ':
      return w.op('p', 'not.pred', w.op('p', 'xor.pred', a, b));
    case 'LT':
      return w.op('p', 'and.pred', w.op('p', 'not.pred', a), b);
    case 'LE':
      return w.op('p', 'or.pred', w.op('p', 'not.pred', a), b);
    case 'NEG':
      return a;
    default:
      return unknown(w, n, 'bool');
  }
}

/** On 16-bit floats: in float32, rounded once. Signs are bits. */
function inFloat32(w: Writer, n: KNode, dtype: 'float16' | 'bfloat16', args: readonly string[]): string {
  const [first = ''] = args;
  if (n.op === 'NEG') return w.op('h', 'xor.b16', first, '0x8000');
  if (n.op === 'ABS') return w.op('h', 'and.b16', first, '0x7fff');
  const [a = '', b = '', c = ''] = args.map((x) => widen(w, dtype, x));
  const result = float(w, n, 'float32', a, b, c);
  return n.dtype === 'bool' ? result : narrow(w, dtype, result);
}

function float(w: Writer, n: KNode, dtype: 'float32' | 'float64', a: string, b: string, c: string): string {
  const kind = registerOf[dtype];
  const type = computeType[dtype];
  const rounded = (name: string, ...x: readonly string[]): string => w.op(kind, `${name}.rn.${type}`, ...x);
  switch (n.op) {
    case 'ADD':
      return rounded('add', a, b);
    case 'SUB':
      return rounded('sub', a, b);
    case 'MUL':
      return rounded('mul', a, b);
    case 'DIV': {
      const inverse = exactInverse(n.src[1], dtype);
      return inverse === null ? rounded('div', a, b) : rounded('mul', a, inverse);
    }
    case 'SQRT':
      return rounded('sqrt', a);
    case 'RECIP':
      return rounded('rcp', a);
    case 'FMA':
    case 'MULADD':
      return rounded('fma', a, b, c);
    case 'NEG':
      return w.op(kind, `neg.${type}`, a);
    case 'ABS':
      return w.op(kind, `abs.${type}`, a);
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return w.op(kind, `cvt.${roundings[n.op]}.${type}.${type}`, inRegister(w, dtype, a));
    case 'ROUNDED':
      return a;
    case 'ISNAN':
      return w.op('p', `setp.nan.${type}`, a, a);
    case 'LT':
      return w.op('p', `setp.lt.${type}`, a, b);
    case 'LE':
      return w.op('p', `setp.le.${type}`, a, b);
    case 'EQ':
      return w.op('p', `setp.eq.${type}`, a, b);
    case 'MAX':
    case 'MIN':
      return extremum(w, n.op === 'MAX' ? 'max' : 'min', dtype, a, b);
    default:
      return unknown(w, n, dtype);
  }
}

/** The inverse of a literal power of two, a product by which is the same number as the quotient; null for other divisors. */
function exactInverse(divisor: KNode | undefined, dtype: 'float32' | 'float64'): string | null {
  if (divisor?.op !== 'CONST' || divisor.dtype !== dtype) return null;
  const inverse = 1 / Number(divisor.arg.value);
  const size = Math.abs(inverse);
  if (size < 2 ** -100 || size > 2 ** 100 || !Number.isInteger(Math.log2(size)) || 2 ** Math.log2(size) !== size)
    return null;
  return dtype === 'float32' ? float32Text(inverse) : float64Text(inverse);
}

function inRegister(w: Writer, dtype: 'float32' | 'float64', x: string): string {
  return x.startsWith('%') ? x : w.op(registerOf[dtype], `mov.${computeType[dtype]}`, x);
}

/** NaN on either side is the result, -0 is less than 0. Without `.NaN` the instruction gives the number. */
export function extremum(w: Writer, name: 'max' | 'min', dtype: 'float32' | 'float64', a: string, b: string): string {
  const kind = registerOf[dtype];
  const type = computeType[dtype];
  if (dtype === 'float32' && w.capability >= 80) return w.op('f', `${name}.NaN.f32`, a, b);
  const plain = w.op(kind, `${name}.${type}`, a, b);
  const unordered = w.op('p', `setp.nan.${type}`, a, b);
  const nan = dtype === 'float32' ? float32Text(Number.NaN) : float64Text(Number.NaN);
  return w.op(kind, `selp.${type}`, nan, plain, unordered);
}

function integer(w: Writer, n: KNode, dtype: DType, a: string, b: string, c: string): string {
  const kind = registerOf[dtype];
  const type = computeType[dtype as 'int32'];
  const size = kind === 'rd' ? 64 : 32;
  const back = (x: string): string => wrapped(w, dtype, x);
  switch (n.op) {
    case 'ADD':
    case 'SUB':
      return back(w.op(kind, `${n.op.toLowerCase()}.s${size}`, a, b));
    case 'MUL':
      return back(w.op(kind, `mul.lo.${type}`, a, b));
    case 'FMA':
    case 'MULADD':
      return back(w.op(kind, `mad.lo.${type}`, a, b, c));
    case 'NEG':
      return back(w.op(kind, `neg.s${size}`, a));
    case 'ABS':
      return isUnsigned(dtype) ? a : back(w.op(kind, `abs.s${size}`, a));
    case 'NOT':
      return isUnsigned(dtype) ? back(w.op(kind, `not.b${size}`, a)) : w.op(kind, `not.b${size}`, a);
    case 'AND':
    case 'OR':
    case 'XOR':
      return w.op(kind, `${n.op.toLowerCase()}.b${size}`, a, b);
    case 'MAX':
    case 'MIN':
      return w.op(kind, `${n.op.toLowerCase()}.${type}`, a, b);
    case 'LT':
    case 'LE':
    case 'EQ':
      return w.op('p', `setp.${n.op.toLowerCase()}.${type}`, a, b);
    case 'SHL':
      return back(w.op(kind, `shl.b${size}`, a, shiftCount(w, n, kind, b)));
    case 'SHR':
      return w.op(kind, `shr.${type}`, a, shiftCount(w, n, kind, b));
    case 'MULHI':
      return w.op(kind, `mul.hi.${type}`, a, b);
    case 'IDIV':
    case 'IREM':
      return back(division(w, n, dtype, a, b));
    case 'ISNAN':
      return w.once('bool false', () => w.op('p', 'mov.pred', '0'));
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return a;
    default:
      return unknown(w, n, dtype);
  }
}

/** Counts are taken modulo the width, which the instruction does not do; a register of 32 bits. */
function shiftCount(w: Writer, n: KNode, kind: 'r' | 'rd' | string, b: string): string {
  const most = kind === 'rd' ? 63 : 31;
  const count = n.src[1];
  if (count?.op === 'CONST') return `${Number(BigInt(count.arg.value) & BigInt(most))}`;
  const low = kind === 'rd' ? w.op('r', 'cvt.u32.u64', b) : b;
  return w.op('r', 'and.b32', low, `${most}`);
}

/** Quotient or remainder of integers; by zero it is 0, and the quotient by -1 wraps. */
function division(w: Writer, n: KNode, dtype: DType, a: string, b: string): string {
  const kind = registerOf[dtype];
  const type = computeType[dtype as 'int32'];
  const name = n.op === 'IDIV' ? 'div' : 'rem';
  const [dividend, divisor] = n.src as readonly [KNode, KNode];
  const fixed = divisor.op === 'CONST' ? BigInt(divisor.arg.value) : null;
  if (fixed === 0n) return w.op(kind, `mov.${bitsType[kind]}`, '0');
  const isPositive = fixed === null ? lowOf(divisor) > 0 : fixed > 0n;
  if (isPositive && lowOf(dividend) >= 0 && kind === 'r') {
    if (fixed === null || (fixed & (fixed - 1n)) !== 0n) return w.op('r', `${name}.u32`, a, b);
    return name === 'div'
      ? w.op('r', 'shr.u32', a, `${Math.log2(Number(fixed))}`)
      : w.op('r', 'and.b32', a, `${fixed - 1n}`);
  }
  if (isPositive || (fixed !== null && fixed !== -1n)) return w.op(kind, `${name}.${type}`, a, b);
  const byZero = w.op('p', `setp.eq.${type}`, b, '0');
  if (isUnsigned(dtype) || isSmall(dtype)) {
    const safe = w.op(kind, `selp.${bitsType[kind]}`, '1', b, byZero);
    return w.op(kind, `selp.${bitsType[kind]}`, '0', w.op(kind, `${name}.${type}`, a, safe), byZero);
  }
  const byMinus = w.op('p', `setp.eq.${type}`, b, '-1');
  const either = w.op('p', 'or.pred', byZero, byMinus);
  const safe = w.op(kind, `selp.${bitsType[kind]}`, '1', b, either);
  const plain = w.op(kind, `${name}.${type}`, a, safe);
  if (name === 'rem') return w.op(kind, `selp.${bitsType[kind]}`, '0', plain, either);
  const negated = w.op(kind, `selp.${bitsType[kind]}`, w.op(kind, `neg.${type}`, a), plain, byMinus);
  return w.op(kind, `selp.${bitsType[kind]}`, '0', negated, byZero);
}

function unknown(w: Writer, n: KNode, dtype: DType): never {
  return w.refuse(`${n.op} on ${dtype} is not emitted: leave it out of caps.nativeOps, so that it is decomposed`);
}

/** The combination an ATOMIC or SUBGROUP makes of two values. */
export function combine(
  w: Writer,
  op: KNodeOf<'SUBGROUP'>['arg']['op'] | KNodeOf<'ATOMIC'>['arg']['op'],
  dtype: DType,
  a: string,
  b: string,
): string {
  const kind = registerOf[dtype];
  const type = computeType[dtype as 'int32'];
  const floating = isFloat(dtype);
  switch (op) {
    case 'sum':
    case 'add':
      return w.op(kind, `add.${floating ? 'rn.' : ''}${type}`, a, b);
    case 'prod':
      return w.op(kind, `mul.${floating ? 'rn' : 'lo'}.${type}`, a, b);
    case 'max':
    case 'min':
      return floating ? extremum(w, op, dtype as 'float32', a, b) : w.op(kind, `${op}.${type}`, a, b);
    case 'or':
      return w.op(kind, `or.b${kind === 'rd' ? 64 : 32}`, a, b);
    default:
      return op satisfies never;
  }
}

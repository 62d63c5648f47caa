/**
 * Arithmetic in OpenCL C.
 *
 * Overflow of signed scalars is undefined in C, so sums whose bounds are not known are computed unsigned. Small integers are
 * computed in 32 bits and cut. Division by zero would stop the process on a CPU device, so divisors are made safe first.
 */
import { highOf, type KNode, lowOf } from '@polygrad/core/kernel';
import type { Context } from '../dialect.ts';
import type { DType } from '../kernel.ts';
import { call, expression, literal, operand, type Part } from '../parts.ts';
import { bytesOf, integerOf, isFloat, isSmall, isUnsigned, openClConstant, typeName } from './types.ts';

/** Functions of OpenCL C by operation, for programs of engines that call them native. */
const functions: Readonly<Partial<Record<KNode['op'], string>>> = {
  EXP: 'exp',
  EXP2: 'exp2',
  EXPM1: 'expm1',
  LOG: 'log',
  LOG2: 'log2',
  LOG10: 'log10',
  LOG1P: 'log1p',
  SIN: 'sin',
  COS: 'cos',
  TAN: 'tan',
  ASIN: 'asin',
  ACOS: 'acos',
  ATAN: 'atan',
  SINH: 'sinh',
  COSH: 'cosh',
  TANH: 'tanh',
  ERF: 'erf',
  POW: 'pow',
  ATAN2: 'atan2',
  FREM: 'fmod',
  SQRT: 'sqrt',
  FLOOR: 'floor',
  CEIL: 'ceil',
  TRUNC: 'trunc',
  ROUND: 'rint',
  FMA: 'fma',
};

/** An arithmetic operation on one part. */
export function openClOperation(c: Context, n: KNode, args: readonly Part[], fastFma: boolean): Part {
  const [a, b, d] = args as [Part, Part, Part];
  const { dtype, lanes } = args[args.length - 1]!;
  const title = functions[n.op];
  if (title !== undefined && isFloat(dtype))
    return call(`${title}(${args.map((x) => x.text).join(', ')})`, dtype, lanes);
  switch (n.op) {
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return a;
    case 'NEG':
      if (dtype === 'bool') return a;
      if (isFloat(dtype)) return expression(`-${operand(a)}`, dtype, lanes);
      return wrapping(n, openClConstant(dtype, dtype.endsWith('64') ? 0n : 0, lanes), '-', a);
    case 'NOT':
      if (dtype === 'bool' && lanes === 1) return expression(`!${operand(a)}`, dtype);
      return narrow(expression(`~${operand(a)}`, dtype, lanes));
    case 'ABS':
      return absolute(a);
    case 'RECIP':
      return expression(`${openClConstant(dtype, 1, 1).text} / ${operand(a)}`, dtype, lanes);
    case 'RSQRT':
      return expression(`${openClConstant(dtype, 1, 1).text} / sqrt(${a.text})`, dtype, lanes);
    case 'ISNAN':
      return isFloat(dtype) ? nanTest(a) : openClConstant('bool', 0, lanes);
    case 'ADD':
      return dtype === 'bool' ? infix(a, '|', b) : arithmetic(n, a, '+', b);
    case 'SUB':
      return dtype === 'bool' ? infix(a, '^', b) : arithmetic(n, a, '-', b);
    case 'MUL':
      return dtype === 'bool' ? infix(a, '&', b) : arithmetic(n, a, '*', b);
    case 'DIV':
      return infix(a, '/', b);
    case 'IDIV':
    case 'IREM':
      return divide(c, n.op, a, b, n.src[1]);
    case 'MAX':
    case 'MIN':
      return extremum(c, n.op, a, b, n.src);
    case 'AND':
      return narrow(infix(a, '&', b));
    case 'OR':
      return narrow(infix(a, '|', b));
    case 'XOR':
      return narrow(infix(a, '^', b));
    case 'SHL':
    case 'SHR':
      return shift(n.op, a, b);
    case 'LT':
    case 'LE':
    case 'EQ':
      return comparison(n.op, a, b);
    case 'WHERE':
      return expression(
        `${operand(lanes === 1 ? a : maskFor(a, dtype))} ? ${operand(b)} : ${operand(d)}`,
        dtype,
        lanes,
      );
    case 'MULHI':
      return call(`mul_hi(${a.text}, ${b.text})`, dtype, lanes);
    case 'MULADD':
      if (isFloat(dtype) && fastFma) return call(`fma(${a.text}, ${b.text}, ${d.text})`, dtype, lanes);
      if (isFloat(dtype)) return expression(`${operand(a)} * ${operand(b)} + ${operand(d)}`, dtype, lanes);
      return wrapping(null, wrapping(null, a, '*', b), '+', d);
    default:
      return c.refuse(`${n.op} on ${dtype} is not printed: leave it out of caps.nativeOps, so that it is decomposed`);
  }
}

export function infix(a: Part, sign: string, b: Part): Part {
  return expression(`${operand(a)} ${sign} ${operand(b)}`, a.dtype, a.lanes);
}

/** Small integer scalars are promoted to int by every operator: back to their own type. */
function narrow(p: Part): Part {
  return p.lanes === 1 && isSmall(p.dtype) ? call(`(${typeName(p.dtype, 1)})(${p.text})`, p.dtype) : p;
}

function arithmetic(n: KNode, a: Part, sign: '+' | '-' | '*', b: Part): Part {
  return isFloat(a.dtype) ? infix(a, sign, b) : wrapping(n, a, sign, b);
}

/** A sum, difference or product of integers that wraps. */
function wrapping(n: KNode | null, a: Part, sign: '+' | '-' | '*', b: Part): Part {
  const { dtype, lanes } = a;
  const known = n !== null && lowOf(n) > Number.NEGATIVE_INFINITY && highOf(n) < Number.POSITIVE_INFINITY;
  if (!isSmall(dtype) && (isUnsigned(dtype) || (known && lanes === 1 && dtype === 'int32'))) return infix(a, sign, b);
  const wide = isSmall(dtype) ? 'uint' : integerOf(dtype, 1, true);
  if (lanes === 1) return call(`(${typeName(dtype, 1)})((${wide})${operand(a)} ${sign} (${wide})${operand(b)})`, dtype);
  if (isSmall(dtype)) {
    const to = `convert_uint${lanes}`;
    return call(`convert_${typeName(dtype, lanes)}(${to}(${a.text}) ${sign} ${to}(${b.text}))`, dtype, lanes);
  }
  const [as, back] = [`as_${wide}${lanes}`, `as_${typeName(dtype, lanes)}`];
  return call(`${back}(${as}(${a.text}) ${sign} ${as}(${b.text}))`, dtype, lanes);
}

function absolute(a: Part): Part {
  const { dtype, lanes } = a;
  if (dtype === 'bool' || isUnsigned(dtype)) return a;
  if (isFloat(dtype)) return call(`fabs(${a.text})`, dtype, lanes);
  // abs gives the unsigned type.
  return call(
    lanes === 1 ? `(${typeName(dtype, 1)})abs(${a.text})` : `as_${typeName(dtype, lanes)}(abs(${a.text}))`,
    dtype,
    lanes,
  );
}

const sizeMask = {
  2: ['(short)0x7fff', '(short)0x7c00'],
  4: ['0x7fffffff', '0x7f800000'],
  8: ['0x7fffffffffffffffL', '0x7ff0000000000000L'],
} as const;

/** NaN by bits. */
export function nanTest(x: Part): Part {
  const { dtype, lanes } = x;
  const [size, infinity] = sizeMask[bytesOf(dtype) as 2 | 4 | 8];
  const bits = `as_${integerOf(dtype, lanes)}(${x.text})`;
  return mask(expression(`(${bits} & ${size}) > ${infinity}`, 'bool', lanes), dtype);
}

/** The result of comparing vectors of `dtype` as a mask of ints. */
export function mask(p: Part, dtype: DType): Part {
  if (p.lanes === 1 || dtype === 'bool' || bytesOf(dtype) === 4) return p;
  return call(`convert_int${p.lanes}(${p.text})`, 'bool', p.lanes);
}

/** A mask of ints for choosing among vectors of `dtype`. */
export function maskFor(p: Part, dtype: DType): Part {
  if (dtype === 'bool' || bytesOf(dtype) === 4) return p;
  return call(`convert_${integerOf(dtype, p.lanes)}(${p.text})`, 'bool', p.lanes);
}

function comparison(op: 'LT' | 'LE' | 'EQ', a: Part, b: Part): Part {
  const { dtype, lanes } = a;
  const sign = { LT: '<', LE: '<=', EQ: '==' }[op];
  if (dtype !== 'bool' || lanes === 1 || op === 'EQ')
    return mask(expression(`${operand(a)} ${sign} ${operand(b)}`, 'bool', lanes), dtype);
  // Masks hold -1 for true.
  return expression(`${operand(b)} ${sign} ${operand(a)}`, 'bool', lanes);
}

/** Counts are taken modulo 32, of 64-bit integers modulo 64. */
function shift(op: 'SHL' | 'SHR', a: Part, b: Part): Part {
  const { dtype, lanes } = a;
  const sign = op === 'SHL' ? '<<' : '>>';
  // Small integers: in 32 bits, then cut.
  const wide = isSmall(dtype);
  const type = wide ? (isUnsigned(dtype) ? 'uint' : 'int') : typeName(dtype, 1);
  const by = dtype.endsWith('64') ? (isUnsigned(dtype) ? '63UL' : '63L') : '31';
  if (lanes === 1) {
    const text = `${wide ? `(${type})` : ''}${operand(a)} ${sign} (${operand(b)} & ${by})`;
    return wide ? call(`(${typeName(dtype, 1)})(${text})`, dtype) : expression(text, dtype);
  }
  if (!wide) return expression(`${operand(a)} ${sign} (${operand(b)} & ${by})`, dtype, lanes);
  const to = `convert_${type}${lanes}`;
  return call(`convert_${typeName(dtype, lanes)}(${to}(${a.text}) ${sign} (${to}(${b.text}) & 31))`, dtype, lanes);
}

function divide(c: Context, op: 'IDIV' | 'IREM', a: Part, b: Part, divisor: KNode): Part {
  const { dtype, lanes } = a;
  const sign = op === 'IDIV' ? '/' : '%';
  const fixed = divisor.op === 'CONST' ? Number(divisor.arg.value) : null;
  if (fixed === 0) return openClConstant(dtype, dtype.endsWith('64') ? 0n : 0, lanes);
  const safe = fixed !== null ? fixed !== -1 : lowOf(divisor) > 0;
  if (safe) return narrow(infix(a, sign, b));
  const type = typeName(dtype, lanes);
  const title = `${op === 'IDIV' ? 'quotient' : 'remainder'}_${type}`;
  const signed = !isUnsigned(dtype);
  const zero = openClConstant(dtype, dtype.endsWith('64') ? 0n : 0, lanes).text;
  const minus = openClConstant(dtype, dtype.endsWith('64') ? -1n : -1, lanes).text;
  const one = openClConstant(dtype, dtype.endsWith('64') ? 1n : 1, lanes).text;
  const test = integerOf(dtype, lanes);
  const bool = lanes === 1 ? 'bool' : test;
  const negated = wrapping(null, literal(zero, dtype, lanes), '-', literal('a', dtype, lanes)).text;
  const special = signed ? `by_zero | by_minus` : 'by_zero';
  c.helper(title, () =>
    [
      `${type} ${title}(${type} a, ${type} b) {`,
      `  const ${bool} by_zero = b == ${zero};`,
      ...(signed ? [`  const ${bool} by_minus = b == ${minus};`] : []),
      `  const ${type} plain = a ${sign} ((${special}) ? ${one} : b);`,
      signed && op === 'IDIV'
        ? `  return by_zero ? ${zero} : by_minus ? ${negated} : plain;`
        : `  return (${special}) ? ${zero} : plain;`,
      '}',
    ].join('\n'),
  );
  return call(`${title}(${a.text}, ${b.text})`, dtype, lanes);
}

/** MAX and MIN: NaN on either side is the result, -0 is less than 0. */
function extremum(c: Context, op: 'MAX' | 'MIN', a: Part, b: Part, src: readonly KNode[]): Part {
  const { dtype, lanes } = a;
  if (dtype === 'bool') return infix(a, op === 'MAX' ? '|' : '&', b);
  if (!isFloat(dtype)) return call(`${op.toLowerCase()}(${a.text}, ${b.text})`, dtype, lanes);
  const limited = constantLimit(c, op, a, b, src);
  if (limited !== null) return limited;
  const type = typeName(dtype, lanes);
  const title = `${op.toLowerCase()}_${type}`;
  const [as, back] = [`as_${integerOf(dtype, lanes)}`, `as_${type}`];
  const [beats, bits] = op === 'MAX' ? ['<', '&'] : ['>', '|'];
  const [size, infinity] = sizeMask[bytesOf(dtype) as 2 | 4 | 8];
  c.helper(title, () =>
    [
      `${type} ${title}(${type} a, ${type} b) {`,
      `  const ${type} same = ${back}(${narrowBits(`${as}(a) ${bits} ${as}(b)`, dtype, lanes)});`,
      `  const ${type} other = ((a ${beats} b) | ((${as}(b) & ${size}) > ${infinity})) ? b : a;`,
      `  return a == b ? same : other;`,
      '}',
    ].join('\n'),
  );
  return call(`${title}(${a.text}, ${b.text})`, dtype, lanes);
}

/** short & short is an int. */
function narrowBits(text: string, dtype: DType, lanes: number): string {
  return dtype === 'float16' && lanes === 1 ? `(short)(${text})` : text;
}

/** Against a literal, which is no NaN: one choice, whose second side keeps a NaN. */
function constantLimit(c: Context, op: 'MAX' | 'MIN', a: Part, b: Part, src: readonly KNode[]): Part | null {
  const at = src[1]?.op === 'CONST' ? 1 : 0;
  const limit = src[at];
  if (limit?.op !== 'CONST') return null;
  const value = Number(limit.arg.value);
  if (Number.isNaN(value) || Object.is(value, -0)) return null;
  const [given, l] = at === 1 ? [a, b] : [b, a];
  const x = c.stable(given);
  const text = `${x.text} ${op === 'MAX' ? '<' : '>'} ${l.text} ? ${l.text} : ${x.text}`;
  // max(-0, 0) is 0: adding it makes it so.
  return expression(op === 'MAX' && Object.is(value, 0) ? `(${text}) + ${l.text}` : text, x.dtype, x.lanes);
}

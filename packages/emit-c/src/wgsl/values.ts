/**
 * Arithmetic in WGSL.
 *
 * WGSL lets compilers assume that there are no NaN and no infinities, and they do: `x != x` is folded to false, `!(a < b)` to
 * `a >= b`, `a != b` is false, `max(a, 0)` and `a * 0` are 0 for NaN, and `a / 0` is 0. So NaN is found by its bits wherever the contract
 * speaks of it, and comparisons with an infinity are tests of bits. Negated comparisons are printed as such, and literal zeros beside products and
 * quotients are read from memory.
 */
import type { KNode } from '@polygrad/core/kernel';
import type { DType } from '../kernel.ts';
import type { Context } from '../dialect.ts';
import { call, expression, literal, operand, type Part } from '../parts.ts';
import { float32Bits, suffix, typeName } from './types.ts';

export const isFloat = (dtype: DType): boolean => dtype === 'float32' || dtype === 'float16';

/** Sources: a negated comparison of floats is printed from the operands of the comparison. */
export function wgslOperands(n: KNode): readonly KNode[] {
  return negatedComparison(n)?.src ?? n.src;
}

/** The comparison of floats a NOT negates, or null. */
function negatedComparison(n: KNode): KNode | null {
  const [x] = n.src;
  if (n.op !== 'NOT' || x === undefined) return null;
  const compares = x.op === 'LT' || x.op === 'LE' || x.op === 'EQ';
  return compares && isFloat(x.src[0].dtype as DType) ? x : null;
}

/** A u32 literal of any number of lanes. */
export const u32 = (text: string, lanes: number): string => (lanes === 1 ? text : `vec${lanes}<u32>(${text})`);

/** A test for NaN by bits, or null where the part is none for certain. */
export function nanTest(c: Context, x: Part): Part | null {
  if (!isFloat(x.dtype) || x.constant) return null;
  const name = c.helper(
    `is_nan_${suffix(x.dtype, x.lanes)}`,
    () =>
      `fn is_nan_${suffix(x.dtype, x.lanes)}(x: ${typeName(x.dtype, x.lanes)}) -> ${typeName('bool', x.lanes)} {\n` +
      `  return (${bitsOf('x', x.dtype, x.lanes)} & ${u32('0x7fffffffu', x.lanes)}) > ${u32('0x7f800000u', x.lanes)};\n}`,
  );
  return call(`${name}(${x.text})`, 'bool', x.lanes);
}

/** The bits of a float as u32, float16 by way of float32. */
export function bitsOf(text: string, dtype: DType, lanes: number): string {
  const wide = dtype === 'float16' ? `${typeName('float32', lanes)}(${text})` : text;
  return `bitcast<${typeName('uint32', lanes)}>(${wide})`;
}

/** An arithmetic operation on one part. */
export function wgslOperation(c: Context, n: KNode, given: readonly Part[], muladd: 'fma' | 'plain'): Part {
  // What is computed from literals alone would be computed by the compiler, which refuses overflow.
  const args = given.every((a) => a.constant) && given.length > 0 ? [c.runtime(given[0]!), ...given.slice(1)] : given;
  const [a, b, d] = args as [Part, Part, Part];
  const last = args[args.length - 1]!;
  const { dtype, lanes } = last;
  const compare = negatedComparison(n);
  if (compare !== null) return notCompare(c, compare, a, b);
  switch (n.op) {
    case 'NEG':
      if (dtype === 'bool') return a;
      return expression(dtype === 'uint32' ? `0u - ${operand(a)}` : `-${operand(a)}`, dtype, lanes);
    case 'NOT':
      return expression(`${dtype === 'bool' ? '!' : '~'}${operand(a)}`, dtype, lanes);
    case 'ABS':
      return dtype === 'uint32' || dtype === 'bool' ? a : call(`abs(${a.text})`, dtype, lanes);
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return isFloat(dtype) ? call(`${n.op.toLowerCase()}(${a.text})`, dtype, lanes) : a;
    case 'SQRT':
      return call(`sqrt(${a.text})`, dtype, lanes);
    case 'RECIP':
      return expression(`1${dtype === 'float16' ? 'h' : 'f'} / ${operand(a)}`, dtype, lanes);
    case 'ROUNDED':
      return rounded(c, a);
    case 'ISNAN':
      return nanTest(c, a) ?? literal(lanes === 1 ? 'false' : `vec${lanes}<bool>(false)`, 'bool', lanes);
    case 'ADD':
    case 'SUB':
      return sum(n.op, a, b);
    case 'MUL':
    case 'DIV':
      return sum(n.op, unknownZero(c, a, n.src[0]), unknownZero(c, b, n.src[1]));
    case 'IDIV':
    case 'IREM':
      return divide(c, n.op, a, b, n.src[1]);
    case 'MAX':
    case 'MIN':
      return extremum(c, n.op, a, b);
    case 'AND':
      return infix(a, '&', b);
    case 'OR':
      return infix(a, '|', b);
    case 'XOR':
      return infix(a, dtype === 'bool' ? '!=' : '^', b);
    case 'SHL':
      return infix(a, '<<', shiftCount(b));
    case 'SHR':
      return infix(a, '>>', shiftCount(b));
    case 'LT':
    case 'LE':
    case 'EQ':
      return comparison(c, n.op, n, a, b);
    case 'WHERE':
      return call(`select(${d.text}, ${b.text}, ${a.text})`, dtype, lanes);
    case 'MULADD': {
      const [x, y] = [unknownZero(c, a, n.src[0]), unknownZero(c, b, n.src[1])];
      if (isFloat(dtype) && muladd === 'fma') return call(`fma(${x.text}, ${y.text}, ${d.text})`, dtype, lanes);
      return expression(`${operand(x)} * ${operand(y)} + ${operand(d)}`, dtype, lanes);
    }
    case 'FMA':
      return c.refuse('FMA rounds once, and no function of WGSL promises that: leave it out of caps.nativeOps');
    default:
      return c.refuse(`${n.op} on ${dtype} is not printed: leave it out of caps.nativeOps, so that it is decomposed`);
  }
}

/** The name of a zero of bits that no compiler knows. */
const anyZero = (c: Context): string => c.prologue('zero', () => 'let zero = scalars.zero;');

/** Through its bits, with a zero that no compiler knows: none looks further. Of float16 its own bits, in pairs: a wider float may be unrounded yet. */
function rounded(c: Context, { text, dtype, lanes }: Part): Part {
  const words = dtype === 'float16' ? Math.ceil(lanes / 2) : lanes;
  const many = dtype === 'float16' ? 2 * words : lanes;
  const [floats, bits, zero] = [typeName(dtype, many), typeName('uint32', words), anyZero(c)];
  const given = many === lanes ? text : `${floats}(${text})`;
  const value = `bitcast<${floats}>(bitcast<${bits}>(${given}) ^ ${words === 1 ? zero : `${bits}(${zero})`})`;
  return call(many === lanes ? value : `${value}[0]`, dtype, lanes);
}

function infix(a: Part, sign: string, b: Part, dtype: DType = a.dtype): Part {
  return expression(`${operand(a)} ${sign} ${operand(b)}`, dtype, a.lanes);
}

function sum(op: 'ADD' | 'SUB' | 'MUL' | 'DIV', a: Part, b: Part): Part {
  if (a.dtype === 'bool') return infix(a, { ADD: '|', SUB: '!=', MUL: '&', DIV: '&' }[op], b);
  return infix(a, { ADD: '+', SUB: '-', MUL: '*', DIV: '/' }[op], b);
}

/** A literal 0 of floats as a value that no compiler knows: products with it and quotients of it would be 0, of NaN too. Others as they are. */
function unknownZero(c: Context, x: Part, source: KNode): Part {
  const { dtype, lanes } = x;
  if (!isFloat(dtype) || source.op !== 'CONST' || source.arg.value !== 0) return x;
  const bits = `bitcast<f32>(${float32Bits(source.arg.value)}u ^ ${anyZero(c)})`;
  const one = dtype === 'float16' ? `f16(${bits})` : bits;
  return call(lanes === 1 ? one : `${typeName(dtype, lanes)}(${one})`, dtype, lanes);
}

/** The count of a shift: modulo 32, unsigned. */
function shiftCount(b: Part): Part {
  const type = typeName('uint32', b.lanes);
  const [first] = b.elements ?? [];
  const one = b.lanes === 1 ? b : b.elements?.every((x) => x.text === first?.text) ? first : undefined;
  if (b.constant && one !== undefined) {
    const count = `${Number.parseInt(one.text.replace(/[()]/g, ''), 10) & 31}u`;
    return b.lanes === 1 ? literal(count, 'uint32') : call(`${type}(${count})`, 'uint32', b.lanes);
  }
  const count = b.dtype === 'uint32' ? operand(b) : `bitcast<${type}>(${b.text})`;
  return expression(`${count} & ${u32('31u', b.lanes)}`, 'uint32', b.lanes);
}

/** Division by zero gives 0; WGSL itself gives the dividend, and its remainder by zero is 0. */
function divide(c: Context, op: 'IDIV' | 'IREM', a: Part, given: Part, divisor: KNode): Part {
  const sign = op === 'IDIV' ? '/' : '%';
  const type = typeName(a.dtype, a.lanes);
  const zero = a.dtype === 'uint32' ? '0u' : '0i';
  if (divisor.op === 'CONST') {
    if (divisor.arg.value === 0) return literal(a.lanes === 1 ? zero : `${type}(${zero})`, a.dtype, a.lanes);
    return infix(a, sign, given);
  }
  const b = given.constant ? c.runtime(given) : given;
  const name = `${op === 'IDIV' ? 'quotient' : 'remainder'}_${suffix(a.dtype, a.lanes)}`;
  const all = a.lanes === 1 ? zero : `${type}(${zero})`;
  const one = all.replace(/0([iu])/, '1$1');
  c.helper(
    name,
    () =>
      `fn ${name}(a: ${type}, b: ${type}) -> ${type} {\n` +
      `  let zero = b == ${all};\n` +
      `  return select(a ${sign} select(b, ${one}, zero), ${all}, zero);\n}`,
  );
  return call(`${name}(${a.text}, ${b.text})`, a.dtype, a.lanes);
}

/** MAX and MIN; NaN on either side is the result. */
function extremum(c: Context, op: 'MAX' | 'MIN', a: Part, b: Part): Part {
  const { dtype, lanes } = a;
  if (dtype === 'bool') return infix(a, op === 'MAX' ? '|' : '&', b);
  const plain = op.toLowerCase();
  if (!isFloat(dtype)) return call(`${plain}(${a.text}, ${b.text})`, dtype, lanes);
  const type = typeName(dtype, lanes);
  const name = `${plain}_${suffix(dtype, lanes)}`;
  if (a.constant !== b.constant) {
    // A literal is no NaN.
    const [limit, x] = a.constant ? [a, b] : [b, a];
    const one = nanTest(c, { ...x, text: 'x' }) as Part;
    c.helper(
      `${name}_limit`,
      () =>
        `fn ${name}_limit(x: ${type}, limit: ${type}) -> ${type} {\n` +
        `  return select(${plain}(x, limit), x, ${one.text});\n}`,
    );
    return call(`${name}_limit(${x.text}, ${limit.text})`, dtype, lanes);
  }
  const [first, second] = ['a', 'b'].map((text) => (nanTest(c, { ...a, text, constant: false }) as Part).text);
  c.helper(
    name,
    () =>
      `fn ${name}(a: ${type}, b: ${type}) -> ${type} {\n` +
      `  return select(select(${plain}(a, b), b, ${second}), a, ${first});\n}`,
  );
  return call(`${name}(${a.text}, ${b.text})`, dtype, lanes);
}

const signs = { LT: '<', LE: '<=', EQ: '==' } as const;

function comparison(c: Context, op: 'LT' | 'LE' | 'EQ', n: KNode, a: Part, b: Part): Part {
  if (a.dtype === 'bool') {
    if (op === 'EQ') return infix(a, '==', b);
    return expression(`!${operand(a)} ${op === 'LT' ? '&' : '|'} ${operand(b)}`, 'bool', a.lanes);
  }
  if (isFloat(a.dtype)) {
    if (op === 'EQ' && n.src[0] === n.src[1]) return expression(`!${(nanTest(c, a) as Part).text}`, 'bool', a.lanes);
    const infinite = withInfinity(c, op, n, a, b);
    if (infinite !== null) return infinite;
  }
  return infix(a, signs[op], b, 'bool');
}

/** NOT of a comparison: true for NaN. */
function notCompare(c: Context, compare: KNode, x: Part, y: Part): Part {
  const op = compare.op as 'LT' | 'LE' | 'EQ';
  if (op === 'EQ' && compare.src[0] === compare.src[1]) return nanTest(c, x) as Part;
  const infinite = withInfinity(c, op, compare, x, y);
  if (infinite !== null) return expression(`!${operand(infinite)}`, 'bool', x.lanes);
  const [a, b] = [c.stable(x), c.stable(y)];
  const tests = [infix(a, { LT: '>=', LE: '>', EQ: '!=' }[op], b, 'bool'), nanTest(c, a), nanTest(c, b)];
  const text = tests.filter((t) => t !== null).map(operand);
  return expression(text.join(' | '), 'bool', x.lanes);
}

/** Comparisons of a number with an infinity, by bits; null for others. */
function withInfinity(c: Context, op: 'LT' | 'LE' | 'EQ', n: KNode, a: Part, b: Part): Part | null {
  const [x, y] = n.src.map((s) => (s.op === 'CONST' ? Number(s.arg.value) : 0)) as [number, number];
  if (Number.isFinite(x) === Number.isFinite(y) || Number.isNaN(x) || Number.isNaN(y)) return null;
  const right = !Number.isFinite(y);
  const [value, limit] = right ? [a, y] : [b, x];
  const { dtype, lanes } = value;
  const stable = c.stable(value);
  const bits = bitsOf(stable.text, dtype, lanes);
  const is = (pattern: string, sign: string): Part =>
    expression(`${bits} ${sign} ${u32(pattern, lanes)}`, 'bool', lanes);
  const own = limit > 0 ? '0x7f800000u' : '0xff800000u';
  if (op === 'EQ') return is(own, '==');
  const notNan = expression(`!${(nanTest(c, stable) as Part).text}`, 'bool', lanes);
  // x <= inf and -inf <= x hold for every number.
  const always = right === limit > 0;
  if (op === 'LE') return always ? notNan : is(own, '==');
  if (always) return infix(is(own, '!='), '&', notNan);
  return literal(lanes === 1 ? 'false' : `vec${lanes}<bool>(false)`, 'bool', lanes);
}

/** The operations that are arithmetic on values, by number of operands: what they take, and what they mean. */

/** Kinds of operand and result a unary operation takes: see verify/verify.ts. */
// biome-ignore format: a table of operations reads better grouped
export const unaryOps = {
  NEG: 'number', NOT: 'any', ABS: 'number', SQRT: 'float', FLOOR: 'float', CEIL: 'float', TRUNC: 'float', ROUND: 'float',
  EXP: 'float', EXP2: 'float', EXPM1: 'float', LOG: 'float', LOG2: 'float', LOG10: 'float', LOG1P: 'float',
  SIN: 'float', COS: 'float', TAN: 'float', ASIN: 'float', ACOS: 'float', ATAN: 'float',
  SINH: 'float', COSH: 'float', TANH: 'float', ERF: 'float', RSQRT: 'float', RECIP: 'float', ROUNDED: 'float', ISNAN: 'float',
} as const;

/** What a binary operation takes: floats, integers (and bool for the logical ones), or any number. */
// biome-ignore format: a table of operations reads better grouped
export const binaryOps = {
  ADD: 'number', SUB: 'number', MUL: 'number', DIV: 'float', IDIV: 'integer', IREM: 'integer', FREM: 'float',
  MAX: 'number', MIN: 'number', POW: 'float', ATAN2: 'float',
  AND: 'logical', OR: 'logical', XOR: 'logical', SHL: 'integer', SHR: 'integer', LT: 'compare', LE: 'compare', EQ: 'compare',
  MULHI: 'integer',
} as const;

export const ternaryOps = { WHERE: 'any', FMA: 'float', MULADD: 'float' } as const;

/** Combining operations of REDUCE. The arg variants yield the int32 position of the first winner (NaN wins). */
export type ReduceOp = 'sum' | 'prod' | 'max' | 'min' | 'argmax' | 'argmin';

/**
 * Unary value operations every engine's emitter or `arithmetic/decompose/decompose.ts` provides. ROUND: half to even. NOT: bitwise, logical on bool. ROUNDED: the
 * value itself, an arithmetic fence: what is computed from it is computed from the rounded number, whatever made it (arithmetic/rounded.ts). ISNAN: bool result.
 */
export type UnaryOp = keyof typeof unaryOps;

/**
 * Binary value operations. Comparisons give bool; EQ is false for NaN. SHR is arithmetic on ints, logical on uints; counts of
 * shifts are taken modulo 32 (64-bit integers: 64). FREM
 * is C's fmod; MULHI the high 32 bits of a uint32 product.
 */
export type BinaryOp = keyof typeof binaryOps;

/**
 * Ternary value operations. WHERE(cond, a, b) never lets NaN through from the side not taken.
 * FMA(a, b, c) = a * b + c rounded once. MULADD(a, b, c) is the same or rounded twice, whichever the target does
 * faster (always the same choice on one engine): contractions use it.
 */
export type TernaryOp = keyof typeof ternaryOps;

/** The operations an emitter must print itself; everything else in the value operations is decomposed unless native. */
// biome-ignore format: a table of operations reads better grouped
export const BASE_OPS: ReadonlySet<string> = new Set([
  'NEG', 'NOT', 'SQRT', 'FLOOR', 'ADD', 'SUB', 'MUL', 'DIV', 'IDIV', 'IREM', 'MAX', 'MIN',
  'AND', 'OR', 'XOR', 'SHL', 'SHR', 'LT', 'LE', 'EQ', 'WHERE',
]);

/** Operations that compute a value of one, two or three others. */
export type ValueOp = UnaryOp | BinaryOp | TernaryOp;

/** True for reductions to a position. */
export function isArg(op: ReduceOp): op is 'argmax' | 'argmin' {
  return op === 'argmax' || op === 'argmin';
}

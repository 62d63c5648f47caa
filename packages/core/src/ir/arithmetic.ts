/** The operations that are arithmetic on values, by number of operands, and what they take; ir.ts says what they mean. */
import type { KArgs, KNode, KOp, ReduceOp, ValueOp } from './ir.ts';

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

/** Everything else. Programs carry this table alone. */
// biome-ignore format: grouped like the arguments in ir.ts
const others: Readonly<Record<keyof KArgs, true>> = {
  PARAM: true, SCALAR: true, SHARED: true, REG: true, CONST: true, SPECIAL: true,
  RANGE: true, REDUCE: true, STAGE: true, LOAD: true, STORE: true, ATOMIC: true,
  LOOP: true, ENDLOOP: true, IF: true, ENDIF: true, BARRIER: true, SUBGROUP: true,
  CAST: true, BITCAST: true, VEC: true, LANE: true, IOTA: true,
};

/** True for operations that compute a value from values (conversions not counted). */
export function isArithmetic(op: KOp): op is ValueOp {
  return !(op in others);
}

/** True for reductions to a position. */
export function isArg(op: ReduceOp): op is 'argmax' | 'argmin' {
  return op === 'argmax' || op === 'argmin';
}

/** True for a reduction to a position. */
export function isPosition(n: KNode): boolean {
  return n.op === 'REDUCE' && isArg(n.arg.op);
}

/**
 * Operations that are one instruction, for every kind of register: scalar code, vector code.
 *
 * Everything with more than one instruction is in values.ts and casts.ts.
 */
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import type { RegKind } from './target.ts';

type Codes = Readonly<Partial<Record<RegKind, readonly [scalar: number, vector: number]>>>;

/** Arithmetic on floats by its codes for 32 bits; those for 64 bits come at a distance. */
const floats = (scalar: number, vector: number): Codes => ({ f32: [scalar, vector], f64: [scalar + 14, vector + 12] });
/** Integers by the codes for 32 bits and the vector code for 64 bits; 0: lane by lane. */
const ints = (scalar: number, vector: number, longVector: number, toLong: number = T.toLong): Codes => ({
  i32: [scalar, vector],
  u32: [scalar, vector],
  i64: [scalar + toLong, longVector],
  u64: [scalar + toLong, longVector],
});

/** One operand in, same kind out. */
// biome-ignore format: a table reads better grouped
export const unaryCodes: Readonly<Record<string, Codes>> = {
  NEG: floats(W.f32Neg, S.f32Neg),
  ABS: floats(W.f32Abs, S.f32Abs),
  SQRT: floats(W.f32Sqrt, S.f32Sqrt),
  FLOOR: { f32: [W.f32Floor, S.f32Floor], f64: [W.f64Floor, S.f64Floor] },
  CEIL: { f32: [W.f32Ceil, S.f32Ceil], f64: [W.f64Ceil, S.f64Ceil] },
  TRUNC: { f32: [W.f32Trunc, S.f32Trunc], f64: [W.f64Trunc, S.f64Trunc] },
  ROUND: { f32: [W.f32Nearest, S.f32Nearest], f64: [W.f64Nearest, S.f64Nearest] },
};

/** Two operands of one kind in, the same kind out. On bool, sums and maxima are OR, products and minima AND. */
// biome-ignore format: a table reads better grouped
export const binaryCodes: Readonly<Record<string, Codes>> = {
  ADD: { ...floats(W.f32Add, S.f32Add), ...ints(W.i32Add, S.i32Add, S.i64Add), bool: [W.i32Or, S.or] },
  SUB: { ...floats(W.f32Sub, S.f32Sub), ...ints(W.i32Sub, S.i32Sub, S.i64Sub) },
  MUL: { ...floats(W.f32Mul, S.f32Mul), ...ints(W.i32Mul, S.i32Mul, S.i64Mul), bool: [W.i32And, S.and] },
  DIV: floats(W.f32Div, S.f32Div),
  MAX: { ...floats(W.f32Max, S.f32Max), bool: [W.i32Or, S.or] },
  MIN: { ...floats(W.f32Min, S.f32Min), bool: [W.i32And, S.and] },
  AND: { ...ints(W.i32And, S.and, S.and), bool: [W.i32And, S.and] },
  OR: { ...ints(W.i32Or, S.or, S.or), bool: [W.i32Or, S.or] },
  XOR: { ...ints(W.i32Xor, S.xor, S.xor), bool: [W.i32Xor, S.xor] },
};

/** Shifts: the second operand is a count; vectors take one scalar count for all lanes. */
export const shiftCodes: Readonly<Record<string, Codes>> = {
  SHL: ints(W.i32Shl, S.i32Shl, S.i64Shl),
  SHR: {
    i32: [W.i32ShrS, S.i32ShrS],
    u32: [W.i32ShrU, S.i32ShrU],
    i64: [W.i64ShrS, S.i64ShrS],
    u64: [W.i64ShrU, S.i64ShrU],
  },
};

/** Comparisons: bool out. Vectors of bool are masks, compared in values.ts. */
// biome-ignore format: a table reads better grouped
export const compareCodes: Readonly<Record<string, Codes>> = {
  LT: {
    f32: [W.f32Lt, S.f32Lt], f64: [W.f64Lt, S.f64Lt], i32: [W.i32LtS, S.i32LtS], u32: [W.i32LtU, S.i32LtU], bool: [W.i32LtU, 0],
    i64: [W.i64LtS, S.i64LtS], u64: [W.i64LtU, 0],
  },
  LE: {
    f32: [W.f32Le, S.f32Le], f64: [W.f64Le, S.f64Le], i32: [W.i32LeS, S.i32LeS], u32: [W.i32LeU, S.i32LeU], bool: [W.i32LeU, 0],
    i64: [W.i64LeS, S.i64LeS], u64: [W.i64LeU, 0],
  },
  EQ: { f32: [W.f32Eq, S.f32Eq], f64: [W.f64Eq, S.f64Eq], ...ints(W.i32Eq, S.i32Eq, S.i64Eq, T.toLongCompare), bool: [W.i32Eq, 0] },
  NE: { f32: [W.f32Ne, S.f32Ne], f64: [W.f64Ne, S.f64Ne], ...ints(W.i32Ne, S.i32Ne, S.i64Ne, T.toLongCompare), bool: [W.i32Ne, 0] },
};

/** Vector instructions by register kind: broadcast of a scalar, lane access, and the scalar type's fused multiply-add. */
export const laneCodes: Readonly<Record<RegKind, { splat: number; extract: number; replace: number }>> = {
  f32: { splat: S.f32Splat, extract: S.f32Extract, replace: S.f32Replace },
  f64: { splat: S.f64Splat, extract: S.f64Extract, replace: S.f64Replace },
  i32: { splat: S.i32Splat, extract: S.i32Extract, replace: S.i32Replace },
  u32: { splat: S.i32Splat, extract: S.i32Extract, replace: S.i32Replace },
  i64: { splat: S.i64Splat, extract: S.i64Extract, replace: S.i64Replace },
  u64: { splat: S.i64Splat, extract: S.i64Extract, replace: S.i64Replace },
  bool: { splat: S.i32Splat, extract: S.i32Extract, replace: S.i32Replace },
};

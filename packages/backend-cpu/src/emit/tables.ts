/**
 * Operations that are one instruction, for every kind of register: scalar code, vector code.
 *
 * Everything with more than one instruction is in values.ts and casts.ts.
 */
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import type { RegKind } from './target.ts';

type Codes = Readonly<Partial<Record<RegKind, readonly [scalar: number, vector: number]>>>;

const sameForInts = (scalar: number, vector: number): Codes => ({ i32: [scalar, vector], u32: [scalar, vector] });
/** 64-bit integers; vector code 0: lane by lane. */
const sameForLongs = (scalar: number, vector: number): Codes => ({ i64: [scalar, vector], u64: [scalar, vector] });

/** One operand in, same kind out. */
// biome-ignore format: a table reads better grouped
export const unaryCodes: Readonly<Record<string, Codes>> = {
  NEG: { f32: [W.f32Neg, S.f32Neg], f64: [W.f64Neg, S.f64Neg] },
  ABS: { f32: [W.f32Abs, S.f32Abs], f64: [W.f64Abs, S.f64Abs] },
  SQRT: { f32: [W.f32Sqrt, S.f32Sqrt], f64: [W.f64Sqrt, S.f64Sqrt] },
  FLOOR: { f32: [W.f32Floor, S.f32Floor], f64: [W.f64Floor, S.f64Floor] },
  CEIL: { f32: [W.f32Ceil, S.f32Ceil], f64: [W.f64Ceil, S.f64Ceil] },
  TRUNC: { f32: [W.f32Trunc, S.f32Trunc], f64: [W.f64Trunc, S.f64Trunc] },
  ROUND: { f32: [W.f32Nearest, S.f32Nearest], f64: [W.f64Nearest, S.f64Nearest] },
};

/** Two operands of one kind in, the same kind out. On bool, sums and maxima are OR, products and minima AND. */
// biome-ignore format: a table reads better grouped
export const binaryCodes: Readonly<Record<string, Codes>> = {
  ADD: { f32: [W.f32Add, S.f32Add], f64: [W.f64Add, S.f64Add], ...sameForInts(W.i32Add, S.i32Add), ...sameForLongs(W.i64Add, S.i64Add), bool: [W.i32Or, S.or] },
  SUB: { f32: [W.f32Sub, S.f32Sub], f64: [W.f64Sub, S.f64Sub], ...sameForInts(W.i32Sub, S.i32Sub), ...sameForLongs(W.i64Sub, S.i64Sub) },
  MUL: { f32: [W.f32Mul, S.f32Mul], f64: [W.f64Mul, S.f64Mul], ...sameForInts(W.i32Mul, S.i32Mul), ...sameForLongs(W.i64Mul, S.i64Mul), bool: [W.i32And, S.and] },
  DIV: { f32: [W.f32Div, S.f32Div], f64: [W.f64Div, S.f64Div] },
  MAX: { f32: [W.f32Max, S.f32Max], f64: [W.f64Max, S.f64Max], bool: [W.i32Or, S.or] },
  MIN: { f32: [W.f32Min, S.f32Min], f64: [W.f64Min, S.f64Min], bool: [W.i32And, S.and] },
  AND: { ...sameForInts(W.i32And, S.and), ...sameForLongs(W.i64And, S.and), bool: [W.i32And, S.and] },
  OR: { ...sameForInts(W.i32Or, S.or), ...sameForLongs(W.i64Or, S.or), bool: [W.i32Or, S.or] },
  XOR: { ...sameForInts(W.i32Xor, S.xor), ...sameForLongs(W.i64Xor, S.xor), bool: [W.i32Xor, S.xor] },
};

/** Shifts: the second operand is a count; vectors take one scalar count for all lanes. */
export const shiftCodes: Readonly<Record<string, Codes>> = {
  SHL: { ...sameForInts(W.i32Shl, S.i32Shl), ...sameForLongs(W.i64Shl, S.i64Shl) },
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
  EQ: { f32: [W.f32Eq, S.f32Eq], f64: [W.f64Eq, S.f64Eq], ...sameForInts(W.i32Eq, S.i32Eq), ...sameForLongs(W.i64Eq, S.i64Eq), bool: [W.i32Eq, 0] },
  NE: { f32: [W.f32Ne, S.f32Ne], f64: [W.f64Ne, S.f64Ne], ...sameForInts(W.i32Ne, S.i32Ne), ...sameForLongs(W.i64Ne, S.i64Ne), bool: [W.i32Ne, 0] },
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

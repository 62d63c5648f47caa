/**
 * Names of instructions in the WebAssembly text format, for people who read kernels. All that plain.ts, simd.ts and atomics.ts list, by the same codes.
 *
 * Written out, not made from those files: what prints kernels is loaded by few, and bundlers would keep a name for every number.
 */

/** Consecutive codes: the first, the type they begin with or '' if each has its own, and the names; `-` is one that is not used. */
// biome-ignore format: a table reads better grouped
const rows: readonly (readonly [first: number, type: string, names: string])[] = [
  [0x02, '', 'block loop if else'],
  [0x0b, '', 'end br br_if - return'],
  [0x1a, '', 'drop select'],
  [0x20, 'local', 'get set tee'],
  [0x28, '', 'i32.load i64.load f32.load f64.load'],
  [0x2c, 'i32', 'load8_s load8_u load16_s load16_u'],
  [0x36, '', 'i32.store i64.store f32.store f64.store i32.store8 i32.store16'],
  [0x41, '', 'i32.const i64.const f32.const f64.const'],
  [0x45, 'i32', 'eqz eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u'],
  [0x50, 'i64', 'eqz eq ne lt_s lt_u gt_s gt_u le_s le_u'],
  [0x5b, 'f32', 'eq ne lt gt le ge'],
  [0x61, 'f64', 'eq ne lt gt le ge'],
  [0x6a, 'i32', 'add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u'],
  [0x7c, 'i64', 'add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u'],
  [0x8b, 'f32', 'abs neg ceil floor trunc nearest sqrt add sub mul div min max'],
  [0x99, 'f64', 'abs neg ceil floor trunc nearest sqrt add sub mul div min max'],
  [0xa7, 'i32', 'wrap_i64'],
  [0xac, 'i64', 'extend_i32_s extend_i32_u'],
  [0xb2, 'f32', 'convert_i32_s convert_i32_u convert_i64_s convert_i64_u demote_f64'],
  [0xb7, 'f64', 'convert_i32_s convert_i32_u convert_i64_s convert_i64_u promote_f32'],
  [0xbc, '', 'i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32 f64.reinterpret_i64 i32.extend8_s i32.extend16_s'],
  [0x200, 'v128', 'load load8x8_s load8x8_u load16x4_s load16x4_u'],
  [0x209, 'v128', 'load32_splat load64_splat store const'],
  [0x20d, 'i8x16', 'shuffle'],
  [0x211, '', 'i32x4.splat i64x2.splat f32x4.splat f64x2.splat'],
  [0x21b, '', 'i32x4.extract_lane i32x4.replace_lane i64x2.extract_lane i64x2.replace_lane f32x4.extract_lane f32x4.replace_lane f64x2.extract_lane f64x2.replace_lane'],
  [0x237, 'i32x4', 'eq ne lt_s lt_u gt_s gt_u le_s le_u'],
  [0x241, 'f32x4', 'eq ne lt gt le ge'],
  [0x247, 'f64x2', 'eq ne lt gt le ge'],
  [0x24d, 'v128', 'not and andnot or xor bitselect any_true - - load32_lane load64_lane store8_lane store16_lane store32_lane store64_lane load32_zero load64_zero'],
  [0x25e, '', 'f32x4.demote_f64x2_zero f64x2.promote_low_f32x4'],
  [0x266, 'i8x16', 'narrow_i16x8_u'],
  [0x267, 'f32x4', 'ceil floor trunc nearest'],
  [0x274, 'f64x2', 'ceil floor'],
  [0x27a, 'f64x2', 'trunc'],
  [0x286, 'i16x8', 'narrow_i32x4_u extend_low_i8x16_s - extend_low_i8x16_u'],
  [0x294, 'f64x2', 'nearest'],
  [0x2a0, 'i32x4', 'abs neg - all_true'],
  [0x2a7, 'i32x4', 'extend_low_i16x8_s extend_high_i16x8_s extend_low_i16x8_u extend_high_i16x8_u shl shr_s shr_u add - - sub'],
  [0x2b5, 'i32x4', 'mul min_s min_u max_s max_u'],
  [0x2c0, 'i64x2', 'abs neg'],
  [0x2c7, 'i64x2', 'extend_low_i32x4_s extend_high_i32x4_s extend_low_i32x4_u extend_high_i32x4_u shl shr_s shr_u add - - sub'],
  [0x2d5, 'i64x2', 'mul eq ne lt_s - le_s'],
  [0x2de, 'i64x2', 'extmul_low_i32x4_u extmul_high_i32x4_u'],
  [0x2e0, 'f32x4', 'abs neg - sqrt add sub mul div min max pmin pmax'],
  [0x2ec, 'f64x2', 'abs neg - sqrt add sub mul div min max pmin pmax'],
  [0x2f8, '', 'i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u f32x4.convert_i32x4_s f32x4.convert_i32x4_u i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u'],
  [0x305, 'f32x4', 'relaxed_madd'],
  [0x307, 'f64x2', 'relaxed_madd'],
  [0x30b, '', 'i32x4.relaxed_laneselect i64x2.relaxed_laneselect'],
  [0x400, 'i32', 'trunc_sat_f32_s trunc_sat_f32_u trunc_sat_f64_s trunc_sat_f64_u'],
  [0x404, 'i64', 'trunc_sat_f32_s trunc_sat_f32_u trunc_sat_f64_s trunc_sat_f64_u'],
  [0x40a, 'memory', 'copy fill'],
  [0x810, 'i32.atomic', 'load'],
  [0x817, 'i32.atomic', 'store'],
  [0x81e, 'i32.atomic', 'rmw.add'],
  [0x833, 'i32.atomic', 'rmw.or'],
  [0x848, 'i32.atomic', 'rmw.cmpxchg'],
];

const names = new Map<number, string>(
  rows.flatMap(([first, type, list]) =>
    list.split(' ').map((name, i) => [first + i, type === '' ? name : `${type}.${name}`] as const),
  ),
);

/** Name of an instruction in the text format. */
export function instructionName(code: number): string {
  return names.get(code) ?? `unknown 0x${code.toString(16)}`;
}

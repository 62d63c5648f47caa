/**
 * WebAssembly instruction codes by their names in the specification, and value types.
 *
 * A code is one byte, or `prefix << 16 | number` for the prefixed groups: 0xfc saturating casts and bulk memory, 0xfd SIMD and
 * relaxed SIMD, 0xfe atomics. Only what the emitter prints is listed.
 * Source: https://webassembly.github.io/spec/core/binary/instructions.html and the relaxed-simd and threads proposals.
 */

/** Value types; the numbers are their binary encoding. */
export const ValType = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b } as const;
export type ValType = (typeof ValType)[keyof typeof ValType];

const sat = (n: number): number => (0xfc << 16) | n;
const simd = (n: number): number => (0xfd << 16) | n;
const atomic = (n: number): number => (0xfe << 16) | n;

/** Plain instructions. */
export const W = {
  block: 0x02, loop: 0x03, if: 0x04, else: 0x05, end: 0x0b, br: 0x0c, brIf: 0x0d, return: 0x0f, drop: 0x1a, select: 0x1b,
  localGet: 0x20, localSet: 0x21, localTee: 0x22,
  i32Load: 0x28, i64Load: 0x29, f32Load: 0x2a, f64Load: 0x2b,
  i32Load8S: 0x2c, i32Load8U: 0x2d, i32Load16S: 0x2e, i32Load16U: 0x2f,
  i32Store: 0x36, i64Store: 0x37, f32Store: 0x38, f64Store: 0x39, i32Store8: 0x3a, i32Store16: 0x3b,
  i32Const: 0x41, i64Const: 0x42, f32Const: 0x43, f64Const: 0x44,
  i32Eqz: 0x45, i32Eq: 0x46, i32Ne: 0x47, i32LtS: 0x48, i32LtU: 0x49, i32GtS: 0x4a, i32GtU: 0x4b, i32LeS: 0x4c, i32LeU: 0x4d,
  i32GeS: 0x4e, i32GeU: 0x4f,
  i64Eqz: 0x50, i64Eq: 0x51, i64Ne: 0x52, i64LtS: 0x53, i64LtU: 0x54, i64GtS: 0x55, i64GtU: 0x56, i64LeS: 0x57, i64LeU: 0x58,
  f32Eq: 0x5b, f32Ne: 0x5c, f32Lt: 0x5d, f32Gt: 0x5e, f32Le: 0x5f, f32Ge: 0x60,
  f64Eq: 0x61, f64Ne: 0x62, f64Lt: 0x63, f64Gt: 0x64, f64Le: 0x65, f64Ge: 0x66,
  i32Add: 0x6a, i32Sub: 0x6b, i32Mul: 0x6c, i32DivS: 0x6d, i32DivU: 0x6e, i32RemS: 0x6f, i32RemU: 0x70,
  i32And: 0x71, i32Or: 0x72, i32Xor: 0x73, i32Shl: 0x74, i32ShrS: 0x75, i32ShrU: 0x76,
  i64Add: 0x7c, i64Sub: 0x7d, i64Mul: 0x7e, i64DivS: 0x7f, i64DivU: 0x80, i64And: 0x83, i64Or: 0x84, i64Xor: 0x85, i64Shl: 0x86,
  i64ShrS: 0x87, i64ShrU: 0x88,
  f32Abs: 0x8b, f32Neg: 0x8c, f32Ceil: 0x8d, f32Floor: 0x8e, f32Trunc: 0x8f, f32Nearest: 0x90, f32Sqrt: 0x91,
  f32Add: 0x92, f32Sub: 0x93, f32Mul: 0x94, f32Div: 0x95, f32Min: 0x96, f32Max: 0x97,
  f64Abs: 0x99, f64Neg: 0x9a, f64Ceil: 0x9b, f64Floor: 0x9c, f64Trunc: 0x9d, f64Nearest: 0x9e, f64Sqrt: 0x9f,
  f64Add: 0xa0, f64Sub: 0xa1, f64Mul: 0xa2, f64Div: 0xa3, f64Min: 0xa4, f64Max: 0xa5,
  i32WrapI64: 0xa7, i64ExtendI32S: 0xac, i64ExtendI32U: 0xad,
  f32ConvertI32S: 0xb2, f32ConvertI32U: 0xb3, f32DemoteF64: 0xb6,
  f64ConvertI32S: 0xb7, f64ConvertI32U: 0xb8, f64PromoteF32: 0xbb,
  i32ReinterpretF32: 0xbc, i64ReinterpretF64: 0xbd, f32ReinterpretI32: 0xbe, f64ReinterpretI64: 0xbf,
  i32Extend8S: 0xc0, i32Extend16S: 0xc1,
  i32TruncSatF32S: sat(0), i32TruncSatF32U: sat(1), i32TruncSatF64S: sat(2), i32TruncSatF64U: sat(3),
  memoryCopy: sat(10), memoryFill: sat(11),
} as const;

/** SIMD128 instructions (prefix 0xfd). The 64-bit float group lies 12 after the 32-bit one where both are regular. */
export const S = {
  load: simd(0), load8x8S: simd(1), load8x8U: simd(2), load16x4S: simd(3), load16x4U: simd(4), load32Splat: simd(9), load64Splat: simd(10),
  store: simd(11), const: simd(12), shuffle: simd(13),
  i32Splat: simd(17), i64Splat: simd(18), f32Splat: simd(19), f64Splat: simd(20),
  i32Extract: simd(27), i32Replace: simd(28), i64Extract: simd(29), i64Replace: simd(30),
  f32Extract: simd(31), f32Replace: simd(32), f64Extract: simd(33), f64Replace: simd(34),
  i32Eq: simd(55), i32Ne: simd(56), i32LtS: simd(57), i32LtU: simd(58), i32GtS: simd(59), i32GtU: simd(60), i32LeS: simd(61), i32LeU: simd(62),
  f32Eq: simd(65), f32Ne: simd(66), f32Lt: simd(67), f32Gt: simd(68), f32Le: simd(69), f32Ge: simd(70),
  f64Eq: simd(71), f64Ne: simd(72), f64Lt: simd(73), f64Gt: simd(74), f64Le: simd(75), f64Ge: simd(76),
  not: simd(77), and: simd(78), andnot: simd(79), or: simd(80), xor: simd(81), bitselect: simd(82),
  load32Lane: simd(86), load64Lane: simd(87), store8Lane: simd(88), store16Lane: simd(89), store32Lane: simd(90), store64Lane: simd(91),
  load32Zero: simd(92), load64Zero: simd(93),
  f32DemoteF64Zero: simd(94), f64PromoteLowF32: simd(95),
  i8NarrowI16U: simd(102), f32Ceil: simd(103), f32Floor: simd(104), f32Trunc: simd(105), f32Nearest: simd(106),
  f64Ceil: simd(116), f64Floor: simd(117), f64Trunc: simd(122), f64Nearest: simd(148),
  i16ExtendLowI8S: simd(135), i16ExtendLowI8U: simd(137),
  i32Abs: simd(160), i32Neg: simd(161), i32ExtendLowI16S: simd(167), i32ExtendHighI16S: simd(168), i32ExtendLowI16U: simd(169),
  i32ExtendHighI16U: simd(170), i32Shl: simd(171), i32ShrS: simd(172), i32ShrU: simd(173), i32Add: simd(174), i32Sub: simd(177),
  i32Mul: simd(181), i32MinS: simd(182), i32MinU: simd(183), i32MaxS: simd(184), i32MaxU: simd(185),
  i64ExtendLowI32S: simd(199), i64ExtendHighI32S: simd(200), i64ExtendLowI32U: simd(201), i64ExtendHighI32U: simd(202),
  i64Add: simd(206), i64Sub: simd(209), i64Mul: simd(213),
  i64ExtmulLowI32U: simd(222), i64ExtmulHighI32U: simd(223),
  f32Abs: simd(224), f32Neg: simd(225), f32Sqrt: simd(227), f32Add: simd(228), f32Sub: simd(229), f32Mul: simd(230), f32Div: simd(231),
  f32Min: simd(232), f32Max: simd(233), f32Pmin: simd(234), f32Pmax: simd(235),
  f64Abs: simd(236), f64Neg: simd(237), f64Sqrt: simd(239), f64Add: simd(240), f64Sub: simd(241), f64Mul: simd(242), f64Div: simd(243),
  f64Min: simd(244), f64Max: simd(245), f64Pmin: simd(246), f64Pmax: simd(247),
  i32TruncSatF32S: simd(248), i32TruncSatF32U: simd(249), f32ConvertI32S: simd(250), f32ConvertI32U: simd(251),
  i32TruncSatF64SZero: simd(252), i32TruncSatF64UZero: simd(253), f64ConvertLowI32S: simd(254), f64ConvertLowI32U: simd(255),
  f32RelaxedMadd: simd(0x105), f64RelaxedMadd: simd(0x107), i32RelaxedLaneselect: simd(0x10b), i64RelaxedLaneselect: simd(0x10c),
} as const;

/** Atomic instructions on 32-bit words (prefix 0xfe). */
export const A = {
  i32Load: atomic(0x10), i32Store: atomic(0x17), i32RmwAdd: atomic(0x1e), i32RmwOr: atomic(0x33), i32RmwCmpxchg: atomic(0x48),
} as const;

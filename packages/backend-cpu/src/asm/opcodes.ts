/**
 * WebAssembly instruction codes by their names in the specification, and value types.
 *
 * A code is one byte, or `prefix << 16 | number` for the prefixed groups: 0xfc saturating casts and bulk memory, 0xfd SIMD and
 * relaxed SIMD, 0xfe atomics. Only what the emitter prints is listed.
 * Source: https://webassembly.github.io/spec/core/binary/instructions.html and the relaxed-simd and threads proposals.
 */

/** Value types; the numbers are their binary encoding. */
// biome-ignore format: a table reads better grouped
export const ValType = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b } as const;
export type ValType = (typeof ValType)[keyof typeof ValType];

/** Plain instructions. */
// biome-ignore format: a table reads better grouped
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
  i64Add: 0x7c, i64Sub: 0x7d, i64Mul: 0x7e, i64DivS: 0x7f, i64DivU: 0x80, i64RemS: 0x81, i64RemU: 0x82, i64And: 0x83, i64Or: 0x84, i64Xor: 0x85, i64Shl: 0x86,
  i64ShrS: 0x87, i64ShrU: 0x88,
  f32Abs: 0x8b, f32Neg: 0x8c, f32Ceil: 0x8d, f32Floor: 0x8e, f32Trunc: 0x8f, f32Nearest: 0x90, f32Sqrt: 0x91,
  f32Add: 0x92, f32Sub: 0x93, f32Mul: 0x94, f32Div: 0x95, f32Min: 0x96, f32Max: 0x97,
  f64Abs: 0x99, f64Neg: 0x9a, f64Ceil: 0x9b, f64Floor: 0x9c, f64Trunc: 0x9d, f64Nearest: 0x9e, f64Sqrt: 0x9f,
  f64Add: 0xa0, f64Sub: 0xa1, f64Mul: 0xa2, f64Div: 0xa3, f64Min: 0xa4, f64Max: 0xa5,
  i32WrapI64: 0xa7, i64ExtendI32S: 0xac, i64ExtendI32U: 0xad,
  f32ConvertI32S: 0xb2, f32ConvertI32U: 0xb3, f32ConvertI64S: 0xb4, f32ConvertI64U: 0xb5, f32DemoteF64: 0xb6,
  f64ConvertI32S: 0xb7, f64ConvertI32U: 0xb8, f64ConvertI64S: 0xb9, f64ConvertI64U: 0xba, f64PromoteF32: 0xbb,
  i32ReinterpretF32: 0xbc, i64ReinterpretF64: 0xbd, f32ReinterpretI32: 0xbe, f64ReinterpretI64: 0xbf,
  i32Extend8S: 0xc0, i32Extend16S: 0xc1,
  i32TruncSatF32S: 0xfc0000, i32TruncSatF32U: 0xfc0001, i32TruncSatF64S: 0xfc0002, i32TruncSatF64U: 0xfc0003,
  i64TruncSatF32S: 0xfc0004, i64TruncSatF32U: 0xfc0005, i64TruncSatF64S: 0xfc0006, i64TruncSatF64U: 0xfc0007,
  memoryCopy: 0xfc000a, memoryFill: 0xfc000b,
} as const;

/** SIMD128 instructions (prefix 0xfd). The 64-bit float group lies 12 after the 32-bit one where both are regular. */
// biome-ignore format: a table reads better grouped
export const S = {
  load: 0xfd0000, load8x8S: 0xfd0001, load8x8U: 0xfd0002, load16x4S: 0xfd0003, load16x4U: 0xfd0004, load32Splat: 0xfd0009, load64Splat: 0xfd000a,
  store: 0xfd000b, const: 0xfd000c, shuffle: 0xfd000d,
  i32Splat: 0xfd0011, i64Splat: 0xfd0012, f32Splat: 0xfd0013, f64Splat: 0xfd0014,
  i32Extract: 0xfd001b, i32Replace: 0xfd001c, i64Extract: 0xfd001d, i64Replace: 0xfd001e,
  f32Extract: 0xfd001f, f32Replace: 0xfd0020, f64Extract: 0xfd0021, f64Replace: 0xfd0022,
  i32Eq: 0xfd0037, i32Ne: 0xfd0038, i32LtS: 0xfd0039, i32LtU: 0xfd003a, i32GtS: 0xfd003b, i32GtU: 0xfd003c, i32LeS: 0xfd003d, i32LeU: 0xfd003e,
  f32Eq: 0xfd0041, f32Ne: 0xfd0042, f32Lt: 0xfd0043, f32Gt: 0xfd0044, f32Le: 0xfd0045, f32Ge: 0xfd0046,
  f64Eq: 0xfd0047, f64Ne: 0xfd0048, f64Lt: 0xfd0049, f64Gt: 0xfd004a, f64Le: 0xfd004b, f64Ge: 0xfd004c,
  not: 0xfd004d, and: 0xfd004e, andnot: 0xfd004f, or: 0xfd0050, xor: 0xfd0051, bitselect: 0xfd0052, anyTrue: 0xfd0053,
  load32Lane: 0xfd0056, load64Lane: 0xfd0057, store8Lane: 0xfd0058, store16Lane: 0xfd0059, store32Lane: 0xfd005a, store64Lane: 0xfd005b,
  load32Zero: 0xfd005c, load64Zero: 0xfd005d,
  f32DemoteF64Zero: 0xfd005e, f64PromoteLowF32: 0xfd005f,
  i8NarrowI16U: 0xfd0066, i16NarrowI32U: 0xfd0086, f32Ceil: 0xfd0067, f32Floor: 0xfd0068, f32Trunc: 0xfd0069, f32Nearest: 0xfd006a,
  f64Ceil: 0xfd0074, f64Floor: 0xfd0075, f64Trunc: 0xfd007a, f64Nearest: 0xfd0094,
  i16ExtendLowI8S: 0xfd0087, i16ExtendLowI8U: 0xfd0089,
  i64Abs: 0xfd00c0, i64Neg: 0xfd00c1, i64Eq: 0xfd00d6, i64Ne: 0xfd00d7, i64LtS: 0xfd00d8, i64LeS: 0xfd00da,
  i32Abs: 0xfd00a0, i32Neg: 0xfd00a1, i32AllTrue: 0xfd00a3, i32ExtendLowI16S: 0xfd00a7, i32ExtendHighI16S: 0xfd00a8, i32ExtendLowI16U: 0xfd00a9,
  i32ExtendHighI16U: 0xfd00aa, i32Shl: 0xfd00ab, i32ShrS: 0xfd00ac, i32ShrU: 0xfd00ad, i32Add: 0xfd00ae, i32Sub: 0xfd00b1,
  i32Mul: 0xfd00b5, i32MinS: 0xfd00b6, i32MinU: 0xfd00b7, i32MaxS: 0xfd00b8, i32MaxU: 0xfd00b9,
  i64ExtendLowI32S: 0xfd00c7, i64ExtendHighI32S: 0xfd00c8, i64ExtendLowI32U: 0xfd00c9, i64ExtendHighI32U: 0xfd00ca,
  i64Shl: 0xfd00cb, i64ShrS: 0xfd00cc, i64ShrU: 0xfd00cd, i64Add: 0xfd00ce, i64Sub: 0xfd00d1, i64Mul: 0xfd00d5,
  i64ExtmulLowI32U: 0xfd00de, i64ExtmulHighI32U: 0xfd00df,
  f32Abs: 0xfd00e0, f32Neg: 0xfd00e1, f32Sqrt: 0xfd00e3, f32Add: 0xfd00e4, f32Sub: 0xfd00e5, f32Mul: 0xfd00e6, f32Div: 0xfd00e7,
  f32Min: 0xfd00e8, f32Max: 0xfd00e9, f32Pmin: 0xfd00ea, f32Pmax: 0xfd00eb,
  f64Abs: 0xfd00ec, f64Neg: 0xfd00ed, f64Sqrt: 0xfd00ef, f64Add: 0xfd00f0, f64Sub: 0xfd00f1, f64Mul: 0xfd00f2, f64Div: 0xfd00f3,
  f64Min: 0xfd00f4, f64Max: 0xfd00f5, f64Pmin: 0xfd00f6, f64Pmax: 0xfd00f7,
  i32TruncSatF32S: 0xfd00f8, i32TruncSatF32U: 0xfd00f9, f32ConvertI32S: 0xfd00fa, f32ConvertI32U: 0xfd00fb,
  i32TruncSatF64SZero: 0xfd00fc, i32TruncSatF64UZero: 0xfd00fd, f64ConvertLowI32S: 0xfd00fe, f64ConvertLowI32U: 0xfd00ff,
  f32RelaxedMadd: 0xfd0105, f64RelaxedMadd: 0xfd0107, i32RelaxedLaneselect: 0xfd010b, i64RelaxedLaneselect: 0xfd010c,
} as const;

/** Atomic instructions on 32-bit words (prefix 0xfe). */
// biome-ignore format: a table reads better grouped
export const A = {
  i32Load: 0xfe0010, i32Store: 0xfe0017, i32RmwAdd: 0xfe001e, i32RmwOr: 0xfe0033, i32RmwCmpxchg: 0xfe0048,
} as const;

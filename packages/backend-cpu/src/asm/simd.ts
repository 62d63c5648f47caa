/**
 * Codes of SIMD128 instructions: `0x200 | number` for what stands behind the prefix 0xfd. The 64-bit float group lies 12 after the 32-bit one where
 * both are regular.
 *
 * Constants of a module as in plain.ts. Source: the same, and the relaxed-simd proposal.
 */
// biome-ignore format: a table reads better grouped
export const
  load = 0x200, load8x8S = 0x201, load8x8U = 0x202, load16x4S = 0x203, load16x4U = 0x204, load32Splat = 0x209, load64Splat = 0x20a,
  store = 0x20b, shuffle = 0x20d,
  i32Splat = 0x211, i64Splat = 0x212, f32Splat = 0x213, f64Splat = 0x214,
  i32Extract = 0x21b, i32Replace = 0x21c, i64Extract = 0x21d, i64Replace = 0x21e,
  f32Extract = 0x21f, f32Replace = 0x220, f64Extract = 0x221, f64Replace = 0x222,
  i32Eq = 0x237, i32Ne = 0x238, i32LtS = 0x239, i32LtU = 0x23a, i32GtS = 0x23b, i32GtU = 0x23c, i32LeS = 0x23d, i32LeU = 0x23e,
  f32Eq = 0x241, f32Ne = 0x242, f32Lt = 0x243, f32Gt = 0x244, f32Le = 0x245, f32Ge = 0x246,
  f64Eq = 0x247, f64Ne = 0x248, f64Lt = 0x249, f64Gt = 0x24a, f64Le = 0x24b, f64Ge = 0x24c,
  not = 0x24d, and = 0x24e, andnot = 0x24f, or = 0x250, xor = 0x251, bitselect = 0x252, anyTrue = 0x253,
  load64Lane = 0x257, store8Lane = 0x258, store16Lane = 0x259, store32Lane = 0x25a, store64Lane = 0x25b,
  load32Zero = 0x25c, load64Zero = 0x25d,
  f32DemoteF64Zero = 0x25e, f64PromoteLowF32 = 0x25f,
  i8NarrowI16U = 0x266, i16NarrowI32U = 0x286, f32Ceil = 0x267, f32Floor = 0x268, f32Trunc = 0x269, f32Nearest = 0x26a,
  f64Ceil = 0x274, f64Floor = 0x275, f64Trunc = 0x27a, f64Nearest = 0x294,
  i16ExtendLowI8S = 0x287, i16ExtendLowI8U = 0x289,
  i64Abs = 0x2c0, i64Neg = 0x2c1, i64Eq = 0x2d6, i64Ne = 0x2d7, i64LtS = 0x2d8, i64LeS = 0x2da,
  i32Abs = 0x2a0, i32Neg = 0x2a1, i32AllTrue = 0x2a3, i32ExtendLowI16S = 0x2a7, i32ExtendHighI16S = 0x2a8, i32ExtendLowI16U = 0x2a9,
  i32ExtendHighI16U = 0x2aa, i32Shl = 0x2ab, i32ShrS = 0x2ac, i32ShrU = 0x2ad, i32Add = 0x2ae, i32Sub = 0x2b1,
  i32Mul = 0x2b5, i32MinS = 0x2b6, i32MinU = 0x2b7, i32MaxS = 0x2b8, i32MaxU = 0x2b9,
  i64ExtendLowI32S = 0x2c7, i64ExtendHighI32S = 0x2c8, i64ExtendLowI32U = 0x2c9, i64ExtendHighI32U = 0x2ca,
  i64Shl = 0x2cb, i64ShrS = 0x2cc, i64ShrU = 0x2cd, i64Add = 0x2ce, i64Sub = 0x2d1, i64Mul = 0x2d5,
  i64ExtmulLowI32U = 0x2de, i64ExtmulHighI32U = 0x2df,
  f32Abs = 0x2e0, f32Neg = 0x2e1, f32Sqrt = 0x2e3, f32Add = 0x2e4, f32Sub = 0x2e5, f32Mul = 0x2e6, f32Div = 0x2e7,
  f32Min = 0x2e8, f32Max = 0x2e9, f32Pmin = 0x2ea, f32Pmax = 0x2eb,
  f64Abs = 0x2ec, f64Neg = 0x2ed, f64Sqrt = 0x2ef, f64Add = 0x2f0, f64Sub = 0x2f1, f64Mul = 0x2f2, f64Div = 0x2f3,
  f64Min = 0x2f4, f64Max = 0x2f5, f64Pmin = 0x2f6, f64Pmax = 0x2f7,
  i32TruncSatF32S = 0x2f8, i32TruncSatF32U = 0x2f9, f32ConvertI32S = 0x2fa, f32ConvertI32U = 0x2fb,
  i32TruncSatF64SZero = 0x2fc, i32TruncSatF64UZero = 0x2fd, f64ConvertLowI32S = 0x2fe, f64ConvertLowI32U = 0x2ff,
  f32RelaxedMadd = 0x305, f64RelaxedMadd = 0x307, i32RelaxedLaneselect = 0x30b, i64RelaxedLaneselect = 0x30c;

// Words of JavaScript can only be names of exports.
const constCode = 0x20c;
export { constCode as const };

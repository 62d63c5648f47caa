/**
 * Codes of plain WebAssembly instructions by their names in the specification: one byte, or for the group of prefix 0xfc (saturating casts,
 * bulk memory) `0x400 | number`. Only what the emitter prints is listed.
 *
 * Constants of a module, not of an object: bundlers write the numbers where they are used and keep no names.
 * Source: https://webassembly.github.io/spec/core/binary/instructions.html.
 */
// biome-ignore format: a table reads better grouped
export const
  block = 0x02, loop = 0x03, end = 0x0b, br = 0x0c, brIf = 0x0d, drop = 0x1a, select = 0x1b,
  localGet = 0x20, localSet = 0x21, localTee = 0x22,
  i32Load = 0x28, i64Load = 0x29, f32Load = 0x2a, f64Load = 0x2b,
  i32Load8S = 0x2c, i32Load8U = 0x2d, i32Load16S = 0x2e, i32Load16U = 0x2f,
  i32Store = 0x36, i64Store = 0x37, f32Store = 0x38, f64Store = 0x39, i32Store8 = 0x3a, i32Store16 = 0x3b,
  i32Const = 0x41, i64Const = 0x42, f32Const = 0x43, f64Const = 0x44,
  i32Eqz = 0x45, i32Eq = 0x46, i32Ne = 0x47, i32LtS = 0x48, i32LtU = 0x49, i32GtS = 0x4a, i32GtU = 0x4b, i32LeS = 0x4c, i32LeU = 0x4d,
  i32GeS = 0x4e, i32GeU = 0x4f,
  i64Eqz = 0x50, i64Eq = 0x51, i64Ne = 0x52, i64LtS = 0x53, i64LtU = 0x54, i64GtS = 0x55, i64GtU = 0x56, i64LeS = 0x57, i64LeU = 0x58,
  f32Eq = 0x5b, f32Ne = 0x5c, f32Lt = 0x5d, f32Gt = 0x5e, f32Le = 0x5f, f32Ge = 0x60,
  f64Eq = 0x61, f64Ne = 0x62, f64Lt = 0x63, f64Gt = 0x64, f64Le = 0x65, f64Ge = 0x66,
  i32Add = 0x6a, i32Sub = 0x6b, i32Mul = 0x6c, i32DivS = 0x6d, i32DivU = 0x6e, i32RemS = 0x6f, i32RemU = 0x70,
  i32And = 0x71, i32Or = 0x72, i32Xor = 0x73, i32Shl = 0x74, i32ShrS = 0x75, i32ShrU = 0x76,
  i64Add = 0x7c, i64Sub = 0x7d, i64Mul = 0x7e, i64DivS = 0x7f, i64DivU = 0x80, i64RemS = 0x81, i64RemU = 0x82, i64And = 0x83, i64Or = 0x84, i64Xor = 0x85, i64Shl = 0x86,
  i64ShrS = 0x87, i64ShrU = 0x88,
  f32Abs = 0x8b, f32Neg = 0x8c, f32Ceil = 0x8d, f32Floor = 0x8e, f32Trunc = 0x8f, f32Nearest = 0x90, f32Sqrt = 0x91,
  f32Add = 0x92, f32Sub = 0x93, f32Mul = 0x94, f32Div = 0x95, f32Min = 0x96, f32Max = 0x97,
  f64Abs = 0x99, f64Neg = 0x9a, f64Ceil = 0x9b, f64Floor = 0x9c, f64Trunc = 0x9d, f64Nearest = 0x9e, f64Sqrt = 0x9f,
  f64Add = 0xa0, f64Sub = 0xa1, f64Mul = 0xa2, f64Div = 0xa3, f64Min = 0xa4, f64Max = 0xa5,
  i32WrapI64 = 0xa7, i64ExtendI32S = 0xac, i64ExtendI32U = 0xad,
  f32ConvertI32S = 0xb2, f32ConvertI32U = 0xb3, f32ConvertI64S = 0xb4, f32ConvertI64U = 0xb5, f32DemoteF64 = 0xb6,
  f64ConvertI32S = 0xb7, f64ConvertI32U = 0xb8, f64ConvertI64S = 0xb9, f64ConvertI64U = 0xba, f64PromoteF32 = 0xbb,
  i32ReinterpretF32 = 0xbc, i64ReinterpretF64 = 0xbd, f32ReinterpretI32 = 0xbe, f64ReinterpretI64 = 0xbf,
  i32Extend8S = 0xc0, i32Extend16S = 0xc1,
  i32TruncSatF32S = 0x400, i32TruncSatF32U = 0x401, i32TruncSatF64S = 0x402, i32TruncSatF64U = 0x403,
  i64TruncSatF32S = 0x404, i64TruncSatF32U = 0x405, i64TruncSatF64S = 0x406, i64TruncSatF64U = 0x407,
  memoryCopy = 0x40a, memoryFill = 0x40b;

// Words of JavaScript can only be names of exports.
const ifCode = 0x04;
const elseCode = 0x05;
const returnCode = 0x0f;
export { ifCode as if, elseCode as else, returnCode as return };

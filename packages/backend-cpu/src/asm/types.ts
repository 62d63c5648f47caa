/** WebAssembly value types; the numbers are their binary encoding. Constants of a module as in plain.ts. */
export const i32 = 0x7f;
export const i64 = 0x7e;
export const f32 = 0x7d;
export const f64 = 0x7c;
export const v128 = 0x7b;

export type ValType = typeof i32 | typeof i64 | typeof f32 | typeof f64 | typeof v128;

/** What the code of arithmetic on i64 is above that on i32, and that of a comparison. */
export const toLong = 0x12;
export const toLongCompare = 0x0b;

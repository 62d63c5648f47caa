/**
 * Codes of atomic instructions on 32-bit words: `0x800 | number` for the number after the prefix 0xfe.
 *
 * Constants of a module as in plain.ts. Source: the threads proposal.
 */
// biome-ignore format: a table reads better grouped
export const
  i32Load = 0x810, i32Store = 0x817, i32RmwAdd = 0x81e, i32RmwOr = 0x833, i32RmwCmpxchg = 0x848;

/** Vectors of bool: what lowering needs of them. The machine decides how they are held (x64/bit-masks.ts, lane-masks.ts). */
import type { Lowered, Memory, Reg } from './code.ts';
import type { Kind } from '../target.ts';

export type Comparison = 'LT' | 'LE' | 'EQ' | 'NE' | 'ORD' | 'UNORD';

export interface Masks {
  /** True if one mask register holds all lanes; otherwise vectors do. */
  readonly inBits: boolean;
  compare(kind: Kind, op: Comparison, a: readonly Reg[], b: readonly Reg[], lanes: number): Lowered;
  /** AND, OR, XOR, and EQ, which is XNOR; NOT takes one operand. */
  logic(op: 'AND' | 'OR' | 'XOR' | 'EQ' | 'ANDNOT', a: Lowered, b: Lowered, lanes: number): Lowered;
  not(a: Lowered, lanes: number): Lowered;
  /** Lanes of `yes` where the mask is set, of `no` elsewhere; lanes have `width` bytes. */
  select(mask: Lowered, yes: readonly Reg[], no: readonly Reg[], lanes: number, width: 4 | 8): readonly Reg[];
  splat(bool: Reg, lanes: number): Lowered;
  constant(value: boolean, lanes: number): Lowered;
  gather(lanes: number, laneOf: (i: number) => Reg): Lowered;
  lane(mask: Lowered, lane: number): Reg;
  load(from: Memory, lanes: number): Lowered;
  store(to: Memory, mask: Lowered, lanes: number): void;
  /** A number that is not zero if some lane is set, or with `inverse` not set. */
  some(mask: Lowered, lanes: number, inverse: boolean): Reg;
}

/** Vectors of bool: what lowering needs of them. How they are held is up to the machine (x64/bit-masks.ts, lane-masks.ts). */
import type { Memory, Reg } from './code.ts';
import type { Kind } from '../target.ts';
import type { Lowered } from './context.ts';

export type Comparison = 'LT' | 'LE' | 'EQ' | 'NE' | 'ORD' | 'UNORD';

export interface Masks {
  /** One mask register for all lanes, rather than vectors. */
  readonly inBits: boolean;
  compare(kind: Kind, op: Comparison, a: readonly Reg[], b: readonly Reg[], lanes: number): Lowered;
  /** AND, OR, XOR; EQ is its own; NOT takes one. */
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
  /** A number that is not zero where some lane is set, or not set where `inverse`. */
  some(mask: Lowered, lanes: number, inverse: boolean): Reg;
}

/**
 * What operations of loop nests cost, in units of one addition on one element. The planner reads the same costs from the definitions of
 * primitives, which this room cannot see; primitives/costs.test.ts holds the two together.
 *
 * The numbers are counts of the instructions that decomposed functions take on vectors (arithmetic/decompose/), rounded; divisions and
 * roots by their reciprocal throughput beside additions on x86-64 cores since Skylake (3 to 6 times). Only choices between kernels that
 * compute the same depend on them.
 */
import type { KOp } from '../../ir/ir.ts';

/** Those that cost more than an addition. */
// biome-ignore format: a table of operations reads better grouped
const costs: Partial<Readonly<Record<KOp, number>>> = {
  ROUND: 2, FMA: 2, ISNAN: 2,
  DIV: 3, SQRT: 3, RECIP: 3, RSQRT: 4, IDIV: 6, IREM: 6, FREM: 8,
  EXP2: 9, EXP: 10, LOG: 12, LOG2: 12, LOG10: 12, EXPM1: 14, LOG1P: 14, TANH: 14,
  ASIN: 16, ACOS: 16, ATAN: 16, SINH: 18, COSH: 18, SIN: 20, COS: 20, ERF: 20, ATAN2: 24, TAN: 28, POW: 30,
};

/** The cost of a value operation. */
export function operationCost(op: KOp): number {
  return costs[op] ?? 1;
}

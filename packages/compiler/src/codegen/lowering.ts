/**
 * Lowering from loop nests to programs: its result, the parts that a kind of target provides, and the default for a nest.
 *
 * In: a plain loop nest (LoopKernel), complete and correct by itself. Out: dispatches of programs, and their temporaries.
 */
import type { legalize } from '../arithmetic/legalize.ts';
import type { ProgramBuilder } from '../ir/builder/builder.ts';
import type { Exprs } from '../ir/expr.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { LoopKernel, Program } from '../ir/ir.ts';
import type { TargetCaps } from '../ir/target.ts';
import type { reduceColumns } from './linearize/columns.ts';
import type { writeCopies } from './linearize/copies.ts';
import type { Parts, State } from './linearize/group.ts';
import { linearize } from './linearize/linearize.ts';
import type { sideBySide } from './loops/beside.ts';
import type { ProductCosts } from './costs/cpu.ts';
import { optimize } from './loops/optimize.ts';

/** One dispatch of a lowered kernel. Binding i of the program is the LoopKernel's PARAM slot, or a temporary. */
export interface LoweredDispatch {
  readonly program: Program;
  readonly bindings: readonly ({ readonly param: number } | { readonly temp: number })[];
}

/** A kernel lowered to dispatches that run in order, with the temporaries (bytes) they need between them. */
export interface Lowered {
  readonly dispatches: readonly LoweredDispatch[];
  readonly temps: readonly number[];
}

/** A way to lower a kernel, by name. */
export type Way = readonly [name: string, lower: () => Lowered];

/** What one kind of target provides to shape loop nests. */
export interface NestLowering {
  /** A kernel whose loops are merged, with their kinds, order and splits chosen. */
  shape(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): LoopKernel;
  /** Combines the parts of a reduction across the threads of a group. Absent if no threads reduce together. */
  acrossThreads?(b: ProgramBuilder, parts: Parts, threads: number, caps: CodegenCaps): State;
  /** Reductions whose results lie side by side, several to a group of threads. Absent, so that pages do not carry it: a group for each. */
  readonly beside?: typeof sideBySide;
  /** Reductions with a result per column, in group memory. Absent if `shape` makes no columns. */
  readonly columns?: typeof reduceColumns;
  /** Epilogues over many results, in loops over them. Absent: they are unrolled. */
  readonly copies?: typeof writeCopies;
  /** Lanes of vectors along a loop of a nest whose vectors have `lanes`; `filled`: narrower ones only where they fill it. Absent: `lanes`. */
  narrower?(range: Range, lanes: number, filled?: boolean): number;
  /** Costs of contractions. Absent: as measured in WebAssembly. */
  readonly products?: ProductCosts;
  /** Rewrites a program to the dtypes that the target computes in. Absent for targets that compute in all dtypes they hold. */
  readonly legalize?: typeof legalize;
}

/** A target, and its lowering. */
export interface CodegenCaps extends TargetCaps {
  readonly lowering: NestLowering;
}

/** A loop nest lowered with the default choices: one dispatch. */
export function lowerPlain(loop: LoopKernel, caps: CodegenCaps): Lowered {
  const program = linearize(optimize(loop, caps), caps);
  return { dispatches: [{ program, bindings: loop.params.map((_, param) => ({ param })) }], temps: [] };
}

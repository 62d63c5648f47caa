/**
 * What lowering gives, what a kind of target brings to have loops shaped for it, and the way of a nest as it stands.
 *
 * Work is always described as a plain loop nest (LoopKernel), which is complete and correct by itself.
 */
import type { legalize } from '../arithmetic/legalize.ts';
import type { ProgramBuilder } from '../ir/builder/builder.ts';
import type { Exprs } from '../ir/expr.ts';
import type { LoopKernel, Program } from '../ir/ir.ts';
import type { TargetCaps } from '../ir/target.ts';
import type { reduceColumns } from './linearize/columns.ts';
import type { writeCopies } from './linearize/copies.ts';
import type { Parts, State } from './linearize/group.ts';
import { linearize } from './linearize/linearize.ts';
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

/** What one kind of target needs to have loop nests shaped for it. */
export interface NestLowering {
  /** A kernel whose loops are merged, with their kinds, order and splits chosen. */
  shape(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): LoopKernel;
  /** The parts that the threads of a group have of a reduction as one. Left out where no threads reduce together. */
  acrossThreads?(b: ProgramBuilder, parts: Parts, threads: number, caps: CodegenCaps): State;
  /** Reductions with a result for every column, in group memory. Left out where `shape` makes no columns. */
  readonly columns?: typeof reduceColumns;
  /** What is made of many results, in loops over them. Left out: written for each of them. */
  readonly copies?: typeof writeCopies;
  /** What contractions are weighed by. Left out: as measured in WebAssembly. */
  readonly products?: ProductCosts;
  /** A program in the dtypes that the target computes in. Left out for targets that compute in all they hold. */
  readonly legalize?: typeof legalize;
}

/** A target, and how loops are shaped for it. */
export interface CodegenCaps extends TargetCaps {
  readonly lowering: NestLowering;
}

/** A loop nest as it stands, lowered with the default choices: one dispatch. */
export function lowerPlain(loop: LoopKernel, caps: CodegenCaps): Lowered {
  const program = linearize(optimize(loop, caps), caps);
  return { dispatches: [{ program, bindings: loop.params.map((_, param) => ({ param })) }], temps: [] };
}

/** The programs of a lowered kernel as an engine takes them. */
export function legalPrograms({ dispatches }: Lowered, caps: CodegenCaps): readonly Program[] {
  return dispatches.map(({ program }) =>
    program.kept === undefined ? (caps.lowering.legalize?.(program, caps) ?? program) : program,
  );
}

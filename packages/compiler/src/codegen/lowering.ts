/**
 * Lowering from loop nests to programs: its result, and the parts that a kind of target provides. Types only, so that passes may know
 * the target that they are a part of.
 *
 * In: a plain loop nest (LoopKernel), complete and correct by itself. Out: dispatches of programs, and their temporaries.
 */
import type { ProgramBuilder } from '../ir/builder/builder.ts';
import type { Exprs } from '../ir/expr.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel, Program } from '../ir/ir.ts';
import type { ReduceOp } from '../ir/operations.ts';
import type { TargetCaps } from '../ir/target.ts';
import type { DType } from '../shape/dtype.ts';
import type { ProductCosts } from './costs/cpu.ts';
import type { PickLanes, SteppedLoad, Values } from './linearize/scope.ts';
import type { LoopNest } from './loops/transforms.ts';
import type { Binder, NestWork } from './loops/work.ts';

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

/** The numbers a reduction carries: the value, and for argument reductions its position. */
export type State = readonly KNode[];

/** A reduction of which every thread has a part. */
export interface Parts {
  readonly op: ReduceOp;
  readonly mine: State;
  /** Combines two states, in any order. */
  readonly combine: (x: State, y: State) => State;
}

/** Reductions whose results lie side by side, along `column`: a group has `width` of them (loops/beside.ts). */
export interface Beside {
  readonly column: Range;
  readonly width: number;
  /** The nest for groups of `threads` threads, a power of two. */
  shape(
    nest: LoopNest,
    binders: readonly Binder[],
    spread: readonly Range[],
    beside: Beside,
    threads: number,
  ): LoopNest;
}

/** Rows shorter than a vector, and their columns (loops/cuts.ts). */
export interface Narrow {
  readonly row: Range;
  readonly column: Range;
  readonly lanes: number;
  /** Rows at a time, which whole vectors hold. */
  readonly together: number;
}

/** The accumulators of all copies of a reduction, by the width of their vectors, and how states are combined. */
export interface Copies {
  readonly groups: readonly { readonly lanes: number; readonly combined: (copy: number) => KNode }[];
  readonly tree: (states: readonly State[]) => State;
  readonly combine: (x: State, y: State) => State;
}

/** Combines the lanes of `count` copies; gives the memory with a result for each. */
export type CopyByCopy = (
  values: Values,
  node: KNodeOf<'REDUCE'>,
  accumulator: DType,
  count: number,
  copies: Copies,
) => KNode;

/**
 * The loop with the largest divisor of its number in an index, of those that may be cut (loops/cuts.ts). `offset`: what the index adds
 * before it is divided.
 */
export type Division = (
  nest: LoopNest,
  mayCut: (range: Range, by: number, offset: number) => boolean,
) => { readonly range: Range; readonly by: number } | null;

/** Ways to write loops that few nests have use of, and all can do without. */
export interface RareLoops {
  /** Columns per group of reductions that are accumulated in group memory, with vectors along a range; null where registers accumulate (loops/columns.ts). */
  columnsOf(work: NestWork, range: Range, lanes: number, caps: CodegenCaps): number | null;
  /** Writes those of some such reductions that are over these rows (linearize/columns.ts). */
  reduceColumns(
    wave: readonly KNodeOf<'REDUCE'>[],
    rows: readonly Range[],
    column: Range,
    values: Values,
    options: SumOptions,
    overColumns: OverColumns,
  ): void;
  /** linearize/copy-by-copy.ts */
  readonly copyByCopy: CopyByCopy;
  /** loops/reduce-while-staging.ts */
  reduceWhileStaging(nest: LoopNest): LoopNest;
  /** linearize/inline-stage.ts */
  inlineStage(kernel: LoopKernel, e: Exprs, read: KNodeOf<'LOAD'>): LoopKernel;
  /** loops/rows-and-rest.ts */
  cutStretches(nest: LoopNest, division: Division): LoopNest;
  /** loops/rows-and-rest.ts */
  rowsAndRest(nest: LoopNest, work: NestWork, rows: ReadonlyMap<Range, number>): LoopNest;
  /** loops/narrow-rows.ts */
  cutNarrow(nest: LoopNest, caps: CodegenCaps, found: Narrow): LoopNest;
  widenNarrow(nest: LoopNest, caps: CodegenCaps, found: Narrow): LoopNest;
  /** loops/short-rows.ts */
  short(nest: LoopNest, caps: CodegenCaps): LoopNest;
}

/** Runs a statement, with the expressions it needs, for all columns. `repeatable`: it may run again for some. */
export type OverColumns = (column: Range, roots: readonly KNode[], repeatable: boolean, run: () => void) => void;

/** How numbers of reductions are summed: MULADD where the target has it, and whether its groups have threads. */
export interface SumOptions {
  readonly muladd: boolean;
  readonly simt: boolean;
}

/** What one kind of target provides to shape loop nests. */
export interface NestLowering {
  /** A kernel whose loops are merged, with their kinds, order and splits chosen. */
  shape(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): LoopKernel;
  /** Combines the parts of a reduction across the threads of a group. Absent if no threads reduce together. */
  acrossThreads?(b: ProgramBuilder, parts: Parts, threads: number, caps: CodegenCaps): State;
  /** Reductions whose results lie side by side, several to a group of threads. Absent, so that pages do not carry it: a group for each. */
  beside?(
    nest: LoopNest,
    work: NestWork,
    binders: readonly Binder[],
    spread: readonly Range[],
    caps: CodegenCaps,
  ): Beside | null;
  /** Ways to write loops that few nests have use of, for engines without threads in groups. Absent or null: nests do without. */
  rare?(isWorth?: boolean): RareLoops | null;
  /** Epilogues over many results, in loops over them; false if there are few. Absent: they are unrolled. */
  copies?(values: Values, roots: readonly (readonly KNode[])[], write: () => void): boolean;
  /** Lanes of vectors along a loop of a nest whose vectors have `lanes`; `filled`: narrower ones only where they fill it. Absent: `lanes`. */
  narrower?(range: Range, lanes: number, filled?: boolean): number;
  /** Lanes of vectors that compute so much for each element that several side by side are faster; `nodes`: all of them. Absent: `lanes`. */
  wider?(nodes: ReadonlySet<KNode>, lanes: number, elements: number): number;
  /** Transposes by vectors as long as a cache line, or null for nests that are none. Absent: by squares of four elements a side. */
  transposes?(nest: LoopNest, caps: CodegenCaps): readonly LoopNest[] | null;
  /** The phases of a nest side by side. Absent: each element is chosen by a test. */
  splitPhases?(nest: LoopNest): LoopNest;
  /** One value and its position from vectors of these. Absent or null: lanes are combined by pairs, as those of other reductions are. */
  bestLane?(e: Exprs, op: ReduceOp, state: State): State | null;
  /** Vectors whose lanes each read what they keep. Absent: lanes read all and choose. */
  readonly pickLanes?: PickLanes;
  /** A vector whose lanes lie at steps as one LOAD. Left out where programs read it lane by lane. */
  readonly stepped?: SteppedLoad;
  /** Costs of contractions. Absent: as measured in WebAssembly. */
  readonly products?: ProductCosts;
  /** Rewrites a program to the dtypes that the target computes in. Absent for targets that compute in all dtypes they hold. */
  legalize?(program: Program, caps: TargetCaps): Program;
}

/** A target, and its lowering. */
export interface CodegenCaps extends TargetCaps {
  readonly lowering: NestLowering;
}

/**
 * What the scheduler gives a template and what it gets back.
 *
 * The scheduler always describes work as a plain loop nest (LoopKernel); that description is complete and correct by itself.
 * For work a template may know better, it adds a hint that says which node is the contraction and how its ranges are
 * classified. A template returns dispatches, or null: then the loop nest is lowered as it stands.
 */
import type { EngineCaps, IEngine } from '../engine/engine.ts';
import type { ProductLibrary } from '../engine/library.ts';
import type { KNode, KNodeOf, LoopKernel, LoopStore, Program } from '../ir/ir.ts';
import type { ProgramBuilder } from '../ir/builder/builder.ts';
import type { Exprs } from '../ir/expr.ts';
import type { legalize } from '../arithmetic/legalize.ts';
import type { reduceColumns } from './linearize/columns.ts';
import type { Parts, State } from './linearize/group.ts';
import type { Contraction } from '../contraction/contraction.ts';

type Range = KNodeOf<'RANGE'>;

/**
 * A contraction inside a LoopKernel: `reduce` = REDUCE sum of MUL(a, b) over the k ranges. Every store's value depends on
 * the contraction only through `reduce` (that is the epilogue), and every store's ranges are batch + m + n in some order
 * (several stores share the same range objects). `a` depends on batch, m, k ranges only, `b` on batch, n, k only; both are
 * arbitrary expressions (views, gates for padding, fused elementwise prologues).
 */
export interface ContractionHint {
  readonly reduce: KNodeOf<'REDUCE'>;
  readonly a: KNode;
  readonly b: KNode;
  readonly batch: readonly Range[];
  readonly m: readonly Range[];
  readonly n: readonly Range[];
  readonly k: readonly Range[];
  /** Present for convolutions: the roles of the ranges, for templates that use the spatial structure. */
  readonly conv?: ConvRoles;
}

/** Ranges of a convolution and its geometry; spatial arrays have one entry per spatial axis. */
export interface ConvRoles {
  readonly image: Range | null;
  readonly outFeature: Range | null;
  readonly group: Range | null;
  readonly inFeature: Range | null;
  readonly outSpatial: readonly Range[];
  readonly kernelSpatial: readonly Range[];
  readonly stride: readonly number[];
  readonly padLow: readonly number[];
  readonly lhsDilation: readonly number[];
  readonly rhsDilation: readonly number[];
  readonly inSpatial: readonly number[];
  /** The PARAM of the input and of the kernel where they are plain row-major tensors, else null. */
  readonly lhs: KNodeOf<'PARAM'> | null;
  readonly rhs: KNodeOf<'PARAM'> | null;
}

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

/** What was measured, for engines with groups of threads or a library for products (tuning/). */
export interface TileChoices {
  /** The engine's library, if it has one. */
  readonly library?: ProductLibrary | null;
  /** Name of what was chosen for a class of contractions (contraction/choice.ts); undefined if nothing was measured. */
  find(key: string): string | undefined;
  /** Told of every contraction that is lowered. */
  note(key: string, kernel: LoopKernel, e: Exprs): void;
}

/** Lowers a hinted kernel for an engine, or returns null to decline. `e` is the factory that made the kernel's nodes. */
export type ContractionTemplate = (
  kernel: LoopKernel,
  hint: ContractionHint,
  e: Exprs,
  caps: EngineCaps,
  choices?: TileChoices,
) => Lowered | null;

/** A way to lower a contraction, by name. */
export type Way = readonly [name: string, lower: () => Lowered];

/** What one kind of engine needs to have kernels shaped for it (contraction/lowering.ts). */
export interface Lowering {
  /** Kinds, order and splits of the loops of nests whose loops are merged. */
  shape(nests: readonly (readonly LoopStore[])[], e: Exprs, caps: EngineCaps): LoopStore[];
  /** Dispatches of a kernel around a contraction; null where the plain loop nest is as good. */
  contraction(kernel: LoopKernel, hint: ContractionHint, e: Exprs, engine: IEngine): Lowered | null;
  /** The parts that the threads of a group have of a reduction as one. Left out where no threads reduce together. */
  acrossThreads?(b: ProgramBuilder, parts: Parts, threads: number, caps: EngineCaps): State;
  /** Reductions with a result for every column, in group memory. Left out where `shape` makes no columns. */
  readonly columns?: typeof reduceColumns;
  /** A program in the dtypes that the engine computes in. Left out for engines that compute in all they hold. */
  readonly legalize?: typeof legalize;
  /** What may be measured for a contraction, the default first. */
  ways(c: Contraction, kernel: LoopKernel, e: Exprs, caps: EngineCaps): Way[];
  /** The engine is used for the first time; `forget` when kernels should be lowered anew. */
  start?(engine: IEngine, forget: () => void): void;
}

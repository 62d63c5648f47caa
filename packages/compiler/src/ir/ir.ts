/**
 * The kernel IR: one node type, two stages.
 *
 * Stage A (a *loop nest*) is a set of stores whose values are expression DAGs over RANGE leaves; the planner
 * builds it and `codegen/loops/optimize.ts` shapes it by splitting ranges and changing their kinds. Stage B (a *program*) is a flat list
 * of nodes in execution order, and is all that emitters and the reference interpreter ever see.
 *
 * Value nodes (constants, loads, arithmetic) are the same in both stages. Nodes are immutable; `builder/builder.ts` makes
 * them (hash-consed for pure values), `verify/verify.ts` checks them, `print.ts` shows them.
 *
 * Numeric meaning (docs/numerics.md): MAX and MIN propagate NaN; IDIV and IREM truncate, x / 0 gives 0,
 * INT_MIN / -1 wraps; float to integer CAST saturates and NaN gives 0; float to bool CAST is true for all but zeros, denormal
 * numbers too, where targets compare those as 0; FMA rounds once; nothing contracts or reassociates by itself. Every operation on a dtype smaller than 32 bits wraps or rounds to it; engines that compute in
 * 32 bits only get programs without such operations (arithmetic/legalize.ts).
 */
import type { DType } from '../shape/dtype.ts';
import type { MatrixTile } from './matrix.ts';
import type { BinaryOp, ReduceOp, TernaryOp, UnaryOp, ValueOp } from './operations.ts';

/** How a RANGE is executed. `loop` means: the axes pass has not decided yet. */
export type RangeKind =
  | 'loop'
  | 'grid'
  | 'local'
  | 'serial'
  | 'vector'
  | 'column'
  | 'unroll'
  | 'interleaved'
  | 'reduce';

/** What a thread may ask about its position. */
export type SpecialKind = 'group' | 'local' | 'subgroup' | 'subgroups' | 'leader';

/** Where a block of memory declared inside a kernel lives. On engines without SIMT a group is one thread. */
export interface SharedArg {
  readonly name: string;
  readonly length: number;
}

/** The argument of each operation. */
export interface KArgs {
  // --- declarations
  /** A tensor in device memory. */
  PARAM: ParamArg;
  /** A number given at dispatch; never a constant of the kernel. `low` and `high` bound an integer, if known. */
  SCALAR: { readonly slot: number; readonly low?: number; readonly high?: number };
  /** Memory private to one group: workgroup memory on GPUs, a scratch region of the thread on CPUs. Uninitialised. */
  SHARED: SharedArg;
  /** `length` mutable registers of this dtype and lanes, read with LOAD and written with STORE at constant indices. Uninitialised. */
  REG: { readonly name: string; readonly length: number };
  /** A literal; `lanes` copies of it. bool is 0 or 1. */
  CONST: { readonly value: number | bigint };
  /**
   * Index of the running group or of the thread in the group (int32). Of subgroups, axis 0: number of the thread's subgroup in the group,
   * how many subgroups the group has; 1 in one thread of every subgroup and 0 in the others. Only where `caps.subgroups` says so.
   * `nest` has no meaning when a program runs: equal indices are different nodes where nests know different things of them.
   */
  SPECIAL: { readonly kind: SpecialKind; readonly axis: 0 | 1 | 2; readonly nest?: number };
  // --- stage A only
  /**
   * Loop variable (int32), counts 0 .. extent-1. `id` is unique. src = [limit?]: an int32 expression of outer ranges that ends
   * the range before its extent (the last chunk of a split range). Kind 'vector' makes values depending on it vectors; the
   * extent may be any: linearize writes whole vectors, then the rest one by one. Kind 'column' is such a range too, where
   * reductions that depend on it are computed for all of it before it is opened (codegen/linearize/columns.ts). Kind 'unroll' is written out
   * for every iteration; 'interleaved' too, where vector loops inside go some steps for one iteration, then for the next.
   */
  RANGE: { readonly id: number; readonly extent: number; readonly kind: RangeKind };
  /** src = [value, ...ranges]. Position for arg variants is row-major over the ranges in that order. */
  REDUCE: { readonly op: ReduceOp };
  /**
   * src = [value, ...ranges]. Computes value over the ranges once into group-private memory (row-major over the ranges);
   * consumers read it with LOAD(stage, index). Placed at the outermost point where its other ranges are open.
   */
  STAGE: { readonly space: 'shared' | 'reg' };
  // --- memory. src: LOAD [memory, index, gate?, alt?]; STORE [memory, index, value, gate?]; memory = PARAM | SHARED | REG | STAGE.
  /**
   * Index counts elements (int32, scalar). lanes > 1 loads consecutive elements. A false gate (bool scalar) loads `alt`
   * without touching memory. With a step, two or more, lanes lie so many elements apart: a vector from a PARAM that is only read, without a
   * gate. Only targets that ask for it (`stepped` of their lowering) get it.
   */
  LOAD: { readonly step: number } | null;
  STORE: null;
  /** src [memory, index, value, gate?]; atomic combine. */
  ATOMIC: { readonly op: 'add' | 'max' | 'min' | 'or' };
  // --- stage B control. LOOP src [extent] (int32, any value; zero or less runs never) and is itself the loop variable. IF src [cond].
  LOOP: { readonly unrollHint?: boolean } | null;
  ENDLOOP: null;
  IF: null;
  ENDIF: null;
  /**
   * All threads of the group wait for each other; what they did to group memory before, all see. With a part only neighbours by number wait, so many
   * of them, a power of two that divides the group: thread t waits for those t' with t / part = t' / part. A barrier for the group may stand in its
   * place, so all threads of the group get to it or none.
   */
  BARRIER: { readonly part: number } | null;
  /**
   * src [value], a scalar of four bytes: the values of all threads of the thread's subgroup in one, which each of them gets. `max` and `min`
   * take integers: what they do to NaN no device promises. Which threads form a subgroup, and in which order they are taken, the device
   * says. Like a BARRIER it stands where all threads of the group get to or none; it orders no memory.
   */
  SUBGROUP: { readonly op: 'sum' | 'prod' | 'max' | 'min' };
  /**
   * src [a, b, c], what the thread holds of three matrices (`elementOf` in matrix.ts): its part of a b + c, float32. Products are exact. In which
   * order they are added to c, and how those sums are rounded, the device says; here one after another, each sum rounded to nearest. All threads of
   * a group get to it or none, and a group has whole sets of 32.
   */
  MATRIX: { readonly tile: MatrixTile };
  /**
   * src [SHARED, index]: what the thread holds of a factor of MATRIX whose element at `row` and `step` of the sum lies at
   * index + row * across + step * along. The index is the same for all 32 threads. One of the distances is 1; the other one and the index are
   * multiples of 16 bytes. It stands where a MATRIX may.
   */
  FRAGMENT: { readonly tile: MatrixTile; readonly part: 'a' | 'b'; readonly across: number; readonly along: number };
  /**
   * src [SHARED, index, PARAM, index, gate?]: copies `lanes` elements, 4, 8 or 16 bytes, beside what the thread goes on to do; where the gate is
   * closed, zeros. Both indices are multiples of `lanes`, and the PARAM is only read. Until the copy is complete, the target must not be read.
   */
  COPY: { readonly lanes: number };
  /** The copies that the thread has asked for since the last one are a batch. */
  COMMIT: null;
  /** Goes on when at most so many of the thread's last batches are under way. What is there, other threads see behind a BARRIER. */
  WAIT: { readonly pending: number };
  // --- types
  /** Value conversion, rounded once; see the numeric meaning above. Integers wrap. Anything to bool is `!= 0`. */
  CAST: null;
  /** Same bits, same size. */
  BITCAST: null;
  // --- vectors. VEC src: `lanes` scalars, or one scalar splat. LANE src [vector], arg lane. IOTA: the vector 0, 1, .. lanes-1 (int32).
  VEC: null;
  LANE: { readonly lane: number };
  IOTA: null;
}

/** The least number of sources of each operation that has any; value operations have as many as operands (KSrcOf). */
export interface KSrc {
  /** Value, ranges. */
  REDUCE: readonly [KValue, ...KNodeOf<'RANGE'>[]];
  STAGE: readonly [KValue, ...KNodeOf<'RANGE'>[]];
  /** Memory, index, gate?, alternative? */
  LOAD: readonly [KMemory, KValue, ...KValue[]];
  /** Memory, index, value, gate? */
  STORE: readonly [KMemory, KValue, KValue, ...KValue[]];
  ATOMIC: readonly [KMemory, KValue, KValue, ...KValue[]];
  LOOP: readonly [KValue, ...KValue[]];
  IF: readonly [KValue, ...KValue[]];
  SUBGROUP: readonly [KValue, ...KValue[]];
  /** What the thread holds of a, b and c. */
  MATRIX: readonly [KValue, KValue, KValue, ...KValue[]];
  FRAGMENT: readonly [KMemory, KValue, ...KValue[]];
  /** Group memory and index, tensor and index, gate? */
  COPY: readonly [KMemory, KValue, KMemory, KValue, ...KValue[]];
  CAST: readonly [KValue, ...KValue[]];
  BITCAST: readonly [KValue, ...KValue[]];
  VEC: readonly [KValue, ...KValue[]];
  LANE: readonly [KValue, ...KValue[]];
}

/** The operations of nodes: those of values, and those of loops, memory and threads. */
export type KOp = ValueOp | keyof KArgs;
/** Operations of loop nests, which no program has. */
export type NestOp = 'RANGE' | 'REDUCE' | 'STAGE';

/** Operations without a value. */
export type Statement = 'STORE' | 'ATOMIC' | 'ENDLOOP' | 'IF' | 'ENDIF' | 'BARRIER' | 'COPY' | 'COMMIT' | 'WAIT';

/** The argument type of an operation; value operations have none (null). */
export type KArg<O extends KOp> = O extends keyof KArgs ? KArgs[O] : null;

/** The sources of an operation. Those it may have besides come as a rest, so that the sources of any node can be asked for by number. */
export type KSrcOf<O extends KOp> = O extends keyof KSrc
  ? KSrc[O]
  : O extends UnaryOp
    ? readonly [KValue, ...KValue[]]
    : O extends BinaryOp
      ? readonly [KValue, KValue, ...KValue[]]
      : O extends TernaryOp
        ? readonly [KValue, KValue, KValue, ...KValue[]]
        : readonly KNode[];

/** A node of one of some operations. */
export type KNodeAmong<Ops extends KOp> = { readonly [O in Ops]: KNodeOf<O> }[Ops];

/** One node of either stage. Statements (STORE, LOOP's end, BARRIER ...) carry dtype 'void'. */
export type KNode = KNodeAmong<KOp>;

/** A node that has a value, or is memory: not a statement. All sources are, but those that end blocks. */
export type KValue = KNodeAmong<Exclude<KOp, Statement>>;

/** What LOAD and STORE go to. */
export type KMemory = KNodeAmong<'PARAM' | 'SHARED' | 'REG' | 'STAGE'>;

/** A node of a program's body. */
export type ProgramNode = KNodeAmong<Exclude<KOp, NestOp>>;

/** A node of one operation. */
export interface KNodeOf<O extends KOp> {
  readonly op: O;
  readonly dtype: O extends Statement ? 'void' : DType;
  readonly lanes: number;
  readonly src: KSrcOf<O>;
  readonly arg: KArg<O>;
}

/** A store of stage A: `ranges` are its loops in order, outermost first. */
export interface LoopStore {
  readonly store: KNodeOf<'STORE'>;
  readonly ranges: readonly KNodeOf<'RANGE'>[];
}

/** One step of shaping loops (codegen/loops/transforms.ts): what was done, to which loops, how. `printTransforms` (print.ts) shows a list of them. */
export interface Transform {
  readonly name: string;
  /** Ids of the loops, and of their present replacements. */
  readonly loops: readonly number[];
  readonly made: readonly number[];
  readonly args: readonly (string | number)[];
}

/** Stage A: what the planner hands over. Stores with the same leading RANGE objects share those loops. */
export interface LoopKernel {
  readonly name: string;
  readonly params: readonly KNodeOf<'PARAM'>[];
  readonly scalars: readonly DType[];
  readonly stores: readonly LoopStore[];
  /** What was done to its loops so far. */
  readonly transforms?: readonly Transform[] | undefined;
}

/** What a kernel says of a buffer it is given. */
export interface ParamArg {
  readonly slot: number;
  readonly access: 'read' | 'write' | 'readwrite';
  /** Elements the kernel may touch. */
  readonly length: number;
  /** 1 where fewer may be bound: the size that is given at dispatch decides. */
  readonly fewer?: 1 | undefined;
}

/** Stage B: what emitters take. `grid` counts groups, `group` threads in a group ([1,1,1] without SIMT). */
export interface Program {
  readonly name: string;
  readonly params: readonly KNodeOf<'PARAM'>[];
  readonly scalars: readonly DType[];
  readonly grid: readonly [number, number, number];
  readonly group: readonly [number, number, number];
  /** How many groups of the grid run, an int32 expression of a size among the scalars; absent if all do. */
  readonly groups?: KNode | undefined;
  /** Execution order; every src of a node comes before it (in the same or an enclosing block). */
  readonly body: readonly ProgramNode[];
  /** Rough cost of one group in arithmetic operations and bytes moved, for placement, work splitting and profiles. */
  readonly cost: { readonly flops: number; readonly bytes: number };
  /** How the loops of its nest were shaped. */
  readonly transforms?: readonly Transform[] | undefined;
  /** Of a program that an earlier process has compiled, and which is as engines take it: its code, where the engine had some to keep. */
  readonly kept?: KeptCode | null;
  /** What it computes, if that is a product which a library may compute instead (contraction/contraction.ts). */
  readonly product?: Product<Count>;
}

/** What an engine made of a program, as plain data: an equal engine of another process takes it with an equal program. */
export type KeptCode = Readonly<Record<string, string | readonly number[] | Uint8Array>>;

// What a program computes, where that is a product of matrices or a convolution and nothing else: enough for a library of the device to run
// in its place. The program stays the definition, and is what runs where there is no such library.

/**
 * A number of a product: fixed, or given at dispatch as a sum of terms, each a factor times scalars of the program by their slots. `[[3, 0, 1], [-2]]`
 * is 3 s0 s1 - 2.
 */
export type Count = number | readonly (readonly [factor: number, ...slots: number[]])[];

/** A product of two tensors `a` and `b`, stored to `c`. `N`: `Count` as long as numbers may hang on what is given at dispatch. */
export type Product<N = number> = MatrixProduct<N> | ConvolutionProduct<N>;

/** What all products have. */
interface AnyProduct<Operand> {
  /** Of the factors. Sums of 16-bit floats are of float32. */
  readonly dtype: DType;
  /** Dtype of the stored sums: `dtype`, or float32 if that has 16 bits. */
  readonly result: DType;
  readonly a: Operand;
  readonly b: Operand;
  /** Is overwritten. */
  readonly c: Operand;
}

/** Matrices in memory, row-major. Offset, stride and distance count elements. */
export interface MatrixOperand<N = number> {
  /** PARAM slot of the program. */
  readonly slot: number;
  /** The first element. */
  readonly offset: N;
  /** From one row to the next as they lie in memory. */
  readonly stride: N;
  /** From one matrix of the batch to the next. */
  readonly distance: N;
  /** Rows in memory are columns of the matrix. */
  readonly transposed: boolean;
}

/** c = a b for `batch` pairs: a is m x k, b is k x n, and c m x n and never transposed. */
export interface MatrixProduct<N = number> extends AnyProduct<MatrixOperand<N>> {
  readonly kind: 'matrices';
  readonly m: N;
  readonly n: N;
  readonly k: N;
  readonly batch: N;
}

/** Of rows and of columns. */
export type Pair = readonly [rows: number, columns: number];

/** A tensor of four axes in memory. Offset and strides count elements. */
export interface ImageOperand {
  /** PARAM slot of the program. */
  readonly slot: number;
  /** The first element. */
  readonly offset: number;
  /** From one image, channel, row and column to the next; of a kernel from one feature, channel, row and column. */
  readonly strides: readonly [outer: number, channel: number, row: number, column: number];
}

/** The result of a convolution, or its gradient by one of the factors. */
export type ConvolutionPass = 'forward' | 'input' | 'kernel';

/**
 * A convolution in two dimensions y = x * w, or a gradient of it:
 *
 *     y[n, o, i, j] = sum over c, r, s of x[n, c, i * stride - padding + r * dilation, ...] w[o, c, r, s]
 *
 * x is [images, groups * channels, ...size], w [groups * features, channels, ...kernel] in rows without gaps, y [images, groups * features,
 * ...positions]; x is 0 outside of its size. Features of a group have the channels of that group. `forward`: a, b, c are x, w, y. `input`: they
 * are y, w, x: the sum over all y that x goes into. `kernel`: x, y, w.
 */
export interface ConvolutionProduct<N = number> extends AnyProduct<ImageOperand> {
  readonly kind: 'convolution';
  readonly pass: ConvolutionPass;
  readonly images: N;
  readonly groups: number;
  /** Of one group. */
  readonly channels: number;
  readonly features: number;
  readonly size: Pair;
  readonly kernel: Pair;
  readonly positions: Pair;
  readonly stride: Pair;
  /** At both ends. */
  readonly padding: Pair;
  readonly dilation: Pair;
  /** The kernel's elements lie the other way round along rows and columns: w[o, c, kernel - 1 - r, ...]. */
  readonly flipped: boolean;
}

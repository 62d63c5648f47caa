/**
 * The graph primitives that every program carries, and the attributes each one has. All others are added to these interfaces by the files
 * that define them (primitives/).
 *
 * What else is known of a primitive is in its definition (graph/definition.ts). An operation that can be written with primitives belongs in
 * `ops/`, not here.
 *
 * Elementwise primitives (unary, binary, where, fma) broadcast like NumPy: sources of different shapes align at the trailing axes
 * and axes of size 1 (or missing ones) stretch. Their sources have one dtype (but for where's condition); dtypes never mix, `cast` is
 * explicit. All other primitives take shapes exactly as described. Any axis may have size 0.
 */
import type { DType } from '../shape/dtype.ts';

/** Functions of one value that every program carries. Definitions add theirs. */
export interface UnaryAttrs extends CommonUnaryAttrs {}
/** Functions of two values that every program carries. Definitions add theirs. */
export interface BinaryAttrs extends CommonBinaryAttrs {}
// biome-ignore format: a table of operations reads better grouped
type CommonUnaryAttrs = Record<
  'neg' | 'not' | 'abs' | 'sign' | 'sqrt' | 'rsqrt' | 'reciprocal' | 'floor' | 'exp' | 'log' | 'isNaN', null>;
// biome-ignore format: a table of operations reads better grouped
type CommonBinaryAttrs = Record<
  | 'add' | 'sub' | 'mul' | 'div' | 'idiv' | 'irem' | 'maximum' | 'minimum'
  | 'and' | 'or' | 'xor' | 'shl' | 'shr' | 'lt' | 'le' | 'eq', null>;

/** A window of `conv`-like operations along the spatial axes; arrays have one entry per spatial axis. */
export interface ConvAttr {
  readonly stride: readonly number[];
  /** Zeros added before and after, may be negative (cropping). */
  readonly padLow: readonly number[];
  readonly padHigh: readonly number[];
  /** Zeros inserted between elements of the input (transposed convolution) and of the kernel (dilation). */
  readonly lhsDilation: readonly number[];
  readonly rhsDilation: readonly number[];
  /** Groups of features; lhs [N, C, ...], rhs [O, C / groups, ...], result [N, O, ...]. Correlation: the kernel is not flipped. */
  readonly groups: number;
  /**
   * Groups of the batch (needed to differentiate grouped convolution by its kernel): lhs batch is split in this many
   * groups, group j convolved with slice j of rhs's O; result [N / batchGroups, O, ...]. 1 for ordinary use and where groups > 1.
   */
  readonly batchGroups: number;
}

/** Attributes of common primitives. All arrays are frozen plain number arrays. */
export interface CommonAttrs extends CommonUnaryAttrs, CommonBinaryAttrs {
  // leaves
  /** Realised data given from outside: storage is there from the start. */
  buffer: { readonly shape: readonly number[]; readonly dtype: DType };
  /** A number bound at each run: 0-d, not part of the plan key. The only mutable attribute value of the graph is none: new value, new node. */
  scalar: { readonly value: number | bigint; readonly dtype: DType };
  /** A number baked into kernels, the same for every element. bool is 0 or 1. */
  constant: { readonly value: number | bigint; readonly shape: readonly number[]; readonly dtype: DType };
  /** 0, 1, 2 ... of shape [length], int32. */
  iota: { readonly length: number };
  /**
   * Random bits (uint32): element i (row-major) is the first word of Threefry-2x32-20 of counter (i, 0) under key = two
   * uint32 scalars in src. Nodes of this kind are never merged. `drawn`: the key was the generator's next, so that each call has other
   * bits; a key given by the user means the same bits wherever it is used.
   */
  randomBits: { readonly shape: readonly number[]; readonly drawn?: boolean };
  // elementwise besides unary and binary
  where: null;
  cast: { readonly dtype: DType };
  bitcast: { readonly dtype: DType };
  // reductions: axes sorted ascending, result keeps no reduced axis (ops reshape for keepDims)
  /** `ties` matters for gradients of max and min: 'share' divides equally among equals, 'first' gives all to the first. */
  reduce: {
    readonly op: 'sum' | 'prod' | 'max' | 'min';
    readonly axes: readonly number[];
    readonly ties: 'share' | 'first';
  };
  /** int32 row-major position over `axes` of the first winner; NaN wins. */
  argReduce: { readonly op: 'max' | 'min'; readonly axes: readonly number[] };
  // movement: index arithmetic only
  reshape: { readonly shape: readonly number[] };
  permute: { readonly axes: readonly number[] };
  /** Broadcast of size-1 axes to `shape` of the same rank. */
  expand: { readonly shape: readonly number[] };
  /** Per axis start, number of elements, step (step may be negative). */
  slice: { readonly start: readonly number[]; readonly length: readonly number[]; readonly step: readonly number[] };
  /** Elements of `value` before and after each axis; never negative. */
  pad: { readonly low: readonly number[]; readonly high: readonly number[]; readonly value: number | bigint };
  concat: { readonly axis: number };
  /**
   * Sliding windows over the last `size.length` axes: [..., H, W] -> [..., outH, outW, kh, kw]. Linear; transpose of `fold`.
   */
  window: {
    readonly size: readonly number[];
    readonly stride: readonly number[];
    readonly dilation: readonly number[];
  };
  /** Sum of windows back to `spatial`: [..., outH, outW, kh, kw] -> [..., H, W], computed in gather form. */
  fold: {
    readonly size: readonly number[];
    readonly stride: readonly number[];
    readonly dilation: readonly number[];
    readonly spatial: readonly number[];
  };
  // contractions
  /**
   * Sums products over the contracted axes; paired axes have equal sizes. Result [batch..., lhs free..., rhs free...]: batch
   * axes in the order of lhsBatch, free axes in the operands' own order.
   */
  dotGeneral: {
    readonly lhsBatch: readonly number[];
    readonly rhsBatch: readonly number[];
    readonly lhsContract: readonly number[];
    readonly rhsContract: readonly number[];
  };
  conv: ConvAttr;
  // barriers
  /** Same value as src[0], no gradient. Further sources are there for a custom gradient only and are not computed from. */
  stopGradient: null;
  /**
   * Same value as src[0], for computing again what was computed from it before: not merged with src[0], and nothing is computed from it until
   * src[1] is in memory. src[1] may have any shape and dtype.
   */
  after: null;
  /** Same value, must be materialised in row-major order. */
  contiguous: null;
}

/** Attributes by primitive. */
export interface Attrs extends CommonAttrs, UnaryAttrs, BinaryAttrs {}

export type PrimitiveName = keyof Attrs;

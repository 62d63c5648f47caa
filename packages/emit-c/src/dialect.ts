/** What the walk over a program (printer.ts) asks of a language. */
import type { KNode, KNodeOf, SpecialKind } from '@polygrad/core/kernel';
import type { DType } from './kernel.ts';
import type { Part, Value } from './parts.ts';

/** What a dialect may ask of the walk. */
export interface Context {
  /** The part under a name of its own if its text cannot be repeated. */
  stable(p: Part): Part;
  /** The same, and never a literal: what the language computes from it is computed when the kernel runs. */
  runtime(p: Part): Part;
  /** Declares a function before the kernel, once; gives its name. */
  helper(name: string, text: () => string): string;
  /** Adds a line at the start of the kernel, once; gives the name it defines. */
  prologue(name: string, line: () => string): string;
  /** Gives up on the program. */
  refuse(what: string): never;
}

/** Memory the kernel addresses: a PARAM or SHARED node and what it is called. */
export interface Memory {
  readonly node: KNodeOf<'PARAM'> | KNodeOf<'SHARED'>;
  readonly name: string;
  /** Some ATOMIC works on it. */
  readonly atomic: boolean;
}

export interface Dialect {
  readonly name: string;
  /** Sizes of vectors in falling order; the last is 1. */
  readonly widths: readonly number[];
  /** Sources a value is printed from. */
  operands(n: KNode): readonly KNode[];
  /** A declaration of a name for a value that never changes. */
  constantLine(name: string, value: Part): string;
  /** A declaration of a variable without a value. */
  variableLine(name: string, dtype: DType, lanes: number): string;
  constant(c: Context, dtype: DType, value: number | bigint, lanes: number): Part;
  special(c: Context, kind: SpecialKind, axis: 0 | 1 | 2): Part;
  /** The values of a subgroup in one. */
  subgroup(c: Context, op: KNodeOf<'SUBGROUP'>['arg']['op'], x: Part): Part;
  scalar(c: Context, slot: number, dtype: DType): Part;
  /** An arithmetic operation on one part; `args` are those of `operands(n)`. */
  operation(c: Context, n: KNode, args: readonly Part[]): Part;
  /** One part of the conversion `n`. */
  cast(c: Context, n: KNode, x: Part, to: DType): Part;
  bitcast(c: Context, x: Part, to: DType): Part;
  /** A vector of scalars, or of one scalar `lanes` times. */
  vector(c: Context, dtype: DType, lanes: number, scalars: readonly Part[]): Part;
  lane(c: Context, x: Part, lane: number): Part;
  /** A load of parts of those lanes; a closed gate gives `alt` and touches no memory outside. */
  load(c: Context, mem: Memory, index: Part, sizes: readonly number[], gate: Part | null, alt: Value | null): Value;
  /** One of two parts by a scalar condition. */
  choose(condition: Part, yes: Part, no: Part): Part;
  /** The lines of a store. */
  store(c: Context, mem: Memory, index: Part, value: Value): readonly string[];
  atomic(c: Context, op: KNodeOf<'ATOMIC'>['arg']['op'], mem: Memory, index: Part, value: Part): string;
  loopLines(counter: string, limit: Part, unroll: boolean): readonly string[];
  ifLine(condition: Part): string;
  barrierLines(): readonly string[];
}

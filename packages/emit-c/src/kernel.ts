/** What printing a program gives: the text and all that a driver must know to bind and launch it. */
import { type DType, type KNode, PolygradError } from '@polygrad/core/kernel';

export type { DType };

/** A buffer the kernel takes. */
export interface PrintedParam {
  /** Slot of the program's PARAM: which binding of the dispatch belongs here. */
  readonly slot: number;
  readonly access: 'read' | 'write' | 'readwrite';
  /** Element type of the program. */
  readonly dtype: DType;
  /** Bytes of one element in device memory. */
  readonly bytes: number;
  /** WGSL: number in bind group 0. OpenCL C: number of the pointer among the kernel's arguments. -1: the same memory as another one (`same`). */
  readonly binding: number;
  /** OpenCL C with `offsets`: number of the argument that takes the offset in elements (ulong); otherwise -1. */
  readonly offsetArgument: number;
}

/** A number the kernel takes. */
export interface PrintedScalar {
  readonly slot: number;
  /** Type to write: float16 scalars are given as float32 and bool as uint32 (WGSL) or uint8 (OpenCL C). */
  readonly dtype: DType;
  /** WGSL: byte offset in the uniform block. OpenCL C: number of the argument. */
  readonly at: number;
}

/** A program as source text, and what a driver must know to launch it. */
export interface PrintedKernel {
  readonly source: string;
  /** Name of the entry point. */
  readonly entry: string;
  readonly params: readonly PrintedParam[];
  readonly scalars: readonly PrintedScalar[];
  /** WGSL: bytes of the uniform block, 0 if there is none; bytes that no scalar and no group's number takes are zero. OpenCL C: 0. */
  readonly scalarBytes: number;
  /** WGSL with `pieces`: byte offset in the uniform block of the number of the first group, three words. Otherwise -1. */
  readonly groupAt: number;
  /** Groups to launch. Where the grid was folded (WGSL) it may be more than the program's. */
  readonly dispatch: readonly [number, number, number];
  /** Threads in a group. */
  readonly group: readonly [number, number, number];
  /** Bytes of group memory (SHARED) declared. */
  readonly sharedBytes: number;
  /** The IR node printed on each line of the source, for messages of the device's compiler. */
  readonly lines: readonly (KNode | null)[];
}

/**
 * A program this dialect, with these options, cannot express; engines turn it into a CompileError.
 *
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'float64', 'write', 1);
 * p.store(y, 0, p.e.constant('float64', 1));
 * printWgsl(p.build({ name: 'one' })); // throws PrintError
 */
export class PrintError extends PolygradError {
  override readonly name: string = 'PrintError';
  readonly node: KNode | null;

  constructor(dialect: string, what: string, node: KNode | null = null) {
    super('COMPILE', dialect, what);
    this.node = node;
  }
}

/** What emitting a program gives, what it is emitted for, and the error for what PTX cannot express. */
import { type DType, type KNode, PolygradError } from '@polygrad/core/kernel';

export type { DType };

/** The card and the assembler that a text is for. */
export interface PtxTarget {
  /** Major times ten and minor: 75, 80, 86, 89, 90, 100, 120. */
  readonly computeCapability: number;
  /** Version of the instruction set that the driver takes, such as '7.0'. */
  readonly isa: string;
}

/** A buffer the kernel takes: the address of its first element, eight bytes. */
export interface PtxParam {
  /** Slot of the program's PARAM: which binding of the dispatch belongs here. */
  readonly slot: number;
  readonly access: 'read' | 'write' | 'readwrite';
  readonly dtype: DType;
  /** Bytes of one element in device memory; bool has one. */
  readonly bytes: number;
  /** Byte offset in the block of parameters. */
  readonly at: number;
}

/** A number the kernel takes. */
export interface PtxScalar {
  readonly slot: number;
  /** Type to write: 16-bit floats are given as float32 and bool as uint8. */
  readonly dtype: DType;
  readonly bytes: number;
  /** Byte offset in the block of parameters. */
  readonly at: number;
}

/** A program as PTX, and all that a driver must know to load and launch it. */
export interface PtxKernel {
  readonly text: string;
  /** Name of the entry point. */
  readonly entry: string;
  /** In the order of the program's parameters, which is that of the entry's; scalars come behind them. */
  readonly params: readonly PtxParam[];
  readonly scalars: readonly PtxScalar[];
  /** Bytes of the block of parameters. */
  readonly parameterBytes: number;
  /** Bytes of group memory (SHARED), however declared. */
  readonly sharedBytes: number;
  /** Bytes of group memory to ask for at the launch: all of it or none. */
  readonly dynamicSharedBytes: number;
  /** Groups to launch. */
  readonly grid: readonly [number, number, number];
  /** Threads in a group. */
  readonly group: readonly [number, number, number];
  /** The IR node behind each line of the text. */
  readonly lines: readonly (KNode | null)[];
}

/**
 * A program that cannot be expressed as PTX; engines turn it into a CompileError.
 *
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'int8', 'write', 1);
 * p.atomic('add', y, 0, p.e.constant('int8', 1));
 * emitPtx(p.build({ name: 'one' }), { computeCapability: 75, isa: '7.0' }); // throws PtxError
 */
export class PtxError extends PolygradError {
  override readonly name: string = 'PtxError';
  readonly node: KNode | null;

  constructor(what: string, node: KNode | null = null) {
    super('COMPILE', 'ptx', what);
    this.node = node;
  }
}

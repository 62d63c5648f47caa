/** Compiled code and kernels: which code runs a program, and how it is cut into chunks. */
import { type CompiledKernel, showKernel } from '@polygrad/core/engine';
import type { CodeTable } from '@polygrad/core/engine/shaping';
import { type PackedProgram, type Program, unpackProgram } from '@polygrad/core/kernel/ir';

/** One piece of machine code. */
export class Code {
  readonly program: PackedProgram;
  readonly bytes: Uint8Array;
  /** Its number in the addon. */
  readonly number: number;
  users = 0;

  constructor(program: PackedProgram, bytes: Uint8Array, number: number) {
    this.program = program;
    this.bytes = bytes;
    this.number = number;
  }
}

/** Rough speed of one thread: floating operations and bytes per nanosecond. */
const flopsPerNs = 60;
const bytesPerNs = 30;
/** Work estimated below this runs on the calling thread alone. */
const aloneBelowNs = 5_000;
/** Least estimated time of a chunk, and chunks per thread. */
const chunkNs = 2_000;
const chunksPerThread = 16;

/** Groups that a thread takes at once; 0: the calling thread runs all. */
export function chunkOf({ cost }: Pick<Program, 'cost'>, groups: number, threads: number): number {
  const estimate = groups * (cost.flops / flopsPerNs + cost.bytes / bytesPerNs);
  if (threads === 1 || groups < 2 || estimate < aloneBelowNs) return 0;
  const chunks = Math.min(groups, threads * chunksPerThread, Math.max(threads, Math.floor(estimate / chunkNs)));
  return Math.ceil(groups / chunks);
}

/** Bytes of an element: the number in the name of its dtype, and a bool has one. */
const bytesOf = (dtype: string): number => Number(/\d+$/.exec(dtype)?.[0] ?? 8) / 8;

/** Bytes that each memory of a program must have at least. */
function leastBytes({ params }: Program): readonly number[] {
  const least: number[] = [];
  // If the size given at dispatch decides, fewer elements may be bound.
  for (const { dtype, arg } of params) least[arg.slot] = arg.fewer === 1 ? 0 : arg.length * bytesOf(dtype);
  return least;
}

export class NativeKernel implements CompiledKernel {
  /** The code table of the engine that compiled it. */
  readonly codes: CodeTable<Code>;
  readonly packed: PackedProgram;
  readonly code: Code;
  readonly name: string;
  readonly chunk: number;
  readonly least: readonly number[];
  released = false;

  constructor(codes: CodeTable<Code>, program: Program, packed: PackedProgram, code: Code, threads: number) {
    const { name, grid } = packed.head;
    this.codes = codes;
    this.least = leastBytes(program);
    this.packed = packed;
    this.code = code;
    this.name = name;
    this.chunk = chunkOf(packed.head, grid[0] * grid[1] * grid[2], threads);
  }

  /** The program, unpacked again for readers. */
  get program(): Program {
    return unpackProgram(this.packed);
  }
}

showKernel(NativeKernel.prototype, 'NativeKernel');

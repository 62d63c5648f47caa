/**
 * Compiled code and kernels: which function runs a program, how long it may take, how it is cut into chunks.
 *
 * Several kernels share one `Code` where their programs print alike; a `CodeModule` holds the functions of one compile batch.
 */
import { type CompiledKernel, showKernel } from '@polygrad/core/engine';
import type { PackedProgram, Program } from '@polygrad/core/engine/planned';
import { exportName, type FunctionBody } from './asm/module.ts';
import type { ScalarKind } from './memory/args.ts';
import type { KernelFunction, Shares, Work } from './threads/work.ts';
import type { Published } from './threads/pool.ts';

/** One WebAssembly module and who uses it. */
export class CodeModule {
  readonly exports: WebAssembly.Exports;
  readonly published: Published | null;
  users = 0;

  constructor(exports: WebAssembly.Exports, published: Published | null) {
    this.exports = exports;
    this.published = published;
  }
}

/** One function of a module. */
export class Code {
  /** The program it was first printed for. */
  readonly program: PackedProgram;
  readonly module: CodeModule;
  readonly index: number;
  readonly fn: KernelFunction;
  readonly body: FunctionBody;
  users = 0;

  constructor(program: PackedProgram, module: CodeModule, index: number, body: FunctionBody) {
    this.body = body;
    this.program = program;
    this.module = module;
    this.index = index;
    this.fn = module.exports[exportName(index)] as KernelFunction;
  }
}

/** Rough speed of one thread, for deciding whether other threads are worth asking: floating operations and bytes per nanosecond. */
const flopsPerNs = 20;
const bytesPerNs = 20;

/** Dispatches estimated below this run on the main thread alone: handing out work costs about a microsecond. */
const aloneBelowNs = 10_000;
/** Least estimated time of a chunk. */
const chunkNs = 2_000;
/** Chunks per thread: enough that threads finish together. */
const chunksPerThread = 16;
/** Most estimated time of the chunks a thread takes at once while many are left. */
const shareNs = 40_000;

/** A worker that takes so many times what its chunks are estimated at is late. Estimates are too low, as processors are slower at some work. */
const lateFactor = 8;

const alone: Shares = { chunk: 0, most: 0, patience: 0 };

/** A rough time on one thread. */
function estimateNs(cost: Program['cost'], groups: number): number {
  return groups * (cost.flops / flopsPerNs + cost.bytes / bytesPerNs);
}

/** How to share work of so many estimated nanoseconds. */
function sharesOf(estimate: number, groups: number, threads: number): Shares {
  if (threads === 1 || groups < 2 || estimate < aloneBelowNs) return alone;
  const chunks = Math.min(groups, threads * chunksPerThread, Math.max(threads, Math.floor(estimate / chunkNs)));
  const most = Math.max(1, Math.floor((shareNs * chunks) / estimate));
  return { chunk: Math.ceil(groups / chunks), most, patience: (lateFactor * most * estimate) / chunks / 1e6 };
}

/** Number of a dtype in the args block. */
const scalarKind = { float32: 0, float64: 1, int32: 2, uint32: 2, bool: 3, int64: 4, uint64: 4 } as const;

export class CpuKernel implements CompiledKernel, Work {
  readonly packed: PackedProgram;
  readonly code: Code;
  readonly name: string;
  readonly fn: KernelFunction;
  readonly slot: number;
  readonly index: number;
  readonly groups: number;
  readonly paramCount: number;
  /** How each scalar is written: 0 float32, 1 float64, 2 integer, 3 bool, 4 64-bit integer. */
  readonly scalarKinds: readonly ScalarKind[];
  readonly estimate: number;
  readonly shares: Shares;
  /**
   * Groups per call on one thread. Long dispatches are cut: code compiled fast but running slowly is exchanged for
   * optimized code only between calls.
   */
  readonly step: number;
  released = false;

  readonly #again: () => Program;

  /** `again` makes the program again. */
  constructor(packed: PackedProgram, code: Code, threads: number, again: () => Program) {
    this.#again = again;
    const { name, grid, scalars, cost } = packed.head;
    this.packed = packed;
    this.code = code;
    this.name = name;
    this.fn = code.fn;
    this.slot = code.module.published?.slot ?? -1;
    this.index = code.index;
    const [x, y, z] = grid;
    this.groups = x * y * z;
    this.paramCount = packed.paramCount;
    this.scalarKinds = scalars.map((d) => scalarKind[d as keyof typeof scalarKind]);
    this.estimate = estimateNs(cost, this.groups);
    this.shares = this.slot < 0 ? alone : sharesOf(this.estimate, this.groups, threads);
    this.step = this.estimate > 100_000 ? Math.ceil(this.groups / 16) : this.groups;
  }
  /** The program, made again: for people. */
  get program(): Program {
    return this.#again();
  }
}

showKernel(CpuKernel.prototype, 'CpuKernel');

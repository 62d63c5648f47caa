/**
 * Compiled code and kernels: which function runs a program, how long it may take, how it is cut into chunks.
 *
 * Several kernels share one `Code` where their programs print alike; a `CodeModule` holds the functions of one compile batch.
 */
import type { CompiledKernel } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel';
import { exportName } from './asm/module.ts';
import type { ScalarKind } from './memory/args.ts';
import type { KernelFunction, Published, WorkerPool } from './threads/pool.ts';

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
  readonly program: Program;
  readonly module: CodeModule;
  readonly index: number;
  readonly fn: KernelFunction;
  users = 0;

  constructor(program: Program, module: CodeModule, index: number) {
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
const chunkNs = 3_000;
/** Chunks per thread: enough that threads finish together, few enough that taking them costs nothing. */
const chunksPerThread = 16;

/** A rough time on one thread. */
export function estimateNs(cost: Program['cost'], groups: number): number {
  return groups * (cost.flops / flopsPerNs + cost.bytes / bytesPerNs);
}

/** Groups per chunk for sharing this work, or 0 if one thread should do all of it. */
export function chunkFor(estimate: number, groups: number, threads: number): number {
  if (threads === 1 || groups < 2 || estimate < aloneBelowNs) return 0;
  const chunks = Math.min(groups, threads * chunksPerThread, Math.max(threads, Math.floor(estimate / chunkNs)));
  return Math.ceil(groups / chunks);
}

/** Number of a dtype in the args block. */
const scalarKind = { float32: 0, float64: 1, int32: 2, uint32: 2, bool: 3, int64: 4, uint64: 4 } as const;

export class CpuKernel implements CompiledKernel {
  readonly program: Program;
  readonly code: Code;
  readonly groups: number;
  readonly paramCount: number;
  /** How each scalar is written: 0 float32, 1 float64, 2 integer, 3 bool, 4 64-bit integer. */
  readonly scalarKinds: readonly ScalarKind[];
  readonly estimate: number;
  readonly chunk: number;
  /**
   * Groups per call on one thread. Long dispatches are cut: code compiled fast but running slowly is exchanged for
   * optimized code only between calls.
   */
  readonly step: number;
  released = false;

  constructor(program: Program, code: Code, threads: number) {
    this.program = program;
    this.code = code;
    const [x, y, z] = program.grid;
    this.groups = x * y * z;
    this.paramCount = program.params.length;
    this.scalarKinds = program.scalars.map((d) => scalarKind[d as keyof typeof scalarKind]);
    this.estimate = estimateNs(program.cost, this.groups);
    this.chunk = code.module.published === null ? 0 : chunkFor(this.estimate, this.groups, threads);
    this.step = this.estimate > 100_000 ? Math.ceil(this.groups / 16) : this.groups;
  }
}

/** Runs groups 0 .. groups-1 of a function whose args block is written. */
export function runGroups(
  pool: WorkerPool | null,
  code: Code,
  groups: number,
  chunk: number,
  step: number,
  args: number,
  scratch: number,
): void {
  if (chunk > 0 && pool !== null && pool.ready > 0) {
    pool.run(code.fn, code.module.published!, code.index, groups, chunk, scratch);
  } else {
    for (let from = 0; from < groups; from += step) code.fn(args, from, Math.min(groups, from + step), scratch);
  }
}

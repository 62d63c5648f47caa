/**
 * The engine interface: everything a backend implements, and all that the library knows about devices.
 *
 * An engine stores bytes, compiles kernel programs and runs batches of commands in order. It knows no tensor, no shape
 * and no operation. What it can do is in `caps`; optional members exist only where the device can serve them.
 */
import type { DeviceLostError } from './errors.ts';
import type { KeptCode, Program, LoopKernel } from '@polygrad/compiler/ir/ir';
import type { TargetCaps } from '@polygrad/compiler/ir/target';
import type { Lowered, NestLowering } from '@polygrad/compiler/codegen/lowering';
import type { Contraction, ProductLibrary, Way } from '@polygrad/compiler/contraction/contraction';
import type { Exprs } from '@polygrad/compiler/ir/expr';

/** Static facts about an engine, read by the planner and by kernel lowering. */
export interface EngineCaps extends TargetCaps {
  /**
   * How loops are shaped for this engine: `threadLowering` (`engine/threads`) where `simt` is true and the engine computes in all dtypes it holds, `vectorLowering` (`engine/vectors`) where it is false,
   * `anyLowering` (`engine/threads`) for engines that can be both, have a library, or hold more. It comes with the engine, so that a page carries the ways of the engines it imports.
   */
  readonly lowering: Lowering;
  /** Largest buffer and largest binding in bytes. */
  readonly maxBufferBytes: number;
  /** Bytes that all buffers together may take, where that is known: results of more than a part of it do not wait for a flush. */
  readonly memoryBytes?: number;
  /** True where freed memory is joined with its free neighbours and given out again at the cost of a call. Large blocks are then not kept for requests of their own size alone. */
  readonly joinsFreed?: boolean;
  /** Alignment in bytes of a binding's offset. */
  readonly bindAlign: number;
  /** True where several bindings of one dispatch may lie in one buffer, one of them written (arenas work). */
  readonly arena: boolean;
}

/** Opaque device memory. Only the engine that made it may look inside. */
export interface EngineBuffer {
  readonly bytes: number;
  /** Set where the device turned out to have no memory for it, some time after `alloc`. */
  readonly refused?: Error | null;
}

/** A part of a buffer, in bytes. */
export interface Binding {
  readonly buffer: EngineBuffer;
  readonly offset: number;
  readonly bytes: number;
}

/** Kernels ready, of those asked for since all were ready last. */
export interface ReadyProgress {
  readonly done: number;
  readonly total: number;
}

/** A kernel ready to dispatch, or becoming ready: engines that compile asynchronously queue behind it. */
export interface CompiledKernel {
  readonly program: Program;
  /** Why it cannot be compiled, once that is known, on engines where `submit` does not throw that. */
  readonly failure?: Error | null;
}

/** Groups along each axis. */
export type Groups = readonly [number, number, number];

export type Command =
  | {
      readonly kind: 'dispatch';
      readonly kernel: CompiledKernel;
      /** One per PARAM slot. */
      readonly bindings: readonly Binding[];
      /** One per SCALAR slot; bigints only for 64-bit integers. */
      readonly scalars: readonly (number | bigint)[];
      /** Groups to run, where the sizes among the scalars ask for fewer than the program's grid has. */
      readonly groups?: Groups | null | undefined;
    }
  | { readonly kind: 'copy'; readonly from: Binding; readonly to: Binding }
  /** Fills with a repeated 32-bit pattern; `bytes` of the binding is a multiple of 4. */
  | { readonly kind: 'fill'; readonly to: Binding; readonly pattern: number };

export interface EngineMemory {
  /** Bytes handed out by `alloc` and not yet freed. */
  readonly bytes: number;
  readonly buffers: number;
  /** Bytes reserved from the system or driver. */
  readonly reservedBytes: number;
}

export interface EngineLostInfo {
  readonly reason: 'disposed' | 'lost' | 'out-of-memory';
  readonly message: string;
  /** What the calls throw that noticed it, where the engine has such an error. */
  readonly error?: DeviceLostError;
}

/** A compiled kernel in its device's own language, for people. */
export interface KernelSource {
  /** 'wasm', 'wgsl', 'opencl', 'ptx' ... */
  readonly language: string;
  readonly text: string;
}

/** Is told what users should know about their program; see `setLogger`. */
export type Logger = (text: string) => void;

/** Texts by key, kept between runs. `load` gives null for what is not there. */
export interface TuningStore {
  load(key: string): Promise<string | null>;
  save(key: string, value: string): Promise<void>;
}

/** How an engine wants its tiles of threads chosen (tuning/). */
export interface EngineTuning {
  /** Where measurements are kept between runs. */
  readonly store?: TuningStore;
  /** Measure what is new soon after it was first run, for half a second a class. Default false: only `tune()` measures. */
  readonly automatic?: boolean;
  /** A clock in milliseconds. Default `performance.now`. */
  readonly now?: () => number;
}

/** An execution engine. Commands run in the order they are submitted; `free` takes effect after them. */
export interface IEngine {
  /** Registered name: 'cpu', 'webgpu', 'opencl', 'cuda', 'reference' ... */
  readonly name: string;
  /** What a person would call the device, for reports. */
  readonly device: string;
  readonly caps: EngineCaps;
  /** Present where tiles measured on the device are loaded, or measured, without being asked. */
  readonly tuning?: EngineTuning;
  /** Present where a library of the device may compute products of matrices, if that is measured faster. */
  readonly library?: ProductLibrary;
  /** True where buffers are memory of the program itself, which `downloadSync` copies without asking a device. */
  readonly inHostMemory?: boolean;
  /** Uninitialised memory of at least `bytes` bytes. Throws OutOfMemoryError. */
  alloc(bytes: number): EngineBuffer;
  /**
   * A promise of when the device has said whether it has all memory that was asked for, the same while it is pending; null if it has. Work
   * that needs new memory waits for it, so that what cannot be done is not begun. Left out where `alloc` knows.
   */
  confirming?(): Promise<void> | null;
  free(buffer: EngineBuffer): void;
  /** Copies host bytes into device memory, in order with submitted commands. The source may change right after. */
  upload(to: Binding, data: ArrayBufferView): void;
  /** Reads device memory after everything submitted before; fills `into` from its start and resolves with it. */
  download(from: Binding, into: Uint8Array): Promise<Uint8Array>;
  /** The same without waiting for a task turn, where the device can. */
  downloadSync?(from: Binding, into: Uint8Array): Uint8Array;
  /** Makes programs ready. Returns at once; throws CompileError for programs the engine refuses. */
  compile(programs: readonly Program[]): readonly CompiledKernel[];
  /** Present where code is worth keeping between processes: all that decides, beside a program, what its code is. */
  readonly codeKey?: string;
  /** The code of a kernel, where there is a `codeKey`. An engine with that key may be given it with an equal program (`Program.kept`). */
  codeOf?(kernel: CompiledKernel): KeptCode;
  /**
   * Resolves when all kernels are ready, or found to be impossible. Left out where `compile` is done when it returns. Where the engine knows,
   * `told` hears how far it is: at once, and after every kernel.
   */
  ready?(told?: (progress: ReadyProgress) => void): Promise<void>;
  /**
   * A promise of when these kernels are compiled, or refused; null where `submit` would not hold up the program for any of them. Readers
   * wait for it first. Left out where `submit` never waits for that.
   */
  compiling?(kernels: readonly CompiledKernel[]): Promise<void> | null;
  /** Drops compiled kernels that no plan holds any longer. */
  release(kernels: readonly CompiledKernel[]): void;
  /**
   * Starts a batch of commands, in order. Never waits for the device unless the device has no other way. An OutOfMemoryError says that the batch may
   * be submitted again: no command of it was started, or those that were have written over nothing that it reads. An engine that cannot say so is lost.
   */
  submit(commands: readonly Command[]): void;
  /**
   * Starts a batch like `submit`, each command measured alone; resolves with nanoseconds on the device, one per command, NaN for
   * what could not be measured. Slower than `submit`, with the same results. Left out where the device has no clock.
   */
  submitTimed?(commands: readonly Command[]): Promise<readonly number[]>;
  /** What the device was given for a kernel, as text. Left out where there is none. */
  source?(kernel: CompiledKernel): Promise<KernelSource>;
  /** Resolves when everything submitted has finished. */
  idle(): Promise<void>;
  memory(): EngineMemory;
  /** Resolves when the engine can no longer be used. */
  readonly lost: Promise<EngineLostInfo>;
  dispose(): void;
}

/** How kernels are lowered for a kind of engine: `threadLowering`, `vectorLowering` or `anyLowering`. */
export interface Lowering extends NestLowering {
  /** Dispatches of a kernel around a contraction; null where the plain loop nest is as good. */
  contraction(kernel: LoopKernel, e: Exprs, engine: IEngine): Lowered | null;
  /** Loops may end at sizes that are bound, so that several sizes share a plan. */
  readonly sizes?: boolean;
  /** What may be measured for a contraction, the default first. */
  ways(c: Contraction, kernel: LoopKernel, e: Exprs, caps: EngineCaps): Way[];
  /** The engine is used for the first time; `forget` when kernels should be lowered anew. */
  start?(engine: IEngine, forget: () => void): void;
}

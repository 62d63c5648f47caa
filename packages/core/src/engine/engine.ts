/**
 * The engine interface: everything a backend implements, and all that the library knows about devices.
 *
 * An engine stores bytes, compiles kernel programs and runs batches of commands in order. It knows no tensor, no shape
 * and no operation. What it can do is in `caps`; optional members exist only where the device can serve them.
 */
import type { DType } from '../shape/dtype.ts';
import type { KOp, Program } from '../ir/ir.ts';
import type { KeepRounding } from '../arithmetic/rounded.ts';
import type { ProductLibrary } from './library.ts';
import type { Lowering } from '../codegen/contract.ts';
import type { TuningStore } from './tuning-store.ts';

/** Static facts about an engine, read by the scheduler and by kernel lowering. */
export interface EngineCaps {
  /** Dtypes that tensors may have on this engine. */
  readonly dtypes: ReadonlySet<DType>;
  /**
   * Dtypes the emitter computes in; by default bool and those of four bytes or more. Programs reach the engine with the other
   * ones only loaded, stored, moved and cast to and from 32-bit numbers, 16-bit floats as uint16 (arithmetic/legalize.ts).
   */
  readonly computes?: ReadonlySet<DType>;
  /** Bytes of one element in device memory where that differs from the host (bool on engines that store words). */
  readonly storageBytes?: Partial<Readonly<Record<DType, number>>>;
  /** Value operations the emitter prints itself besides BASE_OPS; all others are decomposed in the IR. */
  readonly nativeOps: ReadonlySet<KOp>;
  /**
   * Present where the device's compiler regroups float arithmetic: puts ROUNDED, which must be among `nativeOps`, where that would show
   * (`keepRounding` of `engine/threads`).
   */
  readonly keepRounding?: KeepRounding | undefined;
  /** True where a group has several threads, workgroup memory and barriers. */
  readonly simt: boolean;
  /**
   * How loops are shaped for this engine: `threadLowering` (`engine/threads`) where `simt` is true and the engine computes in all dtypes it holds, `vectorLowering` (`engine/vectors`) where it is false,
   * `anyLowering` (`engine/threads`) for engines that can be both, have a library, or hold more. It comes with the engine, so that a page carries the ways of the engines it imports.
   */
  readonly lowering: Lowering;
  /** Bytes of one hardware vector the emitter handles (16 for SIMD128), or the element size for scalar engines. */
  readonly vectorBytes: number;
  /** Bytes of group-private memory a kernel may declare (SHARED). */
  readonly sharedBytes: number;
  /**
   * True where SHARED is ordinary memory and threads of a group run one after another: software devices. Then nothing is copied
   * there to be read faster.
   */
  readonly sharedIsMemory?: boolean;
  /**
   * Subgroups, whose threads are reduced over without group memory (SUBGROUP of the kernel IR). `least` and `most` threads form one; a group of
   * as many threads as both is a single one. With `numbered` a thread knows the number of its own (SPECIAL). Left out where there are none.
   */
  readonly subgroups?: { readonly least: number; readonly most: number; readonly numbered: boolean } | undefined;
  /** Most threads in a group. */
  readonly maxGroup: number;
  /** Most tensors one kernel may bind. */
  readonly maxBindings: number;
  /** Largest buffer and largest binding in bytes. */
  readonly maxBufferBytes: number;
  /** Alignment in bytes of a binding's offset. */
  readonly bindAlign: number;
  /** True where several bindings of one dispatch may lie in one buffer, one of them written (arenas work). */
  readonly arena: boolean;
  /** Parallel workers that take groups (CPU threads, compute units): a hint for choosing grid sizes, never for results. */
  readonly parallelism: number;
  readonly atomics: ReadonlySet<'add' | 'max' | 'min' | 'or'>;
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

export type Command =
  | {
      readonly kind: 'dispatch';
      readonly kernel: CompiledKernel;
      /** One per PARAM slot. */
      readonly bindings: readonly Binding[];
      /** One per SCALAR slot; bigints only for 64-bit integers. */
      readonly scalars: readonly (number | bigint)[];
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
}

/** A compiled kernel in its device's own language, for people. */
export interface KernelSource {
  /** 'wasm', 'wgsl', 'opencl', 'ptx' ... */
  readonly language: string;
  readonly text: string;
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
  /** Starts a batch of commands, in order. Never waits for the device unless the device has no other way. */
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

/**
 * The engine interface: everything a backend implements, and all that the library knows about devices.
 *
 * An engine stores bytes, compiles kernel programs and runs batches of commands in order. It knows no tensor, no shape
 * and no operation. What it can do is in `caps`; optional members exist only where the device can serve them.
 */
import type { DeviceLostError } from './errors.ts';
import type { KeptCode, Program, LoopKernel } from '@polygrad/compiler/ir/ir';
import type { TargetCaps } from '@polygrad/compiler/ir/target';
import type { Lowered, NestLowering, Way } from '@polygrad/compiler/codegen/lowering';
import type { Contraction } from '@polygrad/compiler/contraction/contraction';
import type { ProductLibrary } from '@polygrad/compiler/contraction/template';
import type { ProgramChoices } from '@polygrad/compiler/programs/choices';
import type { Exprs } from '@polygrad/compiler/ir/expr';

/** Static facts about an engine, read by the planner and by kernel lowering. */
export interface EngineCaps extends TargetCaps {
  /**
   * How loops are shaped for this engine. It comes with the engine, so a page carries only the lowering of its engines.
   *
   * - `vectorLowering` (`engine/vectors`): `simt` is false.
   * - `threadLowering` (`engine/threads`): `simt` is true, and the engine computes in every dtype that it holds.
   * - `anyLowering` (`engine/threads`): the engine can be either, has a library, or holds dtypes in which it does not compute.
   */
  readonly lowering: Lowering;
  /** Largest buffer and largest binding in bytes. */
  readonly maxBufferBytes: number;
  /** Bytes that all buffers together may take, if known: when pending results reach a fraction of it, a flush starts. */
  readonly memoryBytes?: number;
  /** True if freed memory merges with free neighbours and allocating is cheap. Kept large blocks may then be freed for requests of other sizes. */
  readonly mergesFreed?: boolean;
  /** Alignment in bytes of a binding's offset. */
  readonly bindAlign: number;
  /** True if one dispatch may bind several parts of one buffer, one of them written (arenas work). */
  readonly arena: boolean;
}

/** Opaque device memory. Only the engine that made it looks inside. */
export interface EngineBuffer {
  readonly bytes: number;
  /** Set if the device reported, some time after `alloc`, that it has no memory for it. */
  readonly refused?: Error | null;
}

/** A part of a buffer, in bytes. */
export interface Binding {
  readonly buffer: EngineBuffer;
  readonly offset: number;
  readonly bytes: number;
}

/** Number of kernels that are ready, of those requested since all were ready last. */
export interface ReadyProgress {
  readonly done: number;
  readonly total: number;
}

/** A kernel that can be dispatched, or will be: engines that compile asynchronously queue dispatches behind compiling. */
export interface CompiledKernel {
  readonly program: Program;
  /** Why it cannot be compiled, once known, on engines whose `submit` does not throw that. */
  readonly failure?: Error | null;
}

/** Groups along each axis. */
export type Groups = readonly [number, number, number];

export interface DispatchCommand {
  readonly kind: 'dispatch';
  readonly kernel: CompiledKernel;
  /** The binding of each PARAM slot. */
  readonly bindings: readonly Binding[];
  /** The number of each SCALAR slot; bigints only for 64-bit integers. */
  readonly scalars: readonly (number | bigint)[];
  /** Groups to run, if the sizes among the scalars need fewer than the program's grid has. */
  readonly groups?: Groups | null | undefined;
}

/** Neither a command nor a list of them is changed once it was submitted: engines may keep them. The same list may be submitted again. */
export type Command =
  | DispatchCommand
  | { readonly kind: 'copy'; readonly from: Binding; readonly to: Binding }
  /** Fills with a repeated 32-bit pattern; `bytes` of the binding is a multiple of 4. */
  | { readonly kind: 'fill'; readonly to: Binding; readonly pattern: number };

/** What an engine's memory holds, in bytes. */
export interface EngineMemory {
  /** Bytes handed out by `alloc` and not yet freed. */
  readonly bytes: number;
  readonly buffers: number;
  /** Bytes reserved from the system or driver. */
  readonly reservedBytes: number;
}

/** Why an engine computes no more. */
export interface EngineLostInfo {
  readonly reason: 'disposed' | 'lost' | 'out-of-memory';
  readonly message: string;
  /** The error of the call that noticed the loss, if there is one. */
  readonly error?: DeviceLostError;
}

/** A compiled kernel in its device's own language, for reading. */
export interface KernelSource {
  /** 'wasm', 'wgsl', 'opencl', 'ptx' ... */
  readonly language: string;
  readonly text: string;
}

/** Receives hints about a user's program; see `setLogger`. */
export type Logger = (text: string) => void;

/** Texts by key, kept between runs. `load` returns null for missing keys. */
export interface TuningStore {
  load(key: string): Promise<string | null>;
  save(key: string, value: string): Promise<void>;
}

/** How an engine's tiles of threads are chosen (tuning/). */
export interface EngineTuning {
  /** Where measurements are kept between runs. */
  readonly store?: TuningStore;
  /** Measure new classes soon after their first run, half a second each. Default false: only `tune()` measures. */
  readonly automatic?: boolean;
  /** A clock in milliseconds. Default `performance.now`. */
  readonly now?: () => number;
}

/** An execution engine. Commands run in the order they are submitted; `free` takes effect after them. */
export interface IEngine {
  /** Registered name: 'cpu', 'webgpu', 'opencl', 'cuda', 'reference' ... */
  readonly name: string;
  /** Name of the device for reports. */
  readonly device: string;
  readonly caps: EngineCaps;
  /** Present if tiles measured on the device are loaded, or measured, automatically. */
  readonly tuning?: EngineTuning;
  /** Present if a library of the device may compute matrix products where measurement finds it faster. */
  readonly library?: ProductLibrary;
  /** True if buffers are memory of the program itself, which `downloadSync` copies without asking a device. */
  readonly inHostMemory?: boolean;
  /** Uninitialised memory of at least `bytes` bytes. Throws OutOfMemoryError. */
  alloc(bytes: number): EngineBuffer;
  /**
   * A promise that resolves when the device has said whether it has all requested memory; null if it has said so. While it is
   * pending, every call returns the same promise. Work that needs new memory waits for it, so that it does not begin what it
   * cannot finish. Absent if `alloc` knows.
   */
  confirming?(): Promise<void> | null;
  free(buffer: EngineBuffer): void;
  /** Copies host bytes into device memory, in order with submitted commands. The source may change right after. */
  upload(to: Binding, data: ArrayBufferView): void;
  /** Reads device memory after everything submitted before; fills `into` from its start and resolves with it. */
  download(from: Binding, into: Uint8Array): Promise<Uint8Array>;
  /** The same, synchronously, where the device can. */
  downloadSync?(from: Binding, into: Uint8Array): Uint8Array;
  /** Compiles programs. Returns at once; throws CompileError for programs the engine refuses. */
  compile(programs: readonly Program[]): readonly CompiledKernel[];
  /** Present if code is worth keeping between processes: everything besides the program that the code depends on. */
  readonly codeKey?: string;
  /**
   * True if plans and code are for every device with the same capabilities and `codeKey`, and code cannot reach beyond the engine's own memory.
   * Then a program may ship them (`recordPlans`).
   */
  readonly isPortable?: boolean;
  /** The code of a kernel, if there is a `codeKey`. An engine with the same key accepts it together with an equal program (`Program.kept`). */
  codeOf?(kernel: CompiledKernel): KeptCode;
  /**
   * Resolves when all kernels are compiled or refused. Absent if `compile` is done when it returns. If the engine knows,
   * it calls `told` with the progress: at once, and after every kernel.
   */
  ready?(told?: (progress: ReadyProgress) => void): Promise<void>;
  /**
   * A promise that resolves when these kernels are compiled or refused; null if `submit` would not block for any of them. Readers
   * wait for it first. Absent if `submit` never blocks for that.
   */
  compiling?(kernels: readonly CompiledKernel[]): Promise<void> | null;
  /** Drops compiled kernels that no plan uses any more. */
  release(kernels: readonly CompiledKernel[]): void;
  /**
   * Starts a batch of commands, in order. Does not wait for the device unless the device has no other way. An OutOfMemoryError says that the batch may
   * be submitted again: no command of it was started, or those that were have written over nothing that it reads. An engine that cannot say so is lost.
   */
  submit(commands: readonly Command[]): void;
  /**
   * Starts a batch like `submit`, measuring each command separately; resolves with nanoseconds on the device, one per command, NaN where
   * measuring failed. Slower than `submit`, with the same results. Absent if the device has no clock.
   */
  submitTimed?(commands: readonly Command[]): Promise<readonly number[]>;
  /** The text given to the device for a kernel. Absent if there is none. */
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
  /** Dispatches of a kernel around another sum over pairs of elements, such as distances; null likewise. Absent: the plain loop nest. */
  pairs?(kernel: LoopKernel, e: Exprs, engine: IEngine): Lowered | null;
  /** Loops may end at sizes that are bound, so that several sizes share a plan. */
  readonly sizes?: boolean;
  /** Measured forms of programs. Absent: there is one of each. */
  choices?(engine: IEngine): ProgramChoices;
  /** Alternatives for a contraction that may be measured, the default first. Absent: there are none. */
  ways?(c: Contraction, kernel: LoopKernel, e: Exprs, caps: EngineCaps): Way[];
  /** Called when the engine is used for the first time; call `forget` when kernels should be lowered again. */
  start?(engine: IEngine, forget: () => void): void;
  /** Makes plans. It comes with engines, so that pages that load these later have it with them. */
  readonly planner: Planner;
}

/** What makes plans: planner/plan.ts says what it has. */
// biome-ignore lint/suspicious/noEmptyInterface: it is filled in by declaration merging
export interface Planner {}

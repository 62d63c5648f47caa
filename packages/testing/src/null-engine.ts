/**
 * The null engine: no device at all. It counts kernels, dispatches and bytes, so that tests can pin what the planner
 * decides. Reading data from it is an error.
 */
import {
  type Binding,
  type Command,
  type CompiledKernel,
  type EngineBuffer,
  showCaps,
  showEngine,
  showKernel,
} from '@polygrad/core/engine';
import { type DType, type EngineCaps, type IEngine, UnsupportedError } from '@polygrad/core/functions';
import type { KOp, Program } from '@polygrad/core/kernel';
import { anyLowering } from '@polygrad/core/internals';
import { HostMemory, liveBuffer } from './host-memory.ts';

/** What a null engine has seen since it was made or since `reset()`. */
export interface NullEngineCounts {
  readonly compiled: number;
  readonly dispatches: number;
  readonly submits: number;
  readonly kernels: readonly string[];
  readonly peakBytes: number;
}

/** An engine that computes nothing and counts what it is asked for. */
export interface NullEngine extends IEngine {
  counts(): NullEngineCounts;
  /** Starts counting anew; the peak starts from what is allocated now. */
  reset(): void;
}

/**
 * An engine without a device; `caps` replaces entries of the capabilities it pretends to have.
 *
 * @example
 * const engine = createNullEngine();
 * await setEngine(engine);
 * const x = rand([32, 10]);
 * flush();
 * engine.reset();
 * const y = softmax(x, 1);
 * flush();
 * engine.counts().dispatches; // 1
 */
export function createNullEngine(caps: Partial<EngineCaps> = {}): NullEngine {
  const name = 'null';
  const memory = new HostMemory(name, false);
  let compiled = 0;
  let submits = 0;
  let kernels: string[] = [];
  const refuse = (): never => {
    throw new UnsupportedError(
      name,
      'data was read from the null engine, which has none; use the reference engine to see values',
    );
  };
  return showEngine({
    name,
    device: 'none',
    caps: showCaps({
      dtypes: new Set<DType>(['float32', 'float64', 'int32', 'uint32', 'bool']),
      nativeOps: new Set<KOp>(['FMA', 'MULADD']),
      simt: false,
      lowering: anyLowering,
      vectorBytes: 16,
      sharedBytes: 1 << 20,
      maxGroup: 1,
      maxBindings: 4096,
      maxBufferBytes: 2 ** 40,
      bindAlign: 4,
      arena: true,
      parallelism: 2,
      atomics: new Set(['add', 'max', 'min', 'or'] as const),
      ...caps,
    }),
    alloc: (bytes: number): EngineBuffer => memory.alloc(bytes),
    free: (buffer: EngineBuffer) => memory.free(buffer),
    upload: (to: Binding) => {
      liveBuffer(name, to);
    },
    download: async () => refuse(),
    downloadSync: refuse,
    compile: (programs: readonly Program[]): readonly CompiledKernel[] => {
      compiled += programs.length;
      return programs.map((program) => showKernel({ program }));
    },
    release: () => {},
    submit: (commands: readonly Command[]) => {
      submits++;
      for (const command of commands) {
        if (command.kind !== 'dispatch') continue;
        for (const binding of command.bindings) liveBuffer(name, binding);
        kernels.push(command.kernel.program.name);
      }
    },
    idle: async () => {},
    memory: () => ({ bytes: memory.bytes, buffers: memory.buffers, reservedBytes: memory.bytes }),
    lost: new Promise(() => {}),
    dispose: () => {
      memory.disposed = true;
    },
    counts: () => ({
      compiled,
      dispatches: kernels.length,
      submits,
      kernels: [...kernels],
      peakBytes: memory.peakBytes,
    }),
    reset: () => {
      compiled = 0;
      submits = 0;
      kernels = [];
      memory.peakBytes = memory.bytes;
    },
  });
}

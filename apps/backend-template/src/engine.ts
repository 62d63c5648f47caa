/**
 * The engine: memory, kernels and commands of a device. This device is JavaScript itself: a buffer is an ArrayBuffer, a kernel a function over
 * typed arrays, and commands have run when `submit` returns. It knows no tensor, no shape and no operation.
 */
import {
  ArgumentError,
  type Binding,
  CompileError,
  type CompiledKernel,
  DeviceLostError,
  type EngineBuffer,
  EngineDisposedError,
  type EngineLostInfo,
  type IEngine,
  OutOfMemoryError,
  showEngine,
} from '@polygrad/core/engine';
import { hostArrays } from '@polygrad/core/engine/shaping';
import { vectorLowering } from '@polygrad/core/engine/vectors';
import { type DType, printProgram } from '@polygrad/core/kernel/ir';
import { emit, nativeOps, prelude } from './emit.ts';

export interface JavaScriptEngineOptions {
  /** Most bytes that buffers may take. Default 4 GiB. */
  readonly memoryLimit?: number;
}

export interface JavaScriptEngine extends IEngine {
  /** The device is gone: a backend does this where its driver says so. Here tests do. */
  lose(reason: string): void;
}

/** Device memory. Only this file looks inside. */
interface Memory extends EngineBuffer {
  data: ArrayBuffer | null;
}

interface Kernel extends CompiledKernel {
  readonly text: string;
  readonly call: (...values: unknown[]) => void;
}

/** Makes an engine that runs kernels as JavaScript. */
export function createJavaScriptEngine({ memoryLimit = 2 ** 32 }: JavaScriptEngineOptions = {}): JavaScriptEngine {
  if (!(memoryLimit >= 0)) throw new ArgumentError('javascript', `bad memoryLimit: ${memoryLimit}; give bytes, as in 1e9`);
  const [name, device] = ['javascript', 'JavaScript'];
  let [bytes, buffers] = [0, 0];
  let resolveLost: (info: EngineLostInfo) => void = () => {};
  const lost = new Promise<EngineLostInfo>((resolve) => {
    resolveLost = resolve;
  });
  /** Why nothing can be asked of the engine any more. */
  let ended: Error | null = null;
  const end = (error: Error, info: EngineLostInfo): void => {
    ended ??= error;
    resolveLost(info);
  };
  const check = (): void => {
    if (ended !== null) throw ended;
  };
  const dataOf = ({ buffer }: Binding): ArrayBuffer => {
    const { data } = buffer as Memory;
    if (!(data instanceof ArrayBuffer)) throw new Error(`[${name}] a buffer was freed, or is another engine's`);
    return data;
  };
  const bytesOf = (b: Binding): Uint8Array => new Uint8Array(dataOf(b), b.offset, b.bytes);
  const elementsOf = (b: Binding, dtype: DType): unknown => {
    const { BYTES_PER_ELEMENT: size } = hostArrays[dtype].prototype;
    return new hostArrays[dtype](dataOf(b), b.offset, Math.floor(b.bytes / size));
  };

  return showEngine({
    name,
    device,
    caps: {
      dtypes: new Set(Object.keys(hostArrays) as DType[]),
      nativeOps,
      // A group is one thread, which has vectors of 16 bytes: the emitter writes them out, so that a loop takes fewer steps.
      simt: false,
      lowering: vectorLowering,
      vectorBytes: 16,
      sharedBytes: 2 ** 20,
      maxGroup: 1,
      maxBindings: 1000,
      maxBufferBytes: 2 ** 31,
      // Typed arrays begin at multiples of their elements' size.
      bindAlign: 8,
      arena: true,
      parallelism: 1,
      atomics: new Set(),
    },
    inHostMemory: true,

    alloc(size) {
      check();
      try {
        if (bytes + size > memoryLimit) throw new RangeError('the limit is reached');
        // Rounded up, so that arrays of every dtype fit.
        const buffer: Memory = { bytes: size, data: new ArrayBuffer(Math.ceil(size / 8) * 8) };
        bytes += size;
        buffers++;
        return buffer;
      } catch {
        throw new OutOfMemoryError(name, { requested: size, live: bytes, reserved: bytes, limit: memoryLimit });
      }
    },
    free(buffer) {
      (buffer as Memory).data = null;
      bytes -= buffer.bytes;
      buffers--;
    },
    memory: () => ({ bytes, buffers, reservedBytes: bytes }),
    upload(to, data) {
      check();
      bytesOf(to).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    },
    async download(from, into) {
      return this.downloadSync?.(from, into) as Uint8Array;
    },
    downloadSync(from, into) {
      check();
      into.set(bytesOf(from));
      return into;
    },

    compile(programs) {
      check();
      return programs.map((program): Kernel => {
        try {
          const text = emit(program);
          return { program, text, call: new Function('arrays', `${prelude}return ${text}`)(hostArrays) };
        } catch (error) {
          throw new CompileError(name, program.name, String(error), printProgram(program), { cause: error });
        }
      });
    },
    release() {}, // The garbage collector takes functions that no plan holds.
    source: async (kernel) => ({ language: 'javascript', text: (kernel as Kernel).text }),

    submit(commands) {
      check();
      for (const command of commands) {
        if (command.kind === 'copy') bytesOf(command.to).set(bytesOf(command.from));
        else if (command.kind === 'fill')
          new Uint32Array(dataOf(command.to), command.to.offset, command.to.bytes / 4).fill(command.pattern);
        else {
          const { program, call } = command.kernel as Kernel;
          const memory = program.params.map((p) => elementsOf(command.bindings[p.arg.slot] as Binding, p.dtype));
          call(...memory, ...command.scalars, ...(command.groups ?? program.grid));
        }
      }
    },
    async idle() {}, // Whatever was submitted has run.

    lost,
    lose(reason) {
      const error = new DeviceLostError(name, device, reason);
      end(error, { reason: 'lost', message: reason, error });
    },
    dispose: () => end(new EngineDisposedError(name, 'work'), { reason: 'disposed', message: 'the engine was disposed' }),
  });
}

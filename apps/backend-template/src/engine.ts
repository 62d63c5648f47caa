/**
 * The engine: memory, kernels and commands of a device. This device is JavaScript itself: a buffer is an ArrayBuffer, a kernel a function over
 * typed arrays, and commands have run when `submit` returns. An engine knows no tensor, no shape and no operation.
 */
import { type Binding, type CompiledKernel, type EngineBuffer, type IEngine, showEngine } from '@polygrad/core/engine';
import { CompileError, DeviceLostError, EngineDisposedError, OutOfMemoryError } from '@polygrad/core/engine';
import { hostArrays } from '@polygrad/core/engine/shaping';
import { vectorLowering } from '@polygrad/core/engine/vectors';
import { type DType, printProgram } from '@polygrad/core/kernel/ir';
import { emit, nativeOps, prelude } from './emit.ts';

const [name, device] = ['javascript', 'JavaScript'];
const limit = 2 ** 32; // Bytes of all buffers together.

/** Device memory. Only this file looks inside. */
type Memory = EngineBuffer & { data: ArrayBuffer | null };
type Kernel = CompiledKernel & { readonly call: (...values: unknown[]) => void };

/** `lose` says that the device is gone, as a driver would. */
export type JavaScriptEngine = IEngine & { lose(reason: string): void };

function dataOf({ buffer }: Binding): ArrayBuffer {
  const { data } = buffer as Memory;
  if (!(data instanceof ArrayBuffer)) throw new Error(`[${name}] a buffer was freed, or is another engine's`);
  return data;
}

const bytesOf = (b: Binding): Uint8Array => new Uint8Array(dataOf(b), b.offset, b.bytes);
const elementsOf = (b: Binding, Elements: typeof hostArrays.int32): unknown =>
  new Elements(dataOf(b), b.offset, Math.floor(b.bytes / Elements.prototype.BYTES_PER_ELEMENT));

/** Makes an engine that runs kernels as JavaScript. */
export function createJavaScriptEngine(): JavaScriptEngine {
  let [bytes, buffers] = [0, 0];
  /** Why nothing can be asked of the engine any more. */
  let ended: Error | null = null;
  let end: (reason: 'lost' | 'disposed', error: Error) => void = () => {};
  const lost: IEngine['lost'] = new Promise((resolve) => {
    end = (reason, error) => {
      ended ??= error;
      resolve({ reason, message: error.message, ...(error instanceof DeviceLostError ? { error } : {}) });
    };
  });
  const check = (): void => {
    if (ended !== null) throw ended;
  };
  const read = (from: Binding, into: Uint8Array): Uint8Array => {
    check();
    into.set(bytesOf(from));
    return into;
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
      bindAlign: 8, // Typed arrays begin at multiples of their elements' size.
      arena: true,
      parallelism: 1,
      atomics: new Set(),
    },
    inHostMemory: true,

    alloc(size) {
      check();
      try {
        if (bytes + size > limit) throw new RangeError('no more than the limit');
        // Rounded up, so that arrays of every dtype fit.
        const buffer: Memory = { bytes: size, data: new ArrayBuffer(Math.ceil(size / 8) * 8) };
        bytes += size;
        buffers++;
        return buffer;
      } catch {
        throw new OutOfMemoryError(name, { requested: size, live: bytes, reserved: bytes, limit });
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
    download: async (from, into) => read(from, into),
    downloadSync: read,

    compile(programs) {
      check();
      return programs.map((program): Kernel => {
        try {
          return { program, call: new Function('arrays', `${prelude}return ${emit(program)}`)(hostArrays) };
        } catch (error) {
          throw new CompileError(name, program.name, String(error), printProgram(program), { cause: error });
        }
      });
    },
    release() {}, // The garbage collector takes functions that no plan holds.
    source: async (kernel) => ({ language: 'javascript', text: String((kernel as Kernel).call) }),

    submit(commands) {
      check();
      for (const command of commands) {
        if (command.kind === 'copy') bytesOf(command.to).set(bytesOf(command.from));
        else if (command.kind === 'fill')
          new Uint32Array(dataOf(command.to), command.to.offset, command.to.bytes / 4).fill(command.pattern);
        else {
          const { program, call } = command.kernel as Kernel;
          const memory = program.params.map((p) => elementsOf(command.bindings[p.arg.slot]!, hostArrays[p.dtype]));
          call(...memory, ...command.scalars, ...(command.groups ?? program.grid));
        }
      }
    },
    async idle() {}, // Whatever was submitted has run.

    lost,
    lose: (reason) => end('lost', new DeviceLostError(name, device, reason)),
    dispose: () => end('disposed', new EngineDisposedError(name, 'work')),
  });
}

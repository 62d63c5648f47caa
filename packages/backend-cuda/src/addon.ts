/**
 * The native addon's interface as types, and opening NVIDIA's driver with it. What it does is in native/.
 *
 * Loading never throws: where there is no binary or no driver, `openDriver` says why.
 */
import { type EngineDriver, loadAddon } from '@polygrad/addon';

/** What the addon says about one device; names of fields are its own. */
export interface DeviceRecord {
  readonly name: string;
  /** 32 digits and dashes, without the word before them. */
  readonly uuid: string;
  readonly memoryBytes: number;
  readonly major: number;
  readonly minor: number;
  readonly multiprocessors: number;
  readonly warp: number;
  readonly maxGroup: number;
  readonly maxGridX: number;
  readonly maxGridY: number;
  readonly maxGridZ: number;
  readonly sharedBytes: number;
  readonly sharedOptInBytes: number;
  /** 1 if it shares the processor's memory. */
  readonly integrated: number;
  /** 0: any number of processes, 2: none, 3: one. */
  readonly computeMode: number;
  readonly memoryPools: number;
}

/**
 * Streams of one engine on a device. Failures are thrown as `NativeError`. Buffers, modules and kernels are numbers. Every number and
 * length is checked; kernels are trusted.
 */
export interface Driver extends EngineDriver {
  /** Starts compiling PTX on a thread; whatever needs the module waits for it, and throws what the driver's compiler says. */
  build(ptx: string): number;
  /** Resolves when a module is compiled or refused. */
  built(module: number): Promise<void>;
  /** Waits for that; throws what the compiler says. */
  finish(module: number): void;
  releaseModule(module: number): void;
  /**
   * `layout`: groups (3), threads of a group (3), bytes of shared memory to ask for, bytes of parameters, then place and bytes of each
   * argument, 0 bytes for the address of a buffer.
   */
  kernel(module: number, name: string, layout: Float64Array): number;
  releaseKernel(kernel: number): void;
  /** Registers, bytes of local memory, bytes of shared memory, and most threads, of a kernel. */
  facts(kernel: number): Float64Array;
  /** Resolves when cuBLASLt, or cuDNN, has decided how to compute a product like this command (its buffers do not matter). */
  prepareProduct(cells: Uint8Array, count: number): Promise<void>;
  /**
   * Graphs made, batches launched as one, kernels of them told of something new; and why none is used: 0 nothing, -1 not wanted, -2 the driver
   * has none. Else it is the code of the error after which they were left alone.
   */
  graphFacts(): Float64Array;
  /** Bytes that are free on the device, all of it, and what the engine's pool holds. */
  memoryInfo(): Float64Array;
  /** Waits for what runs, and gives unused memory back. */
  trim(): void;
}

export interface Addon {
  /** Opens the driver's library, once per process; an empty string, or why it could not. */
  open(path: string): string;
  /** Opens cuBLASLt, once per process; an empty string, or why it could not. */
  openCublasLt(path: string): string;
  /** Opens cuDNN, once per process; an empty string, or why it could not. */
  openCudnn(path: string): string;
  /** The path of the library that is open, '' for the system's. */
  opened(): string;
  /** True for the simulated driver of tests. */
  simulated(): boolean;
  /** CUDA's version that the driver is for: 1000 * major + 10 * minor. */
  version(): number;
  /** Starts the driver. */
  devices(): DeviceRecord[];
  /** Name and meaning of an error code, in the driver's words. */
  errorText(code: number): string;
  /** `beside`: modules may be compiled on threads, otherwise `build` compiles; `graphs`: batches that come again may be launched as one. Both are the default. `tf32`: libraries may round float32 to TF32. */
  readonly Driver: new (
    device: number,
    beside?: boolean,
    graphs?: boolean,
    tf32?: boolean,
  ) => Driver;
}

/** The environment variable that names the driver to open instead of the system's: another one, or the simulated one of tests. */
const driverVariable = 'POLYGRAD_CUDA_DRIVER';

/** The environment variable that names another binary of the addon, such as one compiled for AddressSanitizer. */
export const addonVariable = 'POLYGRAD_CUDA_ADDON';

/** The oldest driver: that of CUDA 11.4, number 470. */
const leastVersion = 11040;

/** There are binaries for these, each an optional dependency. */
const platforms = ['linux-x64', 'linux-arm64', 'win32-x64'];

let loaded: Addon | string | null = null;

/** CUDA's version as people write it. */
export function versionText(version: number): string {
  return `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
}

/** The addon with the driver open, or the reason why not. */
export function openDriver(): Addon | string {
  loaded ??= loadAddon<Addon>({ name: 'cuda', from: import.meta.url, variable: addonVariable, platforms });
  if (typeof loaded === 'string') return loaded;
  const path = process.env[driverVariable] ?? '';
  const reason = loaded.open(path);
  if (reason !== '') {
    const remedy =
      path === ''
        ? "install NVIDIA's driver; in a container start it with the NVIDIA container toolkit (--gpus all)"
        : `${driverVariable} names it`;
    return `NVIDIA's driver could not be opened (${reason}); ${remedy}`;
  }
  const version = loaded.version();
  if (version < leastVersion)
    return `the driver is for CUDA ${versionText(version)}: one for ${versionText(leastVersion)} or newer (470 or higher) is needed; install a newer driver`;
  return loaded;
}

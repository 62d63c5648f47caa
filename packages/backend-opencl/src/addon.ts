/**
 * The native addon: finding its binary for this platform, and its interface as types. What it does is in native/.
 *
 * Loading never throws: where there is no binary or no OpenCL library, `openLibrary` says why.
 */
import { type EngineDriver, loadAddon } from '@polygrad/addon';

/** What the addon says about one device; names of fields are its own. */
export interface DeviceRecord {
  readonly platform: string;
  readonly platformVersion: string;
  readonly name: string;
  readonly vendor: string;
  readonly version: string;
  readonly driver: string;
  readonly language: string;
  readonly extensions: string;
  readonly typeBits: number;
  readonly computeUnits: number;
  readonly maxGroup: number;
  readonly maxAllocBytes: number;
  readonly maxParameterBytes: number;
  readonly baseAlignBits: number;
  readonly globalBytes: number;
  readonly localBytes: number;
  readonly localType: number;
  readonly floatLanes: number;
  readonly floatConfig: number;
  readonly littleEndian: number;
  readonly available: number;
  readonly compiler: number;
  readonly unifiedMemory: number;
}

/**
 * A context and an in-order queue. Failures are thrown as `NativeError`. Buffers, programs and kernels are numbers. Every number and length is
 * checked; kernels and compiled programs are trusted.
 */
export interface Driver extends EngineDriver {
  /**
   * Starts compiling on a thread; whatever needs the program waits for it, and throws what the compiler says. `reload`: the driver
   * compiles for good only when asked for a binary, and the program is loaded from that. `lock`: a file that is locked meanwhile.
   */
  build(source: string, options: string, reload?: boolean, lock?: string): number;
  /** Resolves when a program is compiled or refused. */
  built(program: number): Promise<void>;
  /** Waits for that; throws what the compiler says. */
  finish(program: number): void;
  /** The bytes must be those of `binary`: drivers follow what is in them, and crash where it is damaged. */
  load(binary: Uint8Array, options: string, lock?: string): number;
  binary(program: number): Uint8Array;
  releaseProgram(program: number): void;
  /** Resolves when CLBlast has compiled what a product like this command needs (its buffers do not matter). */
  prepareProduct(cells: Uint8Array, count: number, lock?: string): Promise<void>;
  /** `layout`: groups (3), threads of a group (3), then the bytes of each argument, 0 for a buffer. */
  kernel(program: number, name: string, layout: Float64Array): number;
  releaseKernel(kernel: number): void;
}

export interface Addon {
  /** Opens the OpenCL library, once per process; an empty string, or why it could not. */
  open(path: string): string;
  /** The same for CLBlast. */
  openClblast(path: string): string;
  devices(): DeviceRecord[];
  /** `beside`: programs may be compiled on threads, which is the default; otherwise `build` compiles. */
  readonly Driver: new (
    device: number,
    unifiedMemory: boolean,
    beside?: boolean,
  ) => Driver;
}

/** The environment variable that names the OpenCL library to open instead of the system's ICD loader. */
const libraryVariable = 'POLYGRAD_OPENCL_LIBRARY';

/** The environment variable that names another binary of the addon, such as one compiled for AddressSanitizer. */
export const addonVariable = 'POLYGRAD_OPENCL_ADDON';

/** The library to open, '' for the system's. */
export function libraryPath(): string {
  return process.env[libraryVariable] ?? '';
}

/** There are binaries for these, each an optional dependency. */
const platforms = ['linux-x64', 'linux-arm64', 'win32-x64'];

let loaded: Addon | string | null = null;

/** The addon with its library open, or the reason why not. */
export function openLibrary(): Addon | string {
  loaded ??= loadAddon<Addon>({ name: 'opencl', from: import.meta.url, variable: addonVariable, platforms });
  if (typeof loaded === 'string') return loaded;
  const reason = loaded.open(libraryPath());
  if (reason === '') return loaded;
  return `no OpenCL library could be opened (${reason}); install an OpenCL driver and the ICD loader, on Debian for example ocl-icd-libopencl1 and pocl-opencl-icd`;
}

/** The options of the engine. */

/** Options of `createNativeEngine`. */
export interface NativeEngineOptions {
  /** Threads that compute, the calling one included. Default: POLYGRAD_THREADS, else the cores, at most 8. */
  readonly threads?: number;
  /** Bytes of vectors. Each width adds sums in another order; 16 gives the CPU engine's results, bit for bit. Default: the widest available. */
  readonly vectorBytes?: 16 | 32 | 64;
  /** Instruction set: AVX2 (`x64-v3`), AVX-512 (`x64-v4`), or NEON (`arm64`). Default: the best available. */
  readonly isa?: 'x64-v3' | 'x64-v4' | 'arm64';
  /** Most bytes the engine may take from the system. Default: 4 GiB less one page. */
  readonly memory?: number;
  /** Compile code that checks every access, to find bugs in programs; slow. */
  readonly checked?: boolean;
}

/** Most threads an engine may have. */
export const maxThreads = 64;

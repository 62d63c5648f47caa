/** What a caller may ask of the engine. */

/** Options of `createNativeEngine`. */
export interface NativeEngineOptions {
  /** Threads that compute, the calling one included. Default: POLYGRAD_THREADS, else the cores, at most 8. */
  readonly threads?: number;
  /** Bytes of vectors. Sums are added in another order with each; 16 gives what the CPU engine gives, bit for bit. Default: the widest there are. */
  readonly vectorBytes?: 16 | 32 | 64;
  /** Which instructions are used: AVX2 (`x64-v3`), AVX-512 (`x64-v4`), or NEON (`arm64`). Default: the best there are. */
  readonly isa?: 'x64-v3' | 'x64-v4' | 'arm64';
  /** Most bytes the engine may take from the system: 4 GiB less one page unless told. */
  readonly memory?: number;
  /** Code that checks every access, to find mistakes of programs; slow. */
  readonly checked?: boolean;
}

/** Most threads an engine may have. */
export const maxThreads = 64;

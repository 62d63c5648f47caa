/** What a caller may ask of the engine. Declarations of this file name nothing of a browser or of Node. */

/** Options of `createCpuEngine`. */
export interface CpuEngineOptions {
  /** Threads that compute, the main thread included. Default: POLYGRAD_THREADS, else the cores, at most 8. */
  readonly threads?: number;
  /**
   * Most bytes the engine may take from the system: 4 GiB less one page unless told. More needs 64-bit WebAssembly memory
   * (Node 24 and current browsers), whose accesses cost more.
   */
  readonly memory?: number;
  /**
   * False: without the relaxed instructions of WebAssembly, such as multiply-add in one rounding, where there are some. Results then have the same bits on
   * every machine and in every browser, and kernels take longer. Default true.
   */
  readonly relaxedSimd?: boolean;
}

/** Most threads an engine may have. */
export const maxThreads = 64;

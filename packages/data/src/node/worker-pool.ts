/** Functions of a module that run in worker threads, for `Dataset.map`: decoding and augmenting beside the training. Node only. */
import { checkFits, checkInteger, checkOptions, DataError, reasonOf } from '../errors.ts';

export interface WorkerPoolOptions {
  /** Threads (default: one less than the machine has, at most 4). */
  readonly size?: number;
  /** The export of the module to call (default 'default'). */
  readonly name?: string;
}

/** Threads that wait for items. */
export interface WorkerPool<T, U> {
  readonly size: number;
  /** What the module's function gives for an item. Hand it to `map` with `{ concurrency: pool.size * 2 }`. */
  run(item: T): Promise<U>;
  /** Ends the threads. Nothing else does: without it they live as long as the program. */
  close(): Promise<void>;
}

/** What a worker threw, as the error of this package: what it was is the cause. */
function failure(module: string, error: unknown): DataError {
  return new DataError('format', module, `[workerPool] ${module}: ${reasonOf(error)}`, { cause: error });
}

/**
 * Worker threads over a module whose function changes one item. Items and results are copied between threads; results whose memory is to be
 * handed over instead are wrapped by `move` of the package `tinypool`.
 *
 * @param module URL or path of a JavaScript module: `new URL('./decode.js', import.meta.url)`
 * @param options size, name ('default')
 * @throws DataError `argument`; from `run` what the function threw
 * @example
 * ```ts no-run: needs a module of its own
 * const pool = await workerPool<string, { x: HostArray; y: HostArray }>(new URL('./decode.js', import.meta.url), { size: 2 });
 * const data = Dataset.from(['a.png', 'b.png']).map(pool.run, { concurrency: 4 }).batch(2);
 * await pool.close();
 * ```
 */
export async function workerPool<T, U>(
  module: URL | string,
  options: WorkerPoolOptions = {},
): Promise<WorkerPool<T, U>> {
  checkOptions('workerPool', options, { size: 'number', name: 'string' });
  checkFits(
    'workerPool',
    'module',
    module,
    module instanceof URL || typeof module === 'string',
    'the URL or path of a module',
  );
  const { availableParallelism } = await import('node:os');
  const { size = Math.max(1, Math.min(4, availableParallelism() - 1)), name = 'default' } = options;
  checkInteger('workerPool', 'size', size, 1, 1024);
  const { default: Tinypool } = await import('tinypool');
  const { pathToFileURL } = await import('node:url');
  const filename = module instanceof URL || module.startsWith('file:') ? String(module) : pathToFileURL(module).href;
  const pool = new Tinypool({ filename, name, minThreads: size, maxThreads: size, isolateWorkers: false });
  let isClosed = false;
  return {
    size,
    async run(item: T): Promise<U> {
      if (isClosed) throw new DataError('argument', filename, '[workerPool] the pool is closed; make a new one');
      try {
        return (await pool.run(item)) as U;
      } catch (error) {
        throw failure(filename, error);
      }
    },
    async close(): Promise<void> {
      isClosed = true;
      await pool.destroy();
    },
  };
}

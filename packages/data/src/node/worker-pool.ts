/**
 * Functions of a module that run in worker threads, for `Dataset.map`: decoding and augmenting beside the training. Node only.
 *
 * On `node:worker_threads` alone: a thread that ends by itself (out of memory, `process.exit`) fails the item it had and is replaced. The pool
 * tinypool 2.2.0 leaves its caller waiting for ever then.
 */
import { pathToFileURL } from 'node:url';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { checkFits, checkInteger, checkOptions, DataError, reasonOf } from '../errors.ts';

/** Options of `workerPool`. */
export interface WorkerPoolOptions {
  /** Threads (default: one less than the machine has, at most 4). */
  readonly size?: number;
  /** The export of the module to call (default 'default'). */
  readonly name?: string;
}

/** Threads that wait for items. */
export interface WorkerPool<T, U> {
  readonly size: number;
  /** What the module's function gives for an item. Hand it to `map` with a concurrency of the size or more. */
  run(item: T): Promise<U>;
  /** Ends the threads; items that run fail. Idle threads do not keep a program alive, so that it is needed for tidiness only. */
  close(): Promise<void>;
}

/** What a thread runs: the function for each message, one answer each. */
const program = `
const { parentPort, workerData } = require('node:worker_threads');
const loaded = import(workerData.module).then((module) => {
  const found = module[workerData.name];
  if (typeof found !== 'function') throw new TypeError("the module has no function '" + workerData.name + "'");
  return found;
});
loaded.catch(() => {});
parentPort.on('message', async (item) => {
  try {
    const call = await loaded;
    parentPort.postMessage({ result: await call(item) });
  } catch (error) {
    parentPort.postMessage({ problem: error instanceof Error ? error.message : String(error) });
  }
});`;

type Answer<U> = { readonly result: U; readonly problem?: undefined } | { readonly problem: string };

interface Task<T, U> {
  readonly item: T;
  readonly resolve: (result: U) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Worker threads over a module whose function changes one item. Items and results are copied between threads, as `structuredClone` copies.
 *
 * @param module URL or path of a JavaScript module: `new URL('./decode.js', import.meta.url)`
 * @param options size, name ('default')
 * @throws DataError `argument`; from `run` what the function threw, and threads that ended
 * @example
 * ```ts no-run: needs a module of its own
 * const pool = workerPool<string, { x: HostArray; y: HostArray }>(new URL('./decode.js', import.meta.url), { size: 2 });
 * const data = Dataset.from(['a.png', 'b.png']).map(pool.run, { concurrency: 4 }).batch(2);
 * await pool.close();
 * ```
 */
export function workerPool<T, U>(module: URL | string, options: WorkerPoolOptions = {}): WorkerPool<T, U> {
  checkOptions('workerPool', options, { size: 'number', name: 'string' });
  const isPlace = typeof module === 'string' || Object.prototype.toString.call(module) === '[object URL]';
  checkFits('workerPool', 'module', module, isPlace, 'the URL or path of a module');
  const { size = Math.max(1, Math.min(4, availableParallelism() - 1)), name = 'default' } = options;
  checkInteger('workerPool', 'size', size, 1, 1024);
  const address =
    typeof module === 'string' && !module.startsWith('file:') ? pathToFileURL(module).href : String(module);
  const failure = (text: string, cause?: unknown): DataError =>
    new DataError('format', address, `[workerPool] ${address}: ${text}`, { cause });

  /** Threads and what each works on. */
  const running = new Map<Worker, Task<T, U> | undefined>();
  const waiting: Task<T, U>[] = [];
  let isClosed = false;

  const end = (worker: Worker, error: Error): void => {
    const task = running.get(worker);
    running.delete(worker);
    task?.reject(error);
    next();
  };
  const start = (): Worker => {
    const worker = new Worker(program, { eval: true, workerData: { module: address, name } });
    running.set(worker, undefined);
    worker.on('message', (answer: Answer<U>) => {
      const task = running.get(worker);
      if (task === undefined) return;
      running.set(worker, undefined);
      worker.unref();
      if (answer.problem === undefined) task.resolve(answer.result);
      else task.reject(failure(answer.problem));
      next();
    });
    worker.on('messageerror', (error) =>
      end(worker, failure(`the result cannot be copied: ${reasonOf(error)}`, error)),
    );
    worker.on('error', (error) => end(worker, failure(reasonOf(error), error)));
    worker.on('exit', (code) => end(worker, failure(`the thread ended with code ${code} while it had an item`)));
    worker.unref();
    return worker;
  };
  function next(): void {
    while (waiting.length > 0 && !isClosed) {
      const idle =
        [...running].find(([, task]) => task === undefined)?.[0] ?? (running.size < size ? start() : undefined);
      if (idle === undefined) return;
      const task = waiting.shift()!;
      running.set(idle, task);
      // The program waits for what it asked for.
      idle.ref();
      try {
        idle.postMessage(task.item);
      } catch (error) {
        running.set(idle, undefined);
        idle.unref();
        task.reject(
          new DataError('argument', 'item', `[workerPool] the item cannot be copied to a thread: ${reasonOf(error)}`, {
            cause: error,
          }),
        );
      }
    }
  }
  return {
    size,
    run(item) {
      if (isClosed)
        return Promise.reject(new DataError('argument', address, '[workerPool] the pool is closed; make a new one'));
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        next();
      });
    },
    async close() {
      isClosed = true;
      const closed = failure('the pool was closed');
      for (const task of waiting.splice(0)) task.reject(closed);
      const workers = [...running.keys()];
      for (const worker of workers) running.get(worker)?.reject(closed);
      running.clear();
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
}

/** Code of engines with more than one thread, loaded as one: here.ts and late.ts say when. */
import { WorkerPool } from './pool.ts';
import { Waker } from './waker.ts';

export interface ThreadCode {
  readonly WorkerPool: typeof WorkerPool;
  readonly Waker: typeof Waker;
}

export const code: ThreadCode = { WorkerPool, Waker };

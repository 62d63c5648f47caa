/** What `#threads` is outside bundles for browsers: the code of worker threads is there from the start. */
import * as pool from './pool.ts';

export type ThreadCode = Pick<typeof pool, 'WorkerPool' | 'Waker'>;

export function withThreads(use: (code: ThreadCode | null) => void): void {
  use(pool);
}

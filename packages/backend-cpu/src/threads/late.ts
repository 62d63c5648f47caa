/**
 * What `#threads` is in bundles for browsers: the code of worker threads is loaded by the first engine that has any, which most pages may not
 * have. Workers take a moment to start anyway, and until they are there the main thread works alone.
 */
import type { ThreadCode } from './here.ts';

let loading: Promise<ThreadCode> | null = null;

/** Calls a function with the code once it is loaded, or with null if loading fails; the next engine tries again. */
export function withThreads(use: (code: ThreadCode | null) => void): void {
  loading ??= import('./pool.ts');
  loading.then(use, () => {
    loading = null;
    use(null);
  });
}

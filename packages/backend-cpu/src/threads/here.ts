/** What `#threads` is outside bundles for browsers: the code of worker threads is there from the start. */
import { code, type ThreadCode } from './code.ts';

export function withThreads(use: (code: ThreadCode | null) => void): void {
  use(code);
}

/** What `#files` is in bundles for browsers. */
import type { TuningStore } from './store.ts';

export function fileStore(_folder?: string): TuningStore | null {
  return null;
}

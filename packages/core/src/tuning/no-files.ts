/** What `#files` is in bundles for browsers. */
import type { TuningStore } from '../engine/tuning-store.ts';

export function fileStore(_folder?: string): TuningStore | null {
  return null;
}

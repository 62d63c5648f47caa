/** What `#files` is in bundles for browsers. */
import type { TuningStore } from '../engine/engine.ts';

export function fileStore(_folder?: string): TuningStore | null {
  return null;
}

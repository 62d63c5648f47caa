/** The import `#files` in bundles for browsers: there are no files. */
import type { TuningStore } from '../engine/engine.ts';

export function fileStore(_folder?: string): TuningStore | null {
  return null;
}

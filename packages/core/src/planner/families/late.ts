/**
 * The import `#families` in bundles for browsers: the first plan starts loading the code of families, so that pages start without it.
 * Until it is there, every size has its own plan. Nothing is guessed (always.ts): pages run no tests.
 */
import type { PlanFamilies } from './families.ts';

export const isHeard = (): boolean => false;

let families: typeof import('./families.ts') | null = null;
let loading: Promise<void> | null = null;

/** Resolves when the code is there, or cannot be loaded: then the next call tries again. */
export function loadFamilies(): Promise<void> {
  return (loading ??= import('./families.ts').then(
    (module) => {
      families = module;
    },
    () => {
      loading = null;
    },
  ));
}

/** Families of an engine, if their code is there; the first call loads it. */
export function newFamilies(): PlanFamilies | null {
  void loadFamilies();
  return families && new families.PlanFamilies();
}

/**
 * The import `#families` in bundles for browsers: the first plan starts loading the code of families, so that pages start without it.
 * Until it is there, every size has its own plan. Nothing is guessed (always.ts): pages run no tests.
 */
import type { PlanFamilies } from './families.ts';

let families: typeof import('./families.ts') | null = null;
let asked = false;

/** Families of an engine, if their code is there; the first call loads it. */
export function newFamilies(): PlanFamilies | null {
  if (!asked) {
    asked = true;
    import('./families.ts').then(
      (module) => {
        families = module;
      },
      () => {
        asked = false;
      },
    );
  }
  return families && new families.PlanFamilies();
}

/**
 * What `#families` is in bundles for browsers: a page whose sizes never change does without. Until it is there, sizes have plans of their own.
 * Nothing is guessed (always.ts): pages run no tests.
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

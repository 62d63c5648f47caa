/** What `#families` is in bundles for browsers: a page whose sizes never change does without. Until it is there, sizes have plans of their own. */
let families: typeof import('./families.ts') | null = null;
let asked = false;

/** The class, if it is there; the first call loads it. */
export function familiesHere(): typeof import('./families.ts').PlanFamilies | null {
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
  return families?.PlanFamilies ?? null;
}

/** The import `#families` outside of bundles for browsers: families are there from the start, so plans do not depend on when code arrives. */
import { Expectations } from './always.ts';
import { PlanFamilies } from './families.ts';

/** True if families hear of flushes that are expected (`PlanFamilies.announce`). */
export const hearsAnnounced = true;

/** Families of an engine, if their code is there. */
export const newFamilies = (): PlanFamilies | null => new PlanFamilies(new Expectations());

export const loadFamilies = async (): Promise<void> => {};

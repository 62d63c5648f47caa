/** What `#families` is outside bundles for browsers: families are there from the start, so that plans do not depend on when code arrives. */
import { grown, guess, rowsOf } from './always.ts';
import { PlanFamilies } from './families.ts';

/** Families of an engine, if their code is there. */
export const newFamilies = (): PlanFamilies | null => new PlanFamilies({ guess, grown, rowsOf });

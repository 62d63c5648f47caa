/** What `#families` is outside bundles for browsers: families are there from the start, so that plans do not depend on when code arrives. */
import { PlanFamilies } from './families.ts';

/** The class, if it is there. */
export const familiesHere = (): typeof PlanFamilies | null => PlanFamilies;

/** The import `#families` outside of bundles for browsers: families are there from the start, so plans do not depend on when code arrives. */
import type { EngineCaps } from '../../engine/engine.ts';
import { Expectations } from './always.ts';
import { PlanFamilies } from './families.ts';

/** False where no plan will depend on what is announced (`PlanFamilies.announce`): then there is no need to record it. */
export const isHeard = (
  { dynamicSizes, forPages }: { readonly dynamicSizes: string; readonly forPages?: boolean },
  { lowering }: EngineCaps,
): boolean => dynamicSizes === 'automatic' && !forPages && lowering.sizes === true;

/** Families of an engine, if their code is there. */
export const newFamilies = (): PlanFamilies | null => new PlanFamilies(new Expectations());

export const loadFamilies = async (): Promise<void> => {};

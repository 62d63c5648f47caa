/** Entry point @polygrad/conformance: the suite that every engine passes. */
export type { CaseResult } from './case.ts';
export { defaultTolerances, type Tolerance, type ToleranceKind, type Tolerances } from './compare.ts';
export type { Skip } from './case-runner.ts';
export { type ConformanceOptions, type ConformanceReport, runConformance } from './run.ts';

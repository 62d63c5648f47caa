/** Entry point @polygrad/core/plans: plans kept between processes, and plans that a program brings along. */
export { isPlanCacheUsed, type PlanCache, type PlanCacheOptions, usePlanCache } from '../stored/cache.ts';
export { type PlanFile, type PlanFileOptions, type PlanFileSource, usePlanFile } from '../stored/plan-file.ts';
export { type PlanRecording, recordPlans, type RecordPlansOptions } from '../stored/recording.ts';
export type { PlanLimits, PlansAtHand, PlanStore, StoredEntry } from '../stored/store.ts';

/** Entry point @polygrad/core/plans: plans kept between processes. */
export { isPlanCacheUsed, type PlanCache, type PlanCacheOptions, usePlanCache } from '../stored/cache.ts';
export type { PlanLimits, PlansAtHand, PlanStore, StoredEntry } from '../stored/store.ts';

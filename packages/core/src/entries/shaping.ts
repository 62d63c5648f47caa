/**
 * Entry point @polygrad/core/engine/shaping: `engine/vectors` without what legalizes small dtypes, for an engine that loads that later.
 */
export { vectorShaping } from '../targets/vector-shaping.ts';

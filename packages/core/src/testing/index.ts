/** Entry point @polygrad/core/testing: engines for tests, without a device. */
export { createNullEngine, type NullEngine, type NullEngineCounts } from './null-engine.ts';
export { createReferenceEngine, type ReferenceEngineOptions } from './reference-engine.ts';

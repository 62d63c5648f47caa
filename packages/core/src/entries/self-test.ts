/**
 * Entry point @polygrad/core/engine/self-test: whether an engine computes rightly.
 *
 * A separate entry, so that pages load it before the first use of a driver and never again.
 */
export { selfTest, type SelfTestResult, selfTestSync } from '../self-test/self-test.ts';

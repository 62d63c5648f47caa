/** Entry point @polygrad/auto-detect: finds the best engine and sets it. */
export {
  autoDetectAndConfigureGpu,
  autoDetectAndConfigureGpu as AutoDetectAndConfigureGpu,
  type Detected,
} from './detect.ts';
export type { AutoDetectOptions } from './search.ts';
export { knownBackends } from './packages.ts';
export type { Measuring } from './contest.ts';
export { type BackendReport, type DetectionReport, formatReport, type Verdict } from './report.ts';

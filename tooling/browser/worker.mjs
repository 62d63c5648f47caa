/** The checks in a module worker: runs them once and posts the report, or what went wrong. */
import { runChecks } from './checks.mjs';

runChecks().then(
  (report) => postMessage({ report }),
  (error) => postMessage({ error: String(error?.stack ?? error) }),
);

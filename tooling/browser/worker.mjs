/** The checks in a module worker: runs them once and posts the report, or what went wrong. Its address says the sample. */
import { runChecks } from './checks.mjs';

runChecks({ sample: Number(new URL(self.location.href).searchParams.get('sample')) }).then(
  (report) => postMessage({ report }),
  (error) => postMessage({ error: String(error?.stack ?? error) }),
);

/** The conformance suite in a module worker: takes the options as a message, posts batches of outcomes and the end. */
import { runSuite } from './suite.mjs';

addEventListener('message', ({ data }) => {
  runSuite(data, (batch) => postMessage({ batch })).then(
    (report) => postMessage({ report }),
    (error) => postMessage({ error: String(error?.stack ?? error) }),
  );
});

/**
 * `npm run conformance -- --browser --engine NAME [--isolated] [--worker] [--threads N] [--sample N] [--slice K/N] [--filter TEXT] [--json FILE]`
 *
 * The conformance suite in headless Chromium, out of a minified bundle, with the output and the exit codes of the command for Node.
 * `--isolated` serves the page so that threads may share memory; `--worker` runs the suite in a module worker instead of on the
 * page's main thread. Without Chromium, and where it has no such engine, the run is skipped. It
 * fails there if POLYGRAD_REQUIRE names `browser` (and, for engines other than cpu, the engine).
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { bundle } from './bundle.mjs';
import { findChromium, startChromium } from './chromium.mjs';
import { inPage } from './page.mjs';
import { isolation } from './server.mjs';

const engineNames = ['cpu', 'webgpu'];
const usage = `usage: conformance --browser --engine ${engineNames.join('|')} [--isolated] [--worker] [--threads N] [--sample N] [--slice K/N] [--filter TEXT] [--json FILE] [--verbose]`;

// Run in the page; texts, because functions would be rewritten by test runners.
const onMainThread = (options) =>
  `import('/suite.js').then(({ runSuite }) => runSuite(${options}, (batch) => tell(batch)))`;
const inWorker = (options) => `new Promise((resolve, reject) => {
  const worker = new Worker('/suite-worker.js', { type: 'module' });
  worker.onerror = (event) => reject(new Error('the worker failed: ' + event.message));
  worker.onmessage = ({ data }) => {
    if (data.batch !== undefined) return tell(data.batch);
    worker.terminate();
    if (data.error === undefined) resolve(data.report);
    else reject(new Error(data.error));
  };
  worker.postMessage(${options});
})`;

/**
 * Runs the suite in a browser.
 *
 * @param options `engine`, `isolated`, `worker`, `threads`, `sample`, `slice`, `filter`, `long`
 * @param onResult called with each outcome
 * @returns what `runConformance` returns, and `errors`: what the page reported that no case caught
 */
async function runInBrowser({ path, engine, isolated, worker, threads, ...rest }, onResult) {
  const { files, warnings } = await bundle(['suite', 'suite-worker']);
  if (warnings.length > 0) throw new Error(`the bundle: ${warnings.join('; ')}`);
  files.set('/torch.bin.gz', readFileSync(new URL('../../packages/conformance/goldens/torch.bin.gz', import.meta.url)));
  const engineOptions = threads === undefined ? {} : { threads };
  const options = JSON.stringify({ engine, engineOptions, ...rest });
  const results = [];
  const tell = (batch) => {
    for (const result of batch) {
      results.push(result);
      onResult(result);
    }
  };
  const browser = await startChromium(path);
  try {
    const body = worker ? inWorker(options) : onMainThread(options);
    const { report, errors } = await inPage(browser.context, files, isolated ? isolation : {}, body, {
      tell,
      seconds: 600,
    });
    const tally = (outcome) => results.filter((result) => result.outcome === outcome).length;
    return { ...report, passed: tally('passed'), failed: tally('failed'), skipped: tally('skipped'), results, errors };
  } catch (error) {
    throw new Error(`${error.message}; the last case heard of was '${results.at(-1)?.name ?? 'none'}'`);
  } finally {
    await browser.close();
  }
}

function readArguments(args) {
  const text = { type: 'string' };
  const flag = { type: 'boolean', default: false };
  const { values } = parseArgs({
    args,
    options: {
      ...{ engine: text, threads: text, sample: text, slice: text, filter: text, json: text },
      ...{ browser: flag, isolated: flag, worker: flag, verbose: flag, help: flag },
    },
  });
  if (values.help) return values;
  if (!engineNames.includes(values.engine))
    throw new Error(`--engine is ${values.engine ?? 'missing'}; in a browser give one of ${engineNames.join(', ')}`);
  const numbers = Object.fromEntries(
    ['threads', 'sample'].filter((name) => values[name] !== undefined).map((name) => [name, Number(values[name])]),
  );
  for (const [name, value] of Object.entries(numbers))
    if (!Number.isInteger(value) || value < 1)
      throw new Error(`--${name} is ${values[name]}; give a whole number of at least 1`);
  const slice = (values.slice ?? '1/1').split('/').map(Number);
  const [k, n] = slice;
  if (slice.length !== 2 || !slice.every(Number.isInteger) || k < 1 || k > n)
    throw new Error(`--slice is ${values.slice}; give two whole numbers, as in 2/8: the second of eight parts`);
  if (values.json !== undefined && !existsSync(dirname(values.json)))
    throw new Error(`--json ${values.json} cannot be written: there is no such folder`);
  return { ...values, ...numbers, slice };
}

/** Says why nothing was run; the exit code. */
function skip(engine, reason) {
  console.log(`SKIPPED engine ${engine} in a browser: ${reason}`);
  const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',');
  const asked = ['browser', engine].filter((name) => required.includes(name) || name === 'cpu');
  const isRequired = asked.length === 2;
  if (isRequired) console.error(`conformance: POLYGRAD_REQUIRE asks for ${asked.join(' and ')}`);
  console.log(`0 passed, ${isRequired ? '1 failed, 0 skipped' : '0 failed, 1 skipped'}`);
  return isRequired ? 2 : 0;
}

async function main(args) {
  let values;
  try {
    values = readArguments(args);
  } catch (error) {
    console.error(`conformance: ${error.message}\n${usage}`);
    console.log('0 passed, 0 failed, 0 skipped');
    return 2;
  }
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const { engine, isolated, worker, threads, sample = 1, slice, filter, json, verbose } = values;
  const path = findChromium();
  if (path === null) return skip(engine, 'no Chromium here; `bash tooling/devices/install.sh browser` installs it');
  const started = performance.now();
  const long = process.env.POLYGRAD_LONG === '1';
  const report = await runInBrowser(
    { path, engine, isolated, worker, threads, sample, slice, filter, long },
    (result) => {
      const { name, outcome, detail } = result;
      if (outcome === 'failed') console.log(`FAILED ${name}\n  ${detail}`);
      else if (verbose) console.log(`${outcome} ${name}${detail && ` (${detail})`}`);
    },
  );
  if (report.missing !== undefined) return skip(engine, report.missing);
  const reasons = report.results.filter(({ outcome }) => outcome === 'skipped').map(({ detail }) => detail);
  for (const reason of new Set(reasons))
    console.log(`SKIPPED ${reasons.filter((other) => other === reason).length}: ${reason}`);
  if (report.leftOut > 0)
    console.log(`part ${slice.join('/')}, one of every ${sample} cases was run, ${report.leftOut} were left out`);
  for (const error of report.errors) console.log(`FAILED without a case: ${error}`);
  const where = `${isolated ? 'isolated' : 'plain'} page, ${worker ? 'module worker' : 'main thread'}`;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`conformance of ${report.engine} (${report.device}) in Chromium (${where}) in ${seconds} s`);
  if (json) writeFileSync(json, `${JSON.stringify(report, null, 1)}\n`);
  if (report.results.length + report.leftOut === 0) console.error(`conformance: no case has '${filter}' in its name`);
  const failed = report.failed + report.errors.length;
  console.log(`${report.passed} passed, ${failed} failed, ${report.skipped} skipped`);
  return failed > 0 || report.passed === 0 ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));

/**
 * `npm run conformance -- --engine NAME [--threads N] [--sample N] [--filter TEXT] [--json FILE]`
 *
 * Runs the suite on one engine (all of it with POLYGRAD_LONG=1) and ends in `N passed, N failed, N skipped`. Exit code 1 if a case failed, 2 for bad
 * arguments or an engine that is required and not there.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { engineNames, isRequired, makeEngine } from './engines.ts';
import { runConformance } from './run.ts';

const usage = `usage: conformance --engine ${engineNames.join('|')} [--threads N] [--sample N] [--filter TEXT] [--json FILE] [--verbose]`;

async function main(): Promise<number> {
  let values: Partial<Record<'engine' | 'threads' | 'sample' | 'filter' | 'json', string>> & {
    verbose?: boolean;
    help?: boolean;
  };
  try {
    ({ values } = parseArgs({
      options: {
        engine: { type: 'string' },
        threads: { type: 'string' },
        sample: { type: 'string' },
        filter: { type: 'string' },
        json: { type: 'string' },
        verbose: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }));
  } catch (error) {
    console.error(`conformance: ${error instanceof Error ? error.message : error}\n${usage}`);
    return 2;
  }
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const name = values.engine;
  const threads = values.threads === undefined ? undefined : Number(values.threads);
  const sample = values.sample === undefined ? 1 : Number(values.sample);
  if (name === undefined || !engineNames.includes(name)) {
    console.error(`conformance: --engine is ${name ?? 'missing'}; give one of ${engineNames.join(', ')}\n${usage}`);
    return 2;
  }
  for (const [option, value] of Object.entries({ threads: threads ?? 1, sample })) {
    if (Number.isInteger(value) && value >= 1) continue;
    console.error(`conformance: --${option} is ${value}; give a whole number of at least 1`);
    return 2;
  }
  const made = await makeEngine(name, threads === undefined ? {} : { threads });
  if ('missing' in made) {
    console.log(`SKIPPED engine ${name}: ${made.missing}`);
    if (!isRequired(name)) return 0;
    console.error(`conformance: POLYGRAD_REQUIRE asks for ${name}`);
    return 2;
  }
  const started = performance.now();
  const report = await runConformance({
    ...made,
    long: process.env.POLYGRAD_LONG === '1',
    sample,
    ...(values.filter === undefined ? {} : { filter: values.filter }),
    onResult: ({ name: test, outcome, detail }) => {
      if (outcome === 'failed') console.log(`FAILED ${test}\n  ${detail}`);
      else if (values.verbose) console.log(`${outcome} ${test}${detail && ` (${detail})`}`);
    },
  });
  for (const reason of new Set(report.results.filter((r) => r.outcome === 'skipped').map((r) => r.detail))) {
    console.log(
      `SKIPPED ${report.results.filter((r) => r.outcome === 'skipped' && r.detail === reason).length}: ${reason}`,
    );
  }
  if (report.leftOut > 0) console.log(`sample: one of every ${sample} cases was run, ${report.leftOut} were left out`);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`conformance of ${report.engine} (${report.device}) in ${seconds} s`);
  if (values.json) writeFileSync(values.json, `${JSON.stringify(report, null, 1)}\n`);
  made.engine.dispose();
  console.log(`${report.passed} passed, ${report.failed} failed, ${report.skipped} skipped`);
  return report.failed > 0 ? 1 : 0;
}

process.exitCode = await main();

/**
 * The command as a function of its arguments. What it prints ends in `N passed, N failed, N skipped`, whatever happened.
 */
import { accessSync, constants, existsSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { engineNames, isFile, isRequired, makeEngine } from './engines.ts';
import { isSlice, runConformance } from './run.ts';

const usage = `usage: conformance --engine ${engineNames.join('|')}|./FILE.js [--threads N] [--sample N|pairwise] [--slice K/N] [--sizes automatic|always|never] [--filter TEXT] [--json FILE] [--verbose]`;

/** Where the command writes, line by line. */
export interface Lines {
  out(line: string): void;
  error(line: string): void;
}

/** Why a file cannot be written, or null: said before a long run, not after it. */
function obstacle(path: string): string | null {
  try {
    const there = existsSync(path);
    if (there && statSync(path).isDirectory()) return 'it is a folder';
    if (!there && !statSync(dirname(path)).isDirectory()) return `${dirname(path)} is no folder`;
    accessSync(there ? path : dirname(path), constants.W_OK);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Runs the command; the exit code: 1 if a case failed, 2 for bad arguments or an engine that is required and not there. */
export async function conformance(args: readonly string[], { out, error: complain }: Lines): Promise<number> {
  const end = (passed: number, failed: number, skipped: number): void =>
    out(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  const refuse = (message: string): number => {
    complain(`conformance: ${message}`);
    end(0, 0, 0);
    return 2;
  };
  let values: Partial<Record<'engine' | 'threads' | 'sample' | 'slice' | 'sizes' | 'filter' | 'json', string>> & {
    verbose?: boolean;
    help?: boolean;
  };
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        engine: { type: 'string' },
        threads: { type: 'string' },
        sample: { type: 'string' },
        slice: { type: 'string' },
        sizes: { type: 'string' },
        filter: { type: 'string' },
        json: { type: 'string' },
        verbose: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }));
  } catch (error) {
    return refuse(`${error instanceof Error ? error.message : error}\n${usage}`);
  }
  if (values.help) {
    out(usage);
    return 0;
  }
  const name = values.engine;
  const threads = values.threads === undefined ? undefined : Number(values.threads);
  const sample = values.sample === 'pairwise' ? values.sample : Number(values.sample ?? 1);
  if (name === undefined || !(engineNames.includes(name) || isFile(name))) {
    const names = engineNames.join(', ');
    return refuse(
      `--engine is ${name ?? 'missing'}; give one of ${names}, or the path of a module, as in ./engine.js\n${usage}`,
    );
  }
  for (const [option, value] of Object.entries({ threads: threads ?? 1, sample })) {
    if (value === 'pairwise' || (Number.isInteger(value) && Number(value) >= 1)) continue;
    return refuse(
      `--${option} is ${value}; give a whole number of at least 1${option === 'sample' ? ', or pairwise' : ''}`,
    );
  }
  const { json, filter } = values;
  const slice = (values.slice ?? '1/1').split('/').map(Number);
  if (slice.length !== 2 || !isSlice(slice))
    return refuse(`--slice is ${values.slice}; give two whole numbers, as in 2/8: the second of eight parts`);
  const { sizes = 'automatic' } = values;
  if (sizes !== 'automatic' && sizes !== 'always' && sizes !== 'never')
    return refuse(`--sizes is ${sizes}; give automatic, always or never`);
  const unwritable = json === undefined ? null : obstacle(json);
  if (unwritable !== null) return refuse(`--json ${json} cannot be written: ${unwritable}`);
  let made: Awaited<ReturnType<typeof makeEngine>>;
  try {
    made = await makeEngine(name, threads === undefined ? {} : { threads });
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
  if ('missing' in made) {
    out(`SKIPPED engine ${name}: ${made.missing}`);
    const required = isRequired(name);
    if (required) complain(`conformance: POLYGRAD_REQUIRE asks for ${name}`);
    end(0, required ? 1 : 0, required ? 0 : 1);
    return required ? 2 : 0;
  }
  const started = performance.now();
  const report = await runConformance({
    ...made,
    long: process.env.POLYGRAD_LONG === '1',
    sample,
    slice: slice as [number, number],
    sizes,
    ...(filter === undefined ? {} : { filter }),
    onResult: ({ name: test, outcome, detail }) => {
      if (outcome === 'failed') out(`FAILED ${test}\n  ${detail}`);
      else if (values.verbose) out(`${outcome} ${test}${detail && ` (${detail})`}`);
    },
  });
  for (const reason of new Set(report.results.filter((r) => r.outcome === 'skipped').map((r) => r.detail))) {
    out(`SKIPPED ${report.results.filter((r) => r.outcome === 'skipped' && r.detail === reason).length}: ${reason}`);
  }
  if (report.leftOut > 0) {
    const part = values.slice === undefined ? '' : `part ${values.slice}, `;
    const which = sample === 'pairwise' ? 'a pairwise sample' : `one of every ${sample} cases`;
    out(`${part}${which} was run, ${report.leftOut} were left out`);
  }
  if (report.shared !== undefined)
    out(
      `${report.shared.bound} cases with plans for classes of sizes, ${report.shared.otherBits} of them with sums in another order`,
    );
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  out(`conformance of ${report.engine} (${report.device}) in ${seconds} s`);
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 1)}\n`);
  made.engine.dispose();
  if (report.results.length + report.leftOut === 0) return refuse(`no case has '${filter}' in its name`);
  end(report.passed, report.failed, report.skipped);
  return report.failed > 0 ? 1 : 0;
}

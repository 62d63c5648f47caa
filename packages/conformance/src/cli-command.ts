/**
 * The command as a function of its arguments. What it prints ends in `N passed, N failed, N skipped`, whatever happened.
 */
import { accessSync, constants, existsSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { engineNames, isFile, isRequired, makeEngine } from './engines.ts';
import { type ConformanceOptions, type ConformanceReport, isSlice, runConformance } from './run.ts';

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

/** What the command was asked for, checked. */
interface Asked extends Required<Pick<ConformanceOptions, 'sample' | 'slice' | 'sizes'>> {
  /** The engine. */
  readonly name: string;
  readonly threads: number | undefined;
  readonly filter: string | undefined;
  readonly json: string | undefined;
  readonly verbose: boolean;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Reads the arguments; null where help is asked for. Throws an Error that says which one is wrong. */
function readArguments(args: readonly string[]): Asked | null {
  const values = parsed(args);
  const { help = false, verbose = false, engine: name, sizes = 'automatic', filter, json } = values;
  if (help) return null;
  const threads = values.threads === undefined ? undefined : Number(values.threads);
  const sample = values.sample === 'pairwise' ? values.sample : Number(values.sample ?? 1);
  if (name === undefined || !(engineNames.includes(name) || isFile(name))) {
    const names = engineNames.join(', ');
    throw new Error(
      `--engine is ${name ?? 'missing'}; give one of ${names}, or the path of a module, as in ./engine.js\n${usage}`,
    );
  }
  for (const [option, value] of Object.entries({ threads: threads ?? 1, sample })) {
    if (value === 'pairwise' || (Number.isInteger(value) && Number(value) >= 1)) continue;
    const orName = option === 'sample' ? ', or pairwise' : '';
    throw new Error(`--${option} is ${value}; give a whole number of at least 1${orName}`);
  }
  const slice = (values.slice ?? '1/1').split('/').map(Number);
  if (slice.length !== 2 || !isSlice(slice))
    throw new Error(`--slice is ${values.slice}; give two whole numbers, as in 2/8: the second of eight parts`);
  if (sizes !== 'automatic' && sizes !== 'always' && sizes !== 'never')
    throw new Error(`--sizes is ${sizes}; give automatic, always or never`);
  const unwritable = json === undefined ? null : obstacle(json);
  if (unwritable !== null) throw new Error(`--json ${json} cannot be written: ${unwritable}`);
  return { name, threads, sample, slice: slice as [number, number], sizes, filter, json, verbose };
}

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;

type Values = Partial<Record<'engine' | 'threads' | 'sample' | 'slice' | 'sizes' | 'filter' | 'json', string>> &
  Partial<Record<'verbose' | 'help', boolean>>;

function parsed(args: readonly string[]): Values {
  const options = { engine: text, threads: text, sample: text, slice: text, sizes: text, filter: text, json: text };
  try {
    return parseArgs({ args: [...args], options: { ...options, verbose: flag, help: flag } }).values;
  } catch (error) {
    throw new Error(`${messageOf(error)}\n${usage}`);
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
  let asked: Asked | null;
  try {
    asked = readArguments(args);
  } catch (error) {
    return refuse(messageOf(error));
  }
  if (asked === null) {
    out(usage);
    return 0;
  }
  const { name, threads, sample, slice, sizes, filter, json, verbose } = asked;
  let made: Awaited<ReturnType<typeof makeEngine>>;
  try {
    made = await makeEngine(name, threads === undefined ? {} : { threads });
  } catch (error) {
    return refuse(messageOf(error));
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
    slice,
    sizes,
    ...(filter === undefined ? {} : { filter }),
    onResult: ({ name: test, outcome, detail }) => {
      if (outcome === 'failed') out(`FAILED ${test}\n  ${detail}`);
      else if (verbose) out(`${outcome} ${test}${detail && ` (${detail})`}`);
    },
  });
  for (const line of summaryOf(report, asked)) out(line);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  out(`conformance of ${report.engine} (${report.device}) in ${seconds} s`);
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 1)}\n`);
  made.engine.dispose();
  if (report.results.length + report.leftOut === 0) return refuse(`no case has '${filter}' in its name`);
  end(report.passed, report.failed, report.skipped);
  return report.failed > 0 ? 1 : 0;
}

/** What was skipped and why, what was left out, and with whose plans cases ran. */
function summaryOf(report: ConformanceReport, { slice: [part, of], sample }: Asked): string[] {
  const skipped = report.results.filter((r) => r.outcome === 'skipped').map((r) => r.detail);
  const lines = [...new Set(skipped)].map(
    (reason) => `SKIPPED ${skipped.filter((one) => one === reason).length}: ${reason}`,
  );
  if (report.leftOut > 0) {
    const where = of === 1 ? '' : `part ${part}/${of}, `;
    const which = sample === 'pairwise' ? 'a pairwise sample' : `one of every ${sample} cases`;
    lines.push(`${where}${which} was run, ${report.leftOut} were left out`);
  }
  if (report.shared !== undefined)
    lines.push(
      `${report.shared.bound} cases with plans for classes of sizes, ${report.shared.otherBits} of them with sums in another order`,
    );
  return lines;
}

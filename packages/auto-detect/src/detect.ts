/**
 * The search: load what is installed, ask every backend side by side what it found, start the best.
 *
 * Probes score themselves. Only a processor that is reached by another way than the CPU engine is measured (contest.ts), when nothing
 * better than either has started.
 */
import {
  type BackendProvider,
  EngineMissingError,
  getBackend,
  type IEngine,
  listBackends,
  type Probe,
  setEngine,
  type TuningStore,
} from '@polygrad/core/engine';
import type { Compare, Measuring } from './contest.ts';
import { isMistake, oneLine, whyNotLoaded, within } from './limit.ts';
import { checkDetectOptions, namesOfList } from './options.ts';
import { type BackendPackage, backendPackages, isMissing } from './packages.ts';
import { type BackendReport, type DetectionReport, formatReport, type Verdict } from './report.ts';

/** Options of `autoDetectAndConfigureGpu`. */
export interface AutoDetectOptions {
  /** Milliseconds that a backend has to answer, and again to start; the CPU engine has any time. Default 5000. */
  readonly timeout?: number;
  /** Backends to take if they are usable at all, even where another one scores higher; the first is tried first. */
  readonly prefer?: string | readonly string[];
  /** Only these backends are considered. Default: all. The CPU engine too is chosen only if it is named. */
  readonly only?: string | readonly string[];
  /** These are not considered, nor loaded. */
  readonly exclude?: string | readonly string[];
  /** Options of the engines by the backend's name, as `setEngine(name, options)` takes them. */
  readonly engineOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /**
   * Whether a processor that is reached by another way than the CPU engine (machine code, OpenCL under PoCL) is measured against that engine: only
   * where it was clearly faster is it taken first. 'automatic' (the default): once, when nothing better has started, and kept for later runs;
   * 'load': what an earlier run measured counts, nothing is measured now; 'anew': measured now; false: it never comes first.
   */
  readonly measure?: Measuring;
  /** Where measurements are kept. Default: `defaultStore()` of @polygrad/core/engine. */
  readonly measureStore?: TuningStore;
  /** Told the report, also when no engine starts. */
  readonly onReport?: (report: DetectionReport) => void;
}

/** What `autoDetectAndConfigureGpu` found. */
export interface Detected {
  /** The engine that is the current one now. */
  readonly engine: IEngine;
  /** What a person would call its device. */
  readonly device: string;
  /** Every backend tried, and why it was not chosen. */
  readonly report: DetectionReport;
}

export interface Row {
  readonly name: string;
  readonly provider: BackendProvider | null;
  readonly device: string | null;
  readonly software: boolean;
  /** What its speed depends on, if it is the processor by another way. */
  readonly processor: string | null;
  score: number;
  /** True once it was measured and is to be taken before the CPU engine. */
  faster: boolean;
  verdict: Verdict;
  reason: string;
}

/** The last resort, which others must beat. */
const fallback = 'cpu';

/** The search over given packages; `autoDetectAndConfigureGpu` is the one over those that are known. */
export async function detect(
  options: AutoDetectOptions,
  known: readonly BackendPackage[],
  compare?: Compare,
): Promise<Detected> {
  checkDetectOptions(options, known);
  const { timeout = 5000, engineOptions = {}, onReport } = options;
  const only = options.only === undefined ? null : namesOfList(options.only);
  const exclude = namesOfList(options.exclude);
  const considered = (name: string): boolean => (only === null || only.includes(name)) && !exclude.includes(name);
  // It is always there, however long it takes.
  const limit = (name: string): number => (name === fallback ? Number.POSITIVE_INFINITY : timeout);
  const names = [...new Set([...listBackends(), ...known.map(({ name }) => name)])];
  const rows = await Promise.all(
    names.map(async (name): Promise<Row> => {
      const source = known.find((p) => p.name === name);
      if (considered(name)) return inspect(name, source, limit(name));
      // Loaded all the same, unless the program registered one: dtypes that another engine does not hold live there.
      if (name === fallback && !exclude.includes(name) && source !== undefined && getBackend(name) === undefined)
        await within(limit(name), source.load);
      return row(name, 'left out', 'not among what the call asks for');
    }),
  );
  const candidates = order(rows, options);
  const waiting = [...candidates];
  let engine: IEngine | null = null;
  let chosen: Row | null = null;
  let judged = false;
  while (engine === null && waiting.length > 0) {
    if (!judged && waiting[0]?.name === fallback && !wished(options).includes(fallback)) {
      judged = true;
      await judge(waiting, options, compare);
    }
    const candidate = waiting.shift() as Row;
    const outcome = await within(
      limit(candidate.name),
      async () =>
        engineFrom(await (candidate.provider as BackendProvider).create(engineOptions[candidate.name]), candidate.name),
      (late) => late.dispose(),
    );
    if (outcome.kind === 'value') {
      engine = outcome.value;
      chosen = candidate;
      break;
    }
    if (outcome.kind === 'error' && isMistake(outcome.error)) throw outcome.error;
    candidate.verdict = outcome.kind === 'late' ? 'timed out' : 'failed to start';
    candidate.reason = outcome.kind === 'late' ? `it did not start within ${timeout} ms` : oneLine(outcome.error);
  }
  if (!judged && chosen !== null) for (const r of rows) if (isProcessor(r)) explain(r, unmeasured(r, chosen, rows));
  const report = conclude(rows, order(candidates, options), chosen);
  onReport?.(report);
  if (engine === null) {
    const remedy = considered(fallback)
      ? "install a backend package, for example '@polygrad/backend-cpu'"
      : `the CPU engine would, but ${exclude.includes(fallback) ? "'exclude' names it" : "'only' does not"}`;
    throw new EngineMissingError(
      'autoDetectAndConfigureGpu',
      `no engine starts here; ${remedy}:\n${formatReport(report)}`,
    );
  }
  await setEngine(engine);
  return { engine, device: engine.device, report };
}

function row(
  name: string,
  verdict: Verdict,
  reason: string,
  provider: BackendProvider | null = null,
  probe?: Probe,
): Row {
  const { device = null, score = 0, software = false, processor = null } = probe ?? {};
  return { name, provider, device, score: Math.max(0, score), software, processor, faster: false, verdict, reason };
}

/** Loads a backend where it is not registered yet, and asks it what it found. */
async function inspect(name: string, source: BackendPackage | undefined, timeout: number): Promise<Row> {
  const start = performance.now();
  if (getBackend(name) === undefined && source !== undefined) {
    const loaded = await within(timeout, source.load);
    if (loaded.kind === 'late')
      return row(name, 'timed out', `${source.specifier} was not loaded within ${timeout} ms`);
    if (loaded.kind === 'error') {
      return isMissing(loaded.error, source.specifier)
        ? row(name, 'not installed', `add the package ${source.specifier}`)
        : row(name, 'failed to start', `${source.specifier} cannot be loaded: ${whyNotLoaded(loaded.error)}`);
    }
  }
  const provider = getBackend(name);
  if (provider === undefined)
    return row(name, 'failed to start', `${source?.specifier} registers no backend '${name}'`);
  const left = Math.max(1, timeout - (performance.now() - start));
  const probed = await within(left, () => provider.probe());
  if (probed.kind === 'late') return row(name, 'timed out', `its probe did not answer within ${timeout} ms`);
  if (probed.kind === 'error') return row(name, 'failed to start', oneLine(probed.error));
  const { value } = probed;
  if (typeof value?.score !== 'number' || typeof value.reason !== 'string')
    return row(name, 'failed to start', 'its probe answered without a score and a reason');
  return value.score > 0 ? row(name, 'slower', value.reason, provider, value) : row(name, 'no device', value.reason);
}

/** Names of backends to be taken if they are usable at all. */
function wished({ prefer }: AutoDetectOptions): readonly string[] {
  return namesOfList(prefer);
}

/** Those worth starting, best first: the preferred, those that beat the CPU engine, that engine, and the others only after it. */
function order(rows: readonly Row[], options: AutoDetectOptions): Row[] {
  const first = wished(options);
  const rank = ({ name }: Row): number => (first.includes(name) ? first.indexOf(name) : first.length);
  const last = rows.find(({ name }) => name === fallback);
  // A software adapter is the processor by a longer way, and one by another way has to be measured.
  const beats = (r: Row): boolean => r.faster || (!r.software && r.processor === null && r.score > (last?.score ?? 0));
  const tier = (r: Row): number => (r.name === fallback ? 1 : beats(r) ? 0 : 2);
  return rows
    .filter((r) => r.provider !== null)
    .sort((a, b) => rank(a) - rank(b) || tier(a) - tier(b) || b.score - a.score);
}

function isProcessor(r: Row): boolean {
  return r.processor !== null && r.provider !== null && !r.software;
}

function explain(r: Row, what: string): void {
  r.reason = r.reason === '' ? what : `${r.reason}, ${what}`;
}

/** The CPU engine is next: what is the processor by another way is measured against it, and comes first where it is faster. */
async function judge(waiting: Row[], options: AutoDetectOptions, compare?: Compare): Promise<void> {
  const processors = waiting.filter(isProcessor);
  if (processors.length === 0) return;
  // Pages never come here.
  const { judgeProcessors } = await import('./contest.ts');
  await judgeProcessors(waiting[0] as Row, processors, options, explain, compare);
  waiting.splice(0, waiting.length, ...order(waiting, options));
}

/** Why a processor by another way was not measured. */
function unmeasured(r: Row, chosen: Row, rows: readonly Row[]): string {
  const cpu = rows.find(({ name }) => name === fallback);
  if (cpu === undefined || cpu.provider === null)
    return 'not measured: the CPU engine is not among what the call asks for';
  if (chosen === r) return 'not measured: it is preferred';
  return `not measured: ${chosen.name === fallback ? 'cpu is preferred' : `${chosen.name} comes before both`}`;
}

/** What a backend's `create` gave. Throws where that is no engine: a package for another version of core, say. */
function engineFrom(made: IEngine, name: string): IEngine {
  if (typeof made?.submit !== 'function' || typeof made.dispose !== 'function')
    throw new Error(`the backend '${name}' made no engine`);
  return made;
}

/** The rows with their verdicts, the chosen one first, then in the order in which they would have been tried. */
function conclude(rows: readonly Row[], candidates: readonly Row[], chosen: Row | null): DetectionReport {
  const finished = (r: Row): BackendReport => {
    const { name, device, score } = r;
    if (r === chosen) return { name, device, score, chosen: true, verdict: 'chosen', reason: r.reason };
    if (r.verdict !== 'slower') return { name, device, score, chosen: false, verdict: r.verdict, reason: r.reason };
    if (r.software) return { name, device, score, chosen: false, verdict: 'software adapter', reason: r.reason };
    // A processor by another way is judged by what was measured, whatever it says of itself.
    const ahead = chosen !== null && score > chosen.score;
    if (ahead && !isProcessor(r))
      return { name, device, score, chosen: false, verdict: 'not preferred', reason: `${chosen.name} is; ${r.reason}` };
    const than =
      chosen === null || ahead ? '' : `scored ${score < chosen.score ? 'lower than' : 'as'} ${chosen.name}; `;
    return { name, device, score, chosen: false, verdict: 'slower', reason: `${than}${r.reason}` };
  };
  const first = chosen === null ? [] : [chosen];
  return [...new Set([...first, ...candidates, ...rows])].map(finished);
}

/**
 * Finds the engines of this machine and makes the best one the current engine.
 *
 * Backend packages that are installed are loaded (`@polygrad/backend-cuda`, `-webgpu`, `-opencl`, `-native`, `-cpu`; in browsers WebGPU and the
 * CPU engine), and with everything else that is registered they are asked side by side what they found. The one with the highest score
 * starts; where it cannot, the next one. The CPU engine is always there and comes last; a software adapter is never taken for a GPU.
 * Without this call everything runs on the CPU engine.
 *
 * @returns the engine, its device, and a report of every backend tried with why it was not chosen
 * @throws ArgumentError for options or names of backends that are not known, and where an engine refuses its `engineOptions`;
 * EngineMissingError if nothing starts, which can only be where `only` or `exclude` leave the CPU engine out
 *
 * @example
 * ```ts
 * import { autoDetectAndConfigureGpu, formatReport } from '@polygrad/auto-detect';
 * const { engine, report } = await autoDetectAndConfigureGpu({ only: ['cpu'] });
 * console.log(engine.name); //=> cpu
 * formatReport(report); // one line for each backend
 * ```
 */
export function autoDetectAndConfigureGpu(options: AutoDetectOptions = {}): Promise<Detected> {
  return detect(options, backendPackages);
}

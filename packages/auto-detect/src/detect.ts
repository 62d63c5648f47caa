/**
 * The search: load what is installed, ask every backend side by side what it found, start the best.
 *
 * Probes score themselves for now; measured scores will take their place in the same report.
 */
import {
  type BackendProvider,
  EngineMissingError,
  getBackend,
  type IEngine,
  listBackends,
  type Probe,
  setEngine,
} from '@polygrad/core/engine';
import { oneLine, within } from './limit.ts';
import { type BackendPackage, backendPackages, isMissing } from './packages.ts';
import { type BackendReport, type DetectionReport, formatReport, type Verdict } from './report.ts';

/** Options of `autoDetectAndConfigureGpu`. */
export interface AutoDetectOptions {
  /** Milliseconds that a backend has to answer, and again to start. Default 5000. */
  readonly timeout?: number;
  /** Backends to take if they are usable at all, even where another one scores higher; the first is tried first. */
  readonly prefer?: string | readonly string[];
  /** Only these backends are considered. Default: all. The CPU engine too is chosen only if it is named. */
  readonly only?: readonly string[];
  /** These are not considered, nor loaded. */
  readonly exclude?: readonly string[];
  /** Options of the engines by the backend's name, as `setEngine(name, options)` takes them. */
  readonly engineOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
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

interface Row {
  readonly name: string;
  readonly provider: BackendProvider | null;
  readonly device: string | null;
  readonly score: number;
  readonly software: boolean;
  verdict: Verdict;
  reason: string;
}

/** The last resort, which others must beat. */
const fallback = 'cpu';

/** The search over given packages; `autoDetectAndConfigureGpu` is the one over those that are known. */
export async function detect(options: AutoDetectOptions, known: readonly BackendPackage[]): Promise<Detected> {
  const { timeout = 5000, only, exclude = [], engineOptions = {}, onReport } = options;
  const considered = (name: string): boolean => (only === undefined || only.includes(name)) && !exclude.includes(name);
  const names = [...new Set([...listBackends(), ...known.map(({ name }) => name)])];
  const rows = await Promise.all(
    names.map(async (name): Promise<Row> => {
      const source = known.find((p) => p.name === name);
      if (considered(name)) return inspect(name, source, timeout);
      // Loaded all the same: dtypes that another engine does not hold live there.
      if (name === fallback && !exclude.includes(name) && source !== undefined) await within(timeout, source.load);
      return row(name, 'left out', 'not among what the call asks for');
    }),
  );
  const candidates = order(rows, options);
  let engine: IEngine | null = null;
  let chosen: Row | null = null;
  for (const candidate of candidates) {
    const outcome = await within(
      timeout,
      () => (candidate.provider as BackendProvider).create(engineOptions[candidate.name]),
      (late) => late.dispose(),
    );
    if (outcome.kind === 'value') {
      engine = outcome.value;
      chosen = candidate;
      break;
    }
    candidate.verdict = outcome.kind === 'late' ? 'timed out' : 'failed to start';
    candidate.reason = outcome.kind === 'late' ? `it did not start within ${timeout} ms` : oneLine(outcome.error);
  }
  const report = conclude(rows, candidates, chosen);
  onReport?.(report);
  if (engine === null) {
    throw new EngineMissingError(
      'autoDetectAndConfigureGpu',
      `no engine starts here; install a backend package, for example '@polygrad/backend-cpu':\n${formatReport(report)}`,
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
  const { device = null, score = 0, software = false } = probe ?? {};
  return { name, provider, device, score: Math.max(0, score), software, verdict, reason };
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
        : row(name, 'failed to start', `${source.specifier} cannot be loaded: ${oneLine(loaded.error)}`);
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
  return value.score > 0 ? row(name, 'slower', value.reason, provider, value) : row(name, 'no device', value.reason);
}

/** Those worth starting, best first: the preferred, those that beat the CPU engine, that engine, and the others only after it. */
function order(rows: readonly Row[], { prefer = [] }: AutoDetectOptions): readonly Row[] {
  const wished = typeof prefer === 'string' ? [prefer] : prefer;
  const rank = ({ name }: Row): number => (wished.includes(name) ? wished.indexOf(name) : wished.length);
  const last = rows.find(({ name }) => name === fallback);
  // A software adapter is the processor by a longer way.
  const beats = (r: Row): boolean => !r.software && r.score > (last?.score ?? 0);
  const tier = (r: Row): number => (r.name === fallback ? 1 : beats(r) ? 0 : 2);
  return rows
    .filter((r) => r.provider !== null)
    .sort((a, b) => rank(a) - rank(b) || tier(a) - tier(b) || b.score - a.score);
}

/** The rows with their verdicts, the chosen one first, then in the order in which they would have been tried. */
function conclude(rows: readonly Row[], candidates: readonly Row[], chosen: Row | null): DetectionReport {
  const finished = (r: Row): BackendReport => {
    const { name, device, score } = r;
    if (r === chosen) return { name, device, score, chosen: true, verdict: 'chosen', reason: r.reason };
    if (r.verdict !== 'slower') return { name, device, score, chosen: false, verdict: r.verdict, reason: r.reason };
    const than = chosen === null ? '' : ` than ${chosen.name}`;
    return r.software
      ? { name, device, score, chosen: false, verdict: 'software adapter', reason: r.reason }
      : { name, device, score, chosen: false, verdict: 'slower', reason: `scored lower${than}; ${r.reason}` };
  };
  const first = chosen === null ? [] : [chosen];
  return [...new Set([...first, ...candidates, ...rows])].map(finished);
}

/**
 * Finds the engines of this machine and makes the best one the current engine.
 *
 * Backend packages that are installed are loaded (`@polygrad/backend-cuda`, `-webgpu`, `-opencl`, `-cpu`; in browsers WebGPU and the
 * CPU engine), and with everything else that is registered they are asked side by side what they found. The one with the highest score
 * starts; where it cannot, the next one. The CPU engine is always there and comes last; a software adapter is never taken for a GPU.
 * Without this call everything runs on the CPU engine.
 *
 * @returns the engine, its device, and a report of every backend tried with why it was not chosen
 * @throws EngineMissingError if nothing starts, which can only be where `only` or `exclude` leave the CPU engine out
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

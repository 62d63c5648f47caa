/**
 * The search: what is installed is asked side by side, measured and tested once, and the best starts.
 *
 * Native code is asked in processes of its own (`#processes`), so that only the winner's is loaded here. What was found is kept
 * (kept.ts, contest.ts), so that later searches ask nobody.
 */
import { processes as processesHere } from '#processes';
import {
  type BackendProvider,
  ArgumentError,
  defaultStore,
  EngineMissingError,
  getBackend,
  type IEngine,
  listBackends,
  type Probe,
  setEngine,
  type TuningStore,
} from '@polygrad/core/engine';
import type { PlanCache, PlanCacheOptions } from '@polygrad/core/plans';
import type { Apart, Processes, Proof } from './apart.ts';
import type { Compare, Measuring } from './contest.ts';
import { isMistake, oneLine, type Outcome, whyNotLoaded, within } from './limit.ts';
import { checkDetectOptions, namesOfList } from './options.ts';
import { type BackendPackage, backendPackages, inNode, isMissing } from './packages.ts';
import type { DetectionReport } from './report.ts';
import { conclude, installText, isProcessor, type Row, rowOf } from './rows.ts';

/** Options of `autoDetectAndConfigureGpu`. */
export interface AutoDetectOptions {
  /** Milliseconds that a backend has to answer, again to start, to pass its self-test, and to be measured; the CPU engine has any time. Default 5000. */
  readonly timeout?: number;
  /** Backends to take if they are usable at all, even where another one scores higher; the first is tried first. */
  readonly prefer?: string | readonly string[];
  /** One of these must be had, the first that can; otherwise the call throws. The others are in the report, and are not taken. */
  readonly require?: string | readonly string[];
  /** Only these backends are considered. Default: all. The CPU engine too is chosen only if it is named. */
  readonly only?: string | readonly string[];
  /** These are not considered, nor loaded. */
  readonly exclude?: string | readonly string[];
  /** Options of the engines by the backend's name, as `setEngine(name, options)` takes them. */
  readonly engineOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /**
   * Whether backends are measured against the CPU engine. 'automatic' (the default): once for each device and driver, and kept for later runs; in
   * pages only processors by another way. 'load': what an earlier run measured counts, nothing is measured now. 'anew': what was kept does
   * not count: all is asked, tested and measured now. false: what backends say of themselves counts.
   */
  readonly measure?: Measuring;
  /** Where measurements and what backends said are kept. Default: `defaultStore()` of @polygrad/core/engine. */
  readonly measureStore?: TuningStore;
  /**
   * Whether an engine has to pass its self-test before it is used for the first time with a device and driver. Default true, but for the CPU
   * engine in pages. One that computes wrongly is not used.
   */
  readonly selfTest?: boolean;
  /** Told in a line what is found of each backend, and of engines that compute wrongly. Default: the console, of wrong engines alone; null: nobody. */
  readonly log?: ((text: string) => void) | null;
  /**
   * Whether plans are kept for later processes, whose first steps then take a third of the time: see `usePlanCache` of @polygrad/core/plans, whose
   * options may stand here. Default: true in Node, in the folder of caches of the user; false in pages.
   */
  readonly plans?: boolean | PlanCacheOptions;
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
  /** Plans that are kept: a program that ends after its first steps awaits `plans?.saved()`. Null: none are, or the program calls `usePlanCache` itself. */
  readonly plans: PlanCache | null;
}

/** What a search found. */
export type Found = Omit<Detected, 'plans'>;

const op = 'autoDetectAndConfigureGpu';
/** The last resort, which others must beat. */
const fallback = 'cpu';

/** One search. */
interface Search {
  readonly options: AutoDetectOptions;
  readonly known: readonly BackendPackage[];
  readonly processes: Processes | null;
  readonly store: TuningStore;
  readonly timeout: number;
  readonly anew: boolean;
}

type Options = Readonly<Record<string, unknown>> | undefined;
const optionsOf = ({ options }: Search, name: string): Options => options.engineOptions?.[name];

/** The CPU engine is always there, however long it takes. */
const limit = ({ timeout }: Search, name: string): number => (name === fallback ? Number.POSITIVE_INFINITY : timeout);

/** The search over given packages; `autoDetectAndConfigureGpu` is the one over those that are known. */
export async function detect(
  options: AutoDetectOptions,
  known: readonly BackendPackage[],
  compare?: Compare,
  processes: Processes | null = processesHere,
): Promise<Found> {
  checkDetectOptions(options, known);
  const { timeout = 5000, measureStore, measure, onReport, log } = options;
  const store = measureStore ?? defaultStore();
  const search: Search = { options, known, processes, store, timeout, anew: measure === 'anew' };
  const required = namesOfList(options.require);
  const only = options.only === undefined ? null : namesOfList(options.only);
  const exclude = namesOfList(options.exclude);
  const considered = (name: string): boolean => (only === null || only.includes(name)) && !exclude.includes(name);
  const names = [...new Set([...listBackends(), ...known.map(({ name }) => name)])];
  const rows = await Promise.all(
    names.map(async (name): Promise<Row> => {
      const source = known.find((p) => p.name === name);
      if (considered(name)) return inspect(search, name, source);
      // Loaded all the same, unless the program registered one: dtypes that another engine does not hold live there.
      if (name === fallback && !exclude.includes(name) && source !== undefined && getBackend(name) === undefined)
        await within(limit(search, name), source.load);
      return rowOf(name, 'left out', 'not among what the call asks for');
    }),
  );
  try {
    const candidates = order(rows, options).filter(({ name }) => required.length === 0 || required.includes(name));
    const { engine, chosen } = await start(search, candidates, rows, compare);
    if (required.length > 0)
      for (const r of rows)
        if (r !== chosen && r.verdict === 'slower' && !required.includes(r.name))
          [r.verdict, r.reason] = ['left out', `not among what is required; ${r.reason}`];
    const report = conclude(rows, order(candidates, options), chosen);
    for (const { name, verdict, reason } of report) log?.(`${name}: ${verdict}, ${reason}`);
    onReport?.(report);
    if (engine === null) throw await failure(rows, report, options, considered(fallback));
    await setEngine(engine);
    return { engine, device: engine.device, report };
  } finally {
    for (const { close } of rows) close();
  }
}

/** Why nothing starts, with the report. */
async function failure(
  rows: readonly Row[],
  report: DetectionReport,
  { require, exclude }: AutoDetectOptions,
  hasCpu: boolean,
): Promise<EngineMissingError> {
  const { formatReport } = await import('./report.ts');
  const required = namesOfList(require);
  if (required.length > 0) {
    const why = required.map((name) => {
      const { verdict, reason } = rows.find((r) => r.name === name) ?? {
        verdict: 'no device',
        reason: 'not on this platform',
      };
      return `${name} (${verdict}: ${reason})`;
    });
    const others = rows
      .filter(({ create, name }) => create !== null && !required.includes(name))
      .map(({ name }) => name);
    const remedy =
      others.length > 0 ? `without 'require' there would be ${others.join(', ')}` : 'nothing else is there';
    return new EngineMissingError(
      op,
      `what is required cannot be had: ${why.join('; ')}; ${remedy}:\n${formatReport(report)}`,
    );
  }
  const remedy = hasCpu
    ? "install a backend package, for example '@polygrad/backend-cpu'"
    : `the CPU engine would, but ${namesOfList(exclude).includes(fallback) ? "'exclude' names it" : "'only' does not"}`;
  return new EngineMissingError(op, `no engine starts here; ${remedy}:\n${formatReport(report)}`);
}

/** Starts the best that starts and computes rightly. */
async function start(
  search: Search,
  candidates: readonly Row[],
  rows: readonly Row[],
  compare: Compare | undefined,
): Promise<{ readonly engine: IEngine | null; readonly chosen: Row | null }> {
  const waiting = [...candidates];
  const first = wished(search.options);
  let judged = false;
  while (waiting.length > 0) {
    if (!judged && !first.includes(waiting[0]!.name)) {
      judged = true;
      await judge(search, waiting, compare);
      continue;
    }
    const candidate = waiting.shift() as Row;
    if (!(await proveApart(search, candidate))) continue;
    const { name } = candidate;
    const options = optionsOf(search, name);
    const outcome = await within(
      limit(search, name),
      async () => engineFrom(await candidate.create!(options, { isProven: await isProven(search, candidate) }), name),
      (late) => late.dispose(),
    );
    if (outcome.kind === 'value') {
      const engine = outcome.value;
      if (await proveHere(search, candidate, engine)) {
        candidate.dtypes = [...engine.caps.dtypes];
        if (!judged) for (const r of rows) if (isProcessor(r)) unmeasured(r, candidate);
        return { engine, chosen: candidate };
      }
      engine.dispose();
      continue;
    }
    if (outcome.kind === 'error' && isMistake(outcome.error)) throw outcome.error;
    refuse(candidate, outcome, `it did not start within ${search.timeout} ms`);
    // What is kept says that it would.
    if (candidate.kept !== null && outcome.kind === 'error')
      void (await import('./kept.ts')).saveKept(search.store, candidate.key, null);
  }
  return { engine: null, chosen: null };
}

/** What became of a backend that gave no answer. */
function refuse(r: Row, outcome: Outcome<unknown>, late: string): void {
  r.create = null;
  if (outcome.kind === 'late') [r.verdict, r.reason] = ['timed out', late];
  if (outcome.kind !== 'error') return;
  const ended = (outcome.error as Error | undefined)?.name === 'EndedError';
  [r.verdict, r.reason] = [ended ? 'crashed' : 'failed to start', oneLine(outcome.error)];
}

/** Loads a backend where it is not registered yet, and asks it what it found. */
async function inspect(search: Search, name: string, source: BackendPackage | undefined): Promise<Row> {
  const begun = performance.now();
  if (source?.apart === true && search.processes !== null && (await isOwn(name, source))) {
    const found = await inspectApart(search, search.processes, name, source);
    if (found !== null) return found;
  }
  const timeout = limit(search, name);
  if (getBackend(name) === undefined && source !== undefined) {
    const loaded = await within(timeout, source.load);
    if (loaded.kind === 'late')
      return rowOf(name, 'timed out', `${source.specifier} was not loaded within ${timeout} ms`);
    if (loaded.kind === 'error') return notLoaded(name, source, loaded.error);
  }
  const provider = getBackend(name);
  if (provider === undefined)
    return rowOf(name, 'failed to start', `${source?.specifier} registers no backend '${name}'`);
  const left = Math.max(1, timeout - (performance.now() - begun));
  const probed = await within(left, () => provider.probe());
  if (probed.kind === 'late') return rowOf(name, 'timed out', `its probe did not answer within ${timeout} ms`);
  if (probed.kind === 'error') return rowOf(name, 'failed to start', oneLine(probed.error));
  return answered(name, probed.value, async (...given) => provider.create(...given), {
    ...(name === fallback && inNode && search.processes !== null && { memoryBytes: search.processes.memoryBytes }),
  });
}

function notLoaded(name: string, source: BackendPackage, error: unknown): Row {
  const { specifier } = source;
  return isMissing(error, specifier)
    ? rowOf(name, 'not installed', `add the package ${specifier}`, { install: installText(source) })
    : rowOf(name, 'failed to start', `${specifier} cannot be loaded: ${whyNotLoaded(error)}`);
}

/** The row of a backend that said what it found. */
function answered(name: string, probe: Probe, create: NonNullable<Row['create']>, known: Partial<Row>): Row {
  if (typeof probe?.score !== 'number' || typeof probe.reason !== 'string')
    return rowOf(name, 'failed to start', 'its probe answered without a score and a reason');
  if (!(probe.score > 0)) return rowOf(name, 'no device', probe.reason);
  const row = rowOf(name, 'slower', probe.reason, { ...known, create }, probe);
  return known.memoryBytes === undefined ? row : { ...row, memoryBytes: known.memoryBytes };
}

/** True unless the program registered another backend under the package's name. */
async function isOwn(name: string, { load }: BackendPackage): Promise<boolean> {
  const registered = getBackend(name);
  if (registered === undefined) return true;
  // It is loaded already.
  const names = ((await load().catch(() => null)) ?? {}) as Readonly<Record<string, unknown>>;
  return Object.values(names).includes(registered);
}

/** What a backend with native code said in an earlier run, or says in a process of its own. Null where there can be none. */
async function inspectApart(
  search: Search,
  processes: Processes,
  name: string,
  source: BackendPackage,
): Promise<Row | null> {
  const { specifier, load } = source;
  if (!processes.has(specifier))
    return rowOf(name, 'not installed', `add the package ${specifier}`, { install: installText(source) });
  const { keyOf, loadKept, saveKept } = await import('./kept.ts');
  const key = keyOf(await processes.fingerprint({ specifier, name }));
  const found = await loadKept(search.store, key);
  let kept = search.anew || found?.old !== false ? null : found.kept;
  let opened: Apart | null = null;
  const apart = (): Apart | null => (opened ??= processes.open({ specifier, name }));
  const close = (): void => opened?.close();
  const create: NonNullable<Row['create']> = async (...given) => {
    if (getBackend(name) === undefined) await load();
    return (getBackend(name) as BackendProvider).create(...given);
  };
  if (kept === null) {
    const asked = apart();
    if (asked === null) return null;
    const { timeout } = search;
    const probed = await within(timeout, () => asked.probe());
    const times = found?.kept.failed?.times ?? 0;
    if (probed.kind === 'value') {
      kept = { probe: probed.value, failed: null, proofs: {} };
      const row = answered(name, kept.probe!, create, { apart, close, kept, key, failures: times });
      if (row.verdict !== 'failed to start') await saveKept(search.store, key, kept);
      // Nothing more is asked of what has no device.
      if (row.verdict !== 'slower') close();
      return row;
    }
    close();
    const row = rowOf(name, 'failed to start', '', { key, failures: times });
    refuse(row, probed, `its probe did not answer within ${timeout} ms`);
    if (probed.kind === 'error' && isMissing(probed.error, specifier)) return notLoaded(name, source, probed.error);
    await keepFailure(search, row);
    return row;
  }
  const { probe, failed } = kept;
  if (failed !== null)
    return rowOf(name, failed.verdict, `${failed.reason} (in an earlier run)`, {}, probe ?? undefined);
  return answered(name, probe as Probe, create, { apart, close, kept, key });
}

/** Keeps that a backend crashed or was too slow, so that later searches do not wait for it. */
async function keepFailure({ store }: Search, r: Row): Promise<void> {
  const { verdict, reason, kept, failures, key } = r;
  if (verdict !== 'crashed' && verdict !== 'timed out') return;
  const { saveKept } = await import('./kept.ts');
  await saveKept(store, key, {
    probe: kept?.probe ?? null,
    failed: { verdict, reason, times: failures + 1 },
    proofs: {},
  });
}

/** Has a backend with a process of its own prove itself there, once. False where it does not. */
async function proveApart(search: Search, r: Row): Promise<boolean> {
  if (r.apart === null || r.kept === null || search.options.selfTest === false) return true;
  const { optionsKey, saveKept } = await import('./kept.ts');
  const options = sent(optionsOf(search, r.name));
  const at = optionsKey(options);
  let proof = r.kept.proofs[at];
  if (proof === undefined) {
    const asked = r.apart();
    if (asked === null) return true;
    const { timeout } = search;
    const outcome = await within(timeout, () => asked.prove(options));
    if (outcome.kind !== 'value') {
      r.close();
      if (outcome.kind === 'error' && isMistake(outcome.error)) throw mistake(outcome.error as Error);
      refuse(r, outcome, `its self-test did not end within ${timeout} ms`);
      if (r.verdict === 'crashed') r.reason = `${r.reason} in its self-test`;
      await keepFailure(search, r);
      return false;
    }
    proof = outcome.value;
    r.kept = { ...r.kept, proofs: { ...r.kept.proofs, [at]: proof } };
    await saveKept(search.store, r.key, r.kept);
  }
  return judgeProof(search, r, proof);
}

/** True where an engine need not test itself: it did in a process of its own, or nobody asks it to. */
async function isProven({ options }: Search, { name, apart, kept }: Row): Promise<boolean> {
  if (options.selfTest === false) return true;
  if (apart === null || kept === null) return false;
  const { optionsKey } = await import('./kept.ts');
  return kept.proofs[optionsKey(sent(options.engineOptions?.[name]))] !== undefined;
}

/** The same for an engine of this process, before anything else is done with it. */
async function proveHere(search: Search, r: Row, engine: IEngine): Promise<boolean> {
  if (r.apart !== null || search.options.selfTest === false || (r.name === fallback && !inNode)) return true;
  const { keyOf, loadKept, optionsKey, saveKept, surroundings } = await import('./kept.ts');
  const given = optionsKey(sent(optionsOf(search, r.name)));
  const key = keyOf([r.name, r.device, r.driver, engine.device, given, surroundings()].join('\n'));
  const found = search.anew ? null : await loadKept(search.store, key);
  let proof = found?.old === false ? found.kept.proofs[given] : undefined;
  if (proof === undefined) {
    const outcome = await within(limit(search, r.name), async () => {
      const { selfTest } = await import('@polygrad/core/engine/self-test');
      return selfTest(engine);
    });
    if (outcome.kind !== 'value') {
      refuse(r, outcome, `its self-test did not end within ${search.timeout} ms`);
      return false;
    }
    const { wrong, milliseconds } = outcome.value;
    proof = { wrong, milliseconds, dtypes: [...engine.caps.dtypes] };
    const probe = { score: r.score, reason: r.reason, device: r.device ?? '' };
    await saveKept(search.store, key, { probe, failed: null, proofs: { [given]: proof } });
  }
  return judgeProof(search, r, proof);
}

function judgeProof({ options: { log } }: Search, r: Row, { wrong, dtypes }: Proof): boolean {
  r.dtypes = dtypes;
  if (wrong === null) return true;
  r.create = null;
  [r.verdict, r.reason] = ['wrong answers', wrong];
  const driver = r.driver === null ? '' : `, driver ${r.driver}`;
  const text = `[${op}] the engine '${r.name}' computes wrongly and is not used (${r.device}${driver}): ${wrong}; install another version of its driver`;
  if (log === undefined) console.warn(text);
  else log?.(text);
  return false;
}

/** What can be sent to another process: callbacks and stores stay here. */
function sent(options: Options): Options {
  const plain = Object.entries(options ?? {}).filter(([, v]) => Object(v) !== v || Array.isArray(v));
  return plain.length === 0 ? undefined : Object.fromEntries(plain);
}

/** An engine's refusal of its options, as the error that it was in the other process. */
function mistake({ message }: Error): ArgumentError {
  const [, from = op, text = message] = /^\[([^\]]*)\] ([\s\S]*)$/.exec(message) ?? [];
  return new ArgumentError(from, text);
}

/** Names of backends to be taken if they are usable at all. */
function wished({ prefer, require }: AutoDetectOptions): readonly string[] {
  return [...namesOfList(prefer), ...namesOfList(require)];
}

/** Those worth starting, best first: the preferred, those that beat the CPU engine, that engine, and the others only after it. */
function order(rows: readonly Row[], options: AutoDetectOptions): Row[] {
  const first = wished(options);
  const rank = ({ name }: Row): number => (first.includes(name) ? first.indexOf(name) : first.length);
  const last = rows.find(({ name }) => name === fallback);
  // A software adapter is the processor by a longer way, and one by another way has to be measured.
  const beats = (r: Row): boolean =>
    r.measured !== null ? r.faster : !r.software && r.processor === null && r.score > (last?.score ?? 0);
  const tier = (r: Row): number => (r.name === fallback ? 1 : beats(r) ? 0 : 2);
  return rows
    .filter((r) => r.create !== null)
    .sort((a, b) => rank(a) - rank(b) || tier(a) - tier(b) || b.score - a.score);
}

/**
 * Measures what may be taken, and puts it in order. Where nothing has to be decided nothing is measured; in pages a device of its own is
 * not unless they ask: both engines would have to be loaded for it.
 */
async function judge(search: Search, waiting: Row[], compare: Compare | undefined): Promise<void> {
  const { options, known, store, timeout } = search;
  const { measure = 'automatic' } = options;
  const wanted = (r: Row): boolean => !r.software && (inNode || r.processor !== null || measure === 'anew');
  const yardstick = waiting.find(({ name }) => name === fallback) ?? waiting.find(wanted);
  const others = waiting.filter((r) => r !== yardstick && wanted(r));
  if (yardstick === undefined || others.length === 0) return;
  if (measure !== false) await Promise.all(others.map((r) => proveApart(search, r)));
  const fine = others.filter(({ create }) => create !== null);
  const { judgeRows } = await import('./contest.ts');
  const specifierOf = (name: string): string => known.find((p) => p.name === name)?.specifier ?? '';
  await judgeRows(yardstick, fine, { measure, timeout, store, compare }, (r) => {
    const given = optionsOf(search, r.name);
    return {
      name: r.name,
      options: given,
      facts: r.processor ?? [r.device, r.driver, r.reason].join(' '),
      create: async () => r.create!(given),
      ...(r.apart !== null &&
        r.kept !== null &&
        compare === undefined && {
          apart: async (other) => {
            const asked = r.apart?.();
            if (!asked) throw new Error('its process does not start');
            const against = { specifier: specifierOf(other.name), name: other.name, options: sent(other.options) };
            return asked.compare(sent(given), against);
          },
        }),
    };
  });
  const there = waiting.filter(({ create }) => create !== null);
  waiting.splice(0, waiting.length, ...order(there, options));
}

/** Why a processor by another way was not measured. */
function unmeasured(r: Row, chosen: Row): void {
  const what = `not measured: ${chosen === r ? 'it is preferred' : `${chosen.name} is preferred`}`;
  r.reason = r.reason === '' ? what : `${r.reason}, ${what}`;
}

/** What a backend's `create` gave. Throws where that is no engine: a package for another version of core, say. */
function engineFrom(made: IEngine, name: string): IEngine {
  if (typeof made?.submit !== 'function' || typeof made.dispose !== 'function')
    throw new Error(`the backend '${name}' made no engine`);
  return made;
}

/**
 * Finds the engines of this machine and makes the best one the current engine.
 *
 * Backend packages that are installed (`@polygrad/backend-cuda`, `-webgpu`, `-opencl`, `-native`, `-cpu`; in browsers WebGPU and the
 * CPU engine), and everything else that is registered, are asked side by side what they found. They are measured against the CPU engine and have to
 * compute rightly what is known; both is done once for each device and driver. The fastest starts; where it cannot, the next one. The
 * CPU engine is always there and comes last; a software adapter is never taken for a GPU. On Node, native code is asked in processes of its
 * own, and only that of the winner is loaded. Without this call everything runs on the CPU engine.
 *
 * @returns the engine, its device, and a report of every backend tried with why it was not chosen
 * @throws ArgumentError for options or names of backends that are not known, and where an engine refuses its `engineOptions`;
 * EngineMissingError where nothing that `require` names can be had, or nothing starts, which can only be where `only` or `exclude` leave the CPU
 * engine out
 *
 * @example
 * ```ts
 * import { autoDetectAndConfigureGpu, formatReport } from '@polygrad/auto-detect';
 * const { engine, report } = await autoDetectAndConfigureGpu({ only: ['cpu'] });
 * console.log(engine.name); //=> cpu
 * formatReport(report); // one line for each backend
 * ```
 */
export async function autoDetectAndConfigureGpu(options: AutoDetectOptions = {}): Promise<Detected> {
  const found = await detect(options, backendPackages);
  return { ...found, plans: await keptPlans(options.plans) };
}

/** Keeps plans, unless the program does. What is kept unasked fails in silence: a container's disk may be read only. */
async function keptPlans(plans: AutoDetectOptions['plans']): Promise<PlanCache | null> {
  if (!(plans ?? inNode)) return null;
  const { isPlanCacheUsed, usePlanCache } = await import('@polygrad/core/plans');
  if (typeof plans === 'object') return usePlanCache(plans);
  return isPlanCacheUsed() ? null : usePlanCache({ log: null });
}

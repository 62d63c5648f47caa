/**
 * The search: what is installed is asked side by side, measured and tested once, and the best starts.
 *
 * Native code is asked in processes of its own (`#processes`), so that only the winner's is loaded here. What was found is kept
 * (kept.ts, contest.ts), so that later searches need not ask.
 */
import { processes as processesHere, showReport } from '#processes';
import {
  defaultStore,
  EngineMissingError,
  getBackend,
  type IEngine,
  listBackends,
  setEngine,
} from '@polygrad/core/engine';
import type { PlanCache } from '@polygrad/core/plans';
import type { Apart, Processes } from './apart.ts';
import type { Compare } from './contest.ts';
import { inspect } from './inspect.ts';
import { isMistake, within } from './limit.ts';
import { checkDetectOptions, namesOfList } from './options.ts';
import { type BackendPackage, backendPackages, inNode } from './packages.ts';
import { isProven, proveApart, proveHere, sent } from './prove.ts';
import type { DetectionReport } from './report.ts';
import { conclude, isProcessor, type Row, rowOf } from './rows.ts';
import { type AutoDetectOptions, fallback, limit, op, optionsOf, refuse, type Search } from './search.ts';

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
    const report = showReport(conclude(rows, order(candidates, options), chosen));
    for (const { name, verdict, reason } of report) {
      log?.(`${name}: ${verdict}, ${reason}`);
      // It may be the fastest one, on a machine that is busy.
      if (log === undefined && verdict === 'timed out')
        console.warn(`[${op}] the engine '${name}' is not used: ${reason}; raise 'timeout', or 'exclude' it`);
    }
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
 * Measures what may be taken, and puts it in order. Where nothing has to be decided nothing is measured. In pages a device that is no processor is
 * not measured without `measure: 'anew'`: both engines would have to be loaded for it.
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
    const asked = (): Apart => {
      const process = r.apart?.();
      if (!process) throw new Error('its process does not start');
      return process;
    };
    return {
      name: r.name,
      options: given,
      facts: r.processor ?? [r.device, r.driver, r.reason].join(' '),
      create: async () => r.create!(given),
      ...(r.apart !== null &&
        r.kept !== null &&
        compare === undefined && {
          apart: {
            started: async () => asked().started(),
            compare: (other) => {
              const against = { specifier: specifierOf(other.name), name: other.name, options: sent(other.options) };
              return asked().compare(sent(given), against);
            },
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
 * Backend packages that are installed (`@polygrad/backend-cuda`, `-webgpu`, `-opencl`, `-native`, `-cpu`; in browsers WebGPU and the CPU engine) are
 * asked side by side what they found. So is everything else that is registered. They are measured against the CPU engine and have to compute rightly
 * what is known; both is done once for each device and driver. The fastest starts; where it cannot, the next one. The CPU engine is always there and
 * comes last; a software adapter is never taken for a GPU. On Node, native code is asked in processes of its own, and only that of the winner is
 * loaded. Without this call everything runs on the CPU engine.
 *
 * @returns the engine, its device, and a report of every backend tried with why it was not chosen
 * @throws ArgumentError for options or names of backends that are not known, and where an engine refuses its `engineOptions`; EngineMissingError
 *   where nothing that `require` names can be had, or nothing starts (where `only` or `exclude` leave the CPU engine out)
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

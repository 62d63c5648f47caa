/** One search: what the call asks for, and what its parts share. */
import type { TuningStore } from '@polygrad/core/engine';
import type { PlanCacheOptions } from '@polygrad/core/plans';
import type { Processes } from './apart.ts';
import type { Measuring } from './contest.ts';
import { oneLine, type Outcome } from './limit.ts';
import type { BackendPackage } from './packages.ts';
import type { DetectionReport } from './report.ts';
import type { Row } from './rows.ts';

/** Options of `autoDetectAndConfigureGpu`. */
export interface AutoDetectOptions {
  /**
   * Milliseconds that a backend has to answer, again to start, to pass its self-test, and to be measured; the CPU engine has any time. The start of the
   * process that it is asked in is not counted. Default 5000.
   */
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
  /** Called with a line about each backend, and about engines that compute wrongly. Default: the console, for those and engines that were too slow to answer; null: none. */
  readonly log?: ((text: string) => void) | null;
  /**
   * Whether plans are kept for later processes, whose first steps then take a third of the time: see `usePlanCache` of @polygrad/core/plans, whose
   * options may stand here. Default: true in Node, in the folder of caches of the user; false in pages.
   */
  readonly plans?: boolean | PlanCacheOptions;
  /** Called with the report, also if no engine starts. */
  readonly onReport?: (report: DetectionReport) => void;
}
export const op = 'autoDetectAndConfigureGpu';
/** The last resort, which others must beat. */
export const fallback = 'cpu';

/** One search. */
export interface Search {
  readonly options: AutoDetectOptions;
  readonly known: readonly BackendPackage[];
  readonly processes: Processes | null;
  readonly store: TuningStore;
  readonly timeout: number;
  readonly anew: boolean;
}

export type Options = Readonly<Record<string, unknown>> | undefined;
export const optionsOf = ({ options }: Search, name: string): Options => options.engineOptions?.[name];

/** The CPU engine is always there, however long it takes. */
export const limit = ({ timeout }: Search, name: string): number =>
  name === fallback ? Number.POSITIVE_INFINITY : timeout;
/** What became of a backend that gave no answer. */
export function refuse(r: Row, outcome: Outcome<unknown>, late: string): void {
  r.create = null;
  if (outcome.kind === 'late') [r.verdict, r.reason] = ['timed out', outcome.reason ?? late];
  if (outcome.kind !== 'error') return;
  const ended = (outcome.error as Error | undefined)?.name === 'EndedError';
  [r.verdict, r.reason] = [ended ? 'crashed' : 'failed to start', oneLine(outcome.error)];
}

/** What is known of each backend while the search goes on: one row each, from which the report is made. */
import type { BackendProvider, EngineComparison, IEngine, Probe } from '@polygrad/core/engine';
import type { BackendPackage } from './packages.ts';
import type { Apart } from './apart.ts';
import type { Kept } from './kept.ts';
import type { BackendReport, DetectionReport, Verdict } from './report.ts';

export interface Row {
  readonly name: string;
  readonly device: string | null;
  readonly driver: string | null;
  readonly memoryBytes: number | null;
  readonly software: boolean;
  /** What its speed depends on, if it is the processor by another way. */
  readonly processor: string | null;
  /** Makes an engine; null if it cannot be used. */
  create: ((...given: Parameters<BackendProvider['create']>) => Promise<IEngine>) | null;
  /** Its process, started when first needed; null if it is asked in this one. */
  readonly apart: (() => Apart | null) | null;
  /** Ends that process if there is one. */
  readonly close: () => void;
  /** What is kept of it, and under which key. */
  kept: Kept | null;
  key: string;
  /** How often it failed to answer before. */
  readonly failures: number;
  dtypes: readonly string[] | null;
  score: number;
  measured: EngineComparison | null;
  /** True once it was measured and is to be taken before the CPU engine. */
  faster: boolean;
  verdict: Verdict;
  reason: string;
  /** What to install to have it, or null. */
  readonly install: string | null;
}

type Known = Partial<Omit<Row, 'name' | 'verdict' | 'reason'>>;

/** A row with what is known, and nothing else. */
export function rowOf(name: string, verdict: Verdict, reason: string, known: Known = {}, probe?: Probe): Row {
  const { device = null, score = 0, software = false, processor = null } = probe ?? {};
  const { driver = null, memoryBytes = null, dtypes = null } = probe ?? {};
  return {
    name,
    device,
    driver,
    memoryBytes,
    software,
    processor,
    create: null,
    apart: null,
    close: () => undefined,
    kept: null,
    key: '',
    failures: 0,
    dtypes,
    score: Math.max(0, score),
    measured: null,
    faster: false,
    verdict,
    reason,
    install: null,
    ...known,
  };
}

export function isProcessor(r: Row): boolean {
  return r.processor !== null && r.create !== null && !r.software;
}

/** What a person types to install a package; the backend for WebGPU needs that of WebGPU for Node beside it. */
export function installText({ name, specifier }: BackendPackage): string {
  return `npm install ${specifier}${name === 'webgpu' ? ' webgpu' : ''}`;
}

/** The rows with their verdicts, the chosen one first, then in the order in which they would have been tried. */
export function conclude(rows: readonly Row[], candidates: readonly Row[], chosen: Row | null): DetectionReport {
  const finished = (r: Row): BackendReport => {
    const { name, device, driver, memoryBytes, dtypes, score, measured, install } = r;
    const is = (verdict: Verdict, reason: string): BackendReport => {
      const facts = { name, device, driver, memoryBytes, dtypes, score, measured };
      return { ...facts, chosen: r === chosen, verdict, reason, install };
    };
    if (r === chosen) return is('chosen', r.reason);
    if (r.verdict !== 'slower') return is(r.verdict, r.reason);
    if (r.software) return is('software adapter', r.reason);
    // A processor by another way is judged by what was measured, whatever it says of itself.
    const ahead = chosen !== null && score > chosen.score;
    if (ahead && isProcessor(r) && r.measured !== null)
      return is('not preferred', `${r.reason}; it is taken from 1.25 times on, with no work below 0.8`);
    if (ahead && !isProcessor(r)) return is('not preferred', `${chosen.name} is; ${r.reason}`);
    const than =
      chosen === null || ahead ? '' : `scored ${score < chosen.score ? 'lower than' : 'as'} ${chosen.name}; `;
    return is('slower', `${than}${r.reason}`);
  };
  const first = chosen === null ? [] : [chosen];
  return [...new Set([...first, ...candidates, ...rows])].map(finished);
}

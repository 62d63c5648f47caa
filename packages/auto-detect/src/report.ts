/** What auto-detection found: one row for each backend, and the rows as a table for a person. */
import type { EngineComparison } from '@polygrad/core/engine';

/** Why a backend was taken, or was not. */
export type Verdict =
  | 'chosen'
  | 'not installed'
  | 'left out'
  | 'no device'
  | 'software adapter'
  | 'slower'
  | 'not preferred'
  | 'wrong answers'
  | 'crashed'
  | 'failed to start'
  | 'timed out';

/** What is known about one backend. */
export interface BackendReport {
  /** Name it is registered under: 'cpu', 'webgpu' ... */
  readonly name: string;
  /** Name of the device; null if it could not be asked. */
  readonly device: string | null;
  /** The driver and its version, where the backend tells. */
  readonly driver: string | null;
  /** Bytes of the device's memory, where they are known. */
  readonly memoryBytes: number | null;
  /** Dtypes that its tensors may have; null where no engine was made. */
  readonly dtypes: readonly string[] | null;
  /** Higher is better, 10 for the CPU engine; 0 if it is not usable. The measurement, else the backend's own score. */
  readonly score: number;
  /** Speed relative to the CPU engine, over all and by kind of work; null if it was not measured. */
  readonly measured: EngineComparison | null;
  readonly chosen: boolean;
  readonly verdict: Verdict;
  /** The verdict with its details, in words. */
  readonly reason: string;
  /** The command to install it, if it is not installed; else null. */
  readonly install: string | null;
}

/** One row for each backend, the chosen one first. */
export type DetectionReport = readonly BackendReport[];

/** All there are, the shortest way to say so. */
const every = 'float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool'.split(' ');

/** Letters of a device's name that are shown. */
const widest = 40;

function dtypesText(dtypes: readonly string[] | null): string {
  if (dtypes === null) return '';
  const lacking = every.filter((name) => !dtypes.includes(name));
  if (lacking.length === 0) return 'all';
  return lacking.length < 4 ? `all but ${lacking.join(' ')}` : dtypes.join(' ');
}

/** Names of drivers that name all of their parts leave no room for the rest. */
function cut(text: string): string {
  return text.length > widest ? `${text.slice(0, widest - 1)}…` : text;
}

function memoryText(bytes: number | null): string {
  if (bytes === null) return '';
  const gib = bytes / 2 ** 30;
  return `${gib.toFixed(gib < 10 ? 1 : 0)} GiB`;
}

/**
 * The report as a table: a line for each backend, the chosen one marked by a star. It has device, memory, dtypes and score, and why the backend was
 * chosen or was not. Behind it stands what to install to get more. Node's console shows a report of `autoDetectAndConfigureGpu` so.
 *
 * @example
 * ```ts
 * import { autoDetectAndConfigureGpu, formatReport } from '@polygrad/auto-detect';
 * const { report } = await autoDetectAndConfigureGpu({ only: ['cpu'] });
 * console.log(formatReport(report).split('\n')[1]?.slice(0, 5)); //=> * cpu
 * ```
 */
export function formatReport(report: DetectionReport): string {
  if (report.length === 0) return '';
  const cells = report.map(({ name, device, memoryBytes, dtypes, score, chosen, verdict, reason }) => [
    `${chosen ? '*' : ' '} ${name}`,
    cut(device === 'none' ? '' : (device ?? '')),
    memoryText(memoryBytes),
    dtypesText(dtypes),
    score === 0 ? '-' : String(Math.round(score * 10) / 10),
    reason === '' || reason === verdict ? verdict : `${verdict}: ${reason}`,
  ]);
  const table = [['  backend', 'device', 'memory', 'dtypes', 'score', 'why'], ...cells];
  const used = table[0]!.map((_, i) => i).filter((i) => cells.some((row) => row[i] !== ''));
  const widths = used.map((i) => Math.max(...table.map((row) => row[i]!.length)));
  const lines = table.map((row) =>
    used
      .map((i, at) => row[i]!.padEnd(widths[at]!))
      .join('  ')
      .trimEnd(),
  );
  const missing = report.flatMap(({ install }) => (install === null ? [] : [`  ${install}`]));
  return [...lines, ...(missing.length === 0 ? [] : ['to get more:', ...missing])].join('\n');
}

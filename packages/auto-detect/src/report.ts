/** What auto-detection found: one row for each backend, and the rows as lines for a person. */

/** Why a backend was taken, or was not. */
export type Verdict =
  | 'chosen'
  | 'not installed'
  | 'left out'
  | 'no device'
  | 'software adapter'
  | 'slower'
  | 'not preferred'
  | 'failed to start'
  | 'timed out';

/** What is known about one backend. */
export interface BackendReport {
  /** Name it is registered under: 'cpu', 'webgpu' ... */
  readonly name: string;
  /** What a person would call the device; null where nobody could be asked. */
  readonly device: string | null;
  /** The higher the better; 0 where it is not usable. */
  readonly score: number;
  readonly chosen: boolean;
  readonly verdict: Verdict;
  /** The verdict with its details, in words. */
  readonly reason: string;
}

/** One row for each backend, the chosen one first. */
export type DetectionReport = readonly BackendReport[];

/**
 * The report as lines of text, the chosen backend marked by a star.
 *
 * @example
 * ```ts
 * import { formatReport } from '@polygrad/auto-detect';
 * const row = { name: 'cpu', device: 'a processor', score: 10, chosen: true, verdict: 'chosen', reason: 'the best here' } as const;
 * console.log(formatReport([row])); //=> * cpu  score 10  a processor: chosen, the best here
 * ```
 */
export function formatReport(report: DetectionReport): string {
  const longest = Math.max(0, ...report.map(({ name }) => name.length));
  const digits = Math.max(0, ...report.map(({ score }) => String(score).length));
  return report
    .map(({ name, device, score, chosen, verdict, reason }) => {
      const what = reason === '' || reason === verdict ? verdict : `${verdict}, ${reason}`;
      const where = device === null ? '' : `${device}: `;
      return `${chosen ? '*' : ' '} ${name.padEnd(longest)}  score ${String(score).padStart(digits)}  ${where}${what}`;
    })
    .join('\n');
}

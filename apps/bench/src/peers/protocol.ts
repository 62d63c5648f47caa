/**
 * What the harness and a participant's process say to each other: one line each way over standard input and output.
 * Answers are JSON behind a mark, so that whatever a library prints itself does no harm.
 */
import type { SizesWork, Work } from '../work/cases.ts';

/** What samples are measured by: what passes, or what processors spend on the process (harness/sampling.ts). */
export type ClockName = 'wall' | 'processor';

export type Request =
  | { readonly op: 'prepare'; readonly work: Work; readonly warmMs: number }
  | { readonly op: 'measure'; readonly budgetMs: number; readonly maxSamples: number }
  | { readonly op: 'trial'; readonly work: SizesWork }
  | { readonly op: 'finish' }
  | { readonly op: 'quit' };

/** Said once, when the process can take requests. */
export interface ReadyReply {
  readonly version: string;
  readonly note?: string;
}

export interface PrepareReply {
  /** Results to be checked. */
  readonly probe: readonly number[];
  readonly count: number;
  /** Nanoseconds of one operation, roughly. */
  readonly opNs: number;
  /** True if the first run was so slow that it is to be the only one: `opNs` is its time. */
  readonly once?: boolean;
  readonly note?: string;
  /** Most bytes of buffers in use at any time of this work. */
  readonly peakBytes?: number;
  /** Bytes of operands and results. */
  readonly leastBytes?: number;
}

export interface MeasureReply {
  readonly samples: readonly number[];
}

/** Any request may be answered with one of these. */
export interface FailureReply {
  readonly unsupported?: string;
  readonly error?: string;
}

export const mark = '@bench ';

/** One request as JSON, for participants that read it (JavaScript, Python). */
export function jsonRequest(request: Request): string {
  return JSON.stringify(request);
}

/** One request as words, for participants written in C: `prepare KIND N WARM_MS` (matrix products: and M and K), `measure BUDGET_MS MAX`, `finish`, `quit`. */
export function wordRequest(request: Request): string {
  switch (request.op) {
    case 'prepare':
      return [
        `prepare ${request.work.kind} ${'n' in request.work ? request.work.n : 0} ${request.warmMs}`,
        ...(request.work.kind === 'gemm' ? [request.work.m, request.work.k] : []),
      ].join(' ');
    case 'measure':
      return `measure ${request.budgetMs} ${request.maxSamples}`;
    case 'trial':
    case 'finish':
    case 'quit':
      return request.op;
  }
  return request satisfies never;
}

/**
 * The shape of a conformance case and of its outcome.
 *
 * Cases are plain data with a `run` function. Nothing here depends on a test runner: the same list runs from the command line, inside vitest and in a
 * browser page.
 */

export interface ConformanceCase {
  /** Unique, stable, readable: 'add / float32 / broadcast [3,1]x[1,4] / forward'. */
  readonly name: string;
  /** Throws to fail. Returns a reason to be counted as skipped. */
  readonly run: () => Promise<undefined | SkipReason>;
}

export interface SkipReason {
  readonly skip: string;
}

/** What became of a case. */
export interface CaseResult {
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Error message of a failed case, reason of a skipped one. */
  readonly detail: string;
  readonly milliseconds: number;
}

/** When to report, when to measure on test images, and how fast the training is. Pure but for the clock given to it. */

/** Milliseconds of a turn: a prediction waits no longer than this, or than one step. */
const TURN = 40;
/** Most steps of a turn. */
const MOST_STEPS = 64;
/** Milliseconds between two reports. */
const REPORT_EVERY = 200;
/** Least milliseconds between two evaluations; they may take a fifth of the time at most. */
const EVALUATE_EVERY = 1500;
const EVALUATION_SHARE = 5;

export class Pacer {
  readonly #now: () => number;
  #reported = 0;
  #evaluatedAt = 0;
  #evaluation = 0;
  /** Milliseconds of training since the last report. */
  #trained = 0;
  #steps = 1;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.restart();
  }

  /** Forgets what was measured: a new network, another engine, a pause. */
  restart(): void {
    this.#reported = this.#evaluatedAt = this.#now();
    this.#trained = 0;
    this.#steps = 1;
  }

  /** Steps of the next turn. */
  get steps(): number {
    return this.#steps;
  }

  reportDue(): boolean {
    return this.#now() - this.#reported >= REPORT_EVERY;
  }

  evaluationDue(): boolean {
    const least = Math.max(EVALUATE_EVERY, this.#evaluation * EVALUATION_SHARE);
    return this.#now() - this.#evaluatedAt >= least;
  }

  /** A turn of some steps took so long. */
  trained(steps: number, milliseconds: number): void {
    this.#trained += milliseconds;
    // A first step that compiles says nothing of the next: grow by doubling, shrink by what was seen.
    const fit = Math.floor((TURN * steps) / Math.max(milliseconds, 0.1));
    this.#steps = Math.max(1, Math.min(fit, 2 * this.#steps, MOST_STEPS));
  }

  evaluated(milliseconds: number): void {
    this.#evaluation = milliseconds;
    this.#evaluatedAt = this.#now();
  }

  /** Images per second of training since the last call, which a report makes; null where nothing was measured. */
  rate(images: number): number | null {
    const seconds = this.#trained / 1000;
    this.#trained = 0;
    this.#reported = this.#now();
    return seconds > 0 ? images / seconds : null;
  }
}

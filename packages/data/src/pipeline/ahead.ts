/**
 * Items made ready before they are asked for, in order: what prefetching and concurrent functions come down to.
 *
 * Not a pool: whoever is asked decides where the work is done. At most `count` requests are open, so a slow reader never fills the memory.
 */

/** Asks for one item more; `done` where there is none. Called again before earlier answers are there. */
export type Ask<T> = () => Promise<IteratorResult<T, undefined>>;

/** Answers in the order they were asked for. A failure comes at its own item, and ends the iteration. */
export class Ahead<T> implements AsyncIterableIterator<T, undefined> {
  readonly #ask: Ask<T>;
  readonly #count: number;
  readonly #close: () => Promise<unknown>;
  #open: Promise<IteratorResult<T, undefined>>[] = [];
  #ended = false;

  /** @param count requests that may be open, 1 or more; @param close what to end when the iteration ends */
  constructor(ask: Ask<T>, count: number, close: () => Promise<unknown>) {
    this.#ask = ask;
    this.#count = count;
    this.#close = close;
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    this.#fill();
    // The others are made while this one is waited for and used.
    const answer = this.#open.shift();
    if (answer === undefined) return { done: true, value: undefined };
    try {
      const result = await answer;
      if (result.done === true) await this.return();
      return result;
    } catch (error) {
      await this.return();
      throw error;
    }
  }

  #fill(): void {
    while (!this.#ended && this.#open.length < this.#count) {
      const answer = this.#ask();
      // A failure waits in its promise until its item is asked for.
      answer.catch(() => {});
      this.#open.push(answer);
    }
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    if (!this.#ended) {
      this.#ended = true;
      this.#open = [];
      await this.#close();
    }
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

/** Items of an iterator with a function of each, `count` of them at a time. The iterator is asked for one after the other. */
export function aheadOf<T, U>(
  source: AsyncIterator<T>,
  count: number,
  change: (item: T, index: number) => U | Promise<U>,
): Ahead<U> {
  let last: Promise<unknown> = Promise.resolve();
  let index = 0;
  const ask: Ask<U> = () => {
    const asked = last.then(() => source.next());
    // The caller of the item gets the error.
    last = asked.catch(() => {});
    return asked.then(async (result) => {
      if (result.done === true) return { done: true, value: undefined };
      return { done: false, value: await change(result.value, index++) };
    });
  };
  return new Ahead(ask, count, async () => source.return?.());
}

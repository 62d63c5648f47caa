/** One thing at a time: training steps, predictions and everything else that uses the network take turns. */

/** Runs functions one after the other, in the order they were given. */
export class Queue {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves or rejects as the function does, once all before it have ended. */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}

/** Resolves after messages that have arrived; a timer of 0 would wait milliseconds. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

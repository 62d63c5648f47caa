/** Passes over batches that end when a signal says so. */
import { type BatchSequence, type BatchSource, passOf, type TrainBatch } from './batch.ts';

/** The batches of pass `number`, until a signal, if there is one, is aborted. */
export function passUntil(source: BatchSource, number: number, signal: AbortSignal | undefined): BatchSequence {
  const pass = passOf(source, number);
  return signal === undefined ? pass : untilAborted(pass, signal);
}

/** Throws the signal's reason once it is aborted, also while a batch is waited for, which may never come. */
async function* untilAborted(pass: BatchSequence, signal: AbortSignal): AsyncGenerator<TrainBatch, void> {
  let wake: (reason: unknown) => void = () => undefined;
  const abort = (): void => wake(signal.reason);
  signal.addEventListener('abort', abort);
  const batches = Symbol.asyncIterator in pass ? pass[Symbol.asyncIterator]() : pass[Symbol.iterator]();
  let isOpen = true;
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await new Promise<IteratorResult<TrainBatch>>((resolve, reject) => {
        wake = reject;
        Promise.resolve(batches.next()).then(resolve, (error: unknown) => {
          isOpen = false;
          reject(error);
        });
      });
      if (next.done === true) isOpen = false;
      if (!isOpen) return;
      yield await next.value;
    }
  } finally {
    signal.removeEventListener('abort', abort);
    // What waits for a batch closes only when that comes: nobody waits for it.
    const closing = isOpen ? Promise.resolve(batches.return?.()) : undefined;
    if (signal.aborted) closing?.catch(() => undefined);
    else await closing;
  }
}

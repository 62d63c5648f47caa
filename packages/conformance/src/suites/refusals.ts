/** Cases of what must be refused: at the call, with a message that names the operation and both values, leaving nothing behind. */
import * as pg from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';

export interface Refusal {
  readonly name: string;
  /** Must throw, or return a promise that rejects. */
  readonly run: () => unknown;
  /** All of them are in the message. */
  readonly says: readonly RegExp[];
}

export function refusalCases(refused: readonly Refusal[]): ConformanceCase[] {
  return refused.map(({ name, run, says }) => ({
    name: `errors / ${name}`,
    run: async () => {
      let message: string | null = null;
      try {
        const made = pg.scope(() => {
          const result = run();
          // Asynchronous operations refuse their arguments with a rejected promise.
          return result instanceof Promise ? { result } : null;
        });
        await made?.result;
      } catch (error) {
        message = error instanceof Error ? error.message : String(error);
      }
      if (message === null) throw new Error('nothing was thrown');
      for (const pattern of says)
        if (!pattern.test(message)) throw new Error(`message '${message}' does not match ${pattern}`);
      return undefined;
    },
  }));
}

/** Errors are part of the product: at the call, naming the operation and both values, and leaving nothing behind. */
import * as pg from '@polygrad/core';
import type { ConformanceCase } from '../case.ts';

const bad: readonly Refusal[] = [
  {
    name: 'add of shapes that do not broadcast',
    run: () => pg.add(pg.zeros([2, 3]), pg.zeros([4])),
    says: [/\[add\]/, /2, ?3/, /4/],
  },
  {
    name: 'matmul of wrong inner sizes',
    run: () => pg.matmul(pg.zeros([2, 3]), pg.zeros([4, 5])),
    says: [/\[matmul\]/, /3/, /4/],
  },
  { name: 'reshape to another size', run: () => pg.reshape(pg.zeros([2, 3]), [4, 2]), says: [/\[reshape\]/, /6/, /8/] },
  { name: 'axis out of range', run: () => pg.sum(pg.zeros([2, 3]), { axis: 2 }), says: [/\[sum\]/, /2/] },
  { name: 'permute with a repeated axis', run: () => pg.permute(pg.zeros([2, 3]), [0, 0]), says: [/\[permute\]/, /0/] },
  {
    name: 'concat of different sizes',
    run: () => pg.concat([pg.zeros([2, 3]), pg.zeros([2, 4])], { axis: 0 }),
    says: [/\[concat\]/, /3/, /4/],
  },
  {
    name: 'conv2d with wrong channels',
    run: () => pg.conv2d(pg.zeros([1, 3, 4, 4]), pg.zeros([2, 2, 3, 3])),
    says: [/\[conv2d\]/, /3/, /2/],
  },
  { name: 'max over nothing', run: () => pg.max(pg.zeros([0])), says: [/\[max\]/, /empty|zero|0/i] },
  {
    name: 'exp of integers by bitwise operation on floats',
    run: () => pg.bitwiseAnd(pg.zeros([2]), pg.zeros([2])),
    says: [/\[bitwiseAnd\]/, /float32/],
  },
  { name: 'ragged nested arrays', run: () => pg.tensor([[1, 2], [3]]), says: [/\[tensor\]/] },
  {
    name: 'use after dispose',
    run: () => {
      const t = pg.zeros([2]);
      t.dispose();
      t.dispose();
      return pg.add(t, 1);
    },
    says: [/dispose/i],
  },
];

export function errorCases(): ConformanceCase[] {
  return refusalCases(bad);
}

/** What must be refused: at the call, with a message that names the operation and both values, leaving nothing behind. */
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

/** What is measured: pieces of work that every participant understands, as plain data that travels between processes. */

export interface GemmWork {
  readonly kind: 'gemm';
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** `add`: a + b. `chain`: max(a * b + a, 0) * 0.5 - b. `sum`: the sum of a. float32 of `n` elements. */
export interface ElementwiseWork {
  readonly kind: 'add' | 'chain' | 'sum';
  readonly n: number;
}

/**
 * `small-add`: one addition of `n` elements, computed at once, as in eager frameworks.
 * `round-trip`: the same, and its result read back.
 * `record`: recording one addition without computing it.
 * `plan-hit`: computing a recorded chain of `ops` additions for which a plan exists; recording is not counted.
 */
export interface LatencyWork {
  readonly kind: 'small-add' | 'round-trip' | 'record' | 'plan-hit';
  readonly n: number;
  readonly ops: number;
}

/** One training step: forward, backward, update. */
export interface TrainWork {
  readonly kind: 'mlp' | 'cnn';
  readonly batch: number;
  readonly optimizer: 'sgd' | 'adam';
}

export type Work = GemmWork | ElementwiseWork | LatencyWork | TrainWork;

/** Learning rates of the training steps. */
export const learningRate = { sgd: 0.1, adam: 1e-3 } as const;

export interface BenchCase {
  /** Unique within its suite. */
  readonly id: string;
  readonly work: Work;
  /** For sizes that are no multiples of 64: the case that is. */
  readonly rounded?: string;
}

/** What a figure means to a reader. */
export interface Metric {
  readonly unit: string;
  /** From nanoseconds per operation. */
  readonly value: (ns: number) => number;
}

/** Bytes that must travel between memory and processor at least. */
function bytesOf(work: ElementwiseWork): number {
  return work.kind === 'sum' ? 4 * work.n : 12 * work.n;
}

export function metricOf(work: Work): Metric {
  switch (work.kind) {
    case 'gemm':
      return { unit: 'GFLOP/s', value: (ns) => (2 * work.m * work.n * work.k) / ns };
    case 'add':
    case 'chain':
    case 'sum':
      return { unit: 'GB/s', value: (ns) => bytesOf(work) / ns };
    case 'small-add':
    case 'round-trip':
    case 'plan-hit':
      return { unit: 'us', value: (ns) => ns / 1e3 };
    case 'record':
      return { unit: 'ns', value: (ns) => ns };
    case 'mlp':
    case 'cnn':
      return { unit: 'ms', value: (ns) => ns / 1e6 };
  }
  return work satisfies never;
}

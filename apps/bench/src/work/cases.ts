/** What is measured: pieces of work that every participant understands, as plain data that travels between processes. */
import type { NetworkSpec } from './networks.ts';

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
 * float32 of `n` elements as a square or, for `sum-middle`, a cube. Sums of two where the second is a row, a column, a whole
 * matrix transposed, every other column of both, a matrix turned by half; reductions over an axis; functions of rows.
 */
export interface LayoutWork {
  readonly kind:
    | 'add-row'
    | 'add-column'
    | 'add-transposed'
    | 'add-strided'
    | 'add-flipped'
    | 'sum-rows'
    | 'max-rows'
    | 'sum-columns'
    | 'max-columns'
    | 'sum-middle'
    | 'softmax'
    | 'layer-norm'
    | 'gelu';
  readonly n: number;
}

/**
 * float32 of `n` elements as a line or, with `rows` or `columns` in the name, a square along whose lines is worked. Works are running sums and
 * maxima, sorting, the ten or thousand greatest, and elements put and taken at `n` places out of order.
 */
export interface OrderWork {
  readonly kind:
    | 'cum-sum'
    | 'cum-sum-rows'
    | 'cum-sum-columns'
    | 'cum-max'
    | 'cum-max-rows'
    | 'sort'
    | 'sort-rows'
    | 'arg-sort'
    | 'top-10'
    | 'top-10-rows'
    | 'top-1000'
    | 'scatter'
    | 'scatter-add'
    | 'take';
  readonly n: number;
}

/** True for the work of the suite `indexing`. */
export function isOrderWork(work: Work): work is OrderWork {
  return /^(cum|sort|arg|top|scatter|take)/.test(work.kind);
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

/** A convolution of `batch` images with 3 x 3 filters, padded so that their size stays. */
export interface ConvWork {
  readonly kind: 'conv';
  readonly batch: number;
  readonly channels: number;
  readonly side: number;
  readonly filters: number;
}

/** One training step: forward, backward, update. */
export interface TrainWork {
  readonly kind: 'mlp' | 'cnn';
  readonly batch: number;
  readonly optimizer: 'sgd' | 'adam';
}

/** One training step of a network, with Adam. `length` is that of sequences, 1 for networks without. */
export interface NetworkWork {
  readonly kind: 'network';
  readonly spec: NetworkSpec;
  readonly batch: number;
  readonly length: number;
}

/** Uses of a network at one size after the other, each read at its end; done once, from the first call on, in a process of its own. */
export interface SizesWork {
  readonly kind: 'sizes';
  readonly spec: NetworkSpec;
  /** 'generate': the sizes count the tokens of one sequence, each given the last of them, with keys and values of those before kept. */
  readonly use: 'train' | 'infer' | 'generate';
  /** Which of the two the sizes are; the other stays. */
  readonly varies: 'batch' | 'length';
  readonly batch: number;
  readonly length: number;
  readonly sizes: readonly number[];
  /** A size that is known from the start to come later, as that of a last batch; a step at it is announced where there is a way to do that. */
  readonly announced?: number;
  /** Steps are compiled where there is a way to do that (`compile` of core); others record each one. */
  readonly compiled?: boolean;
  /** Positions in `sizes` at which the same size is used a second time, to tell what being new costs. */
  readonly again: readonly number[];
  /** No use begins later than this after the first. */
  readonly limitMs: number;
}

/** An operand of a public operation, drawn from the sequence of its number: float32, integers (int32, in PyTorch int64), or bool. */
export interface Operand {
  readonly kind: 'float' | 'integer' | 'bool';
  readonly shape: readonly number[];
  /** From here up to, but without, `high`. */
  readonly low: number;
  readonly high: number;
  /** False for floats that no gradient is asked for. */
  readonly gradient: boolean;
  /** In increasing order along the last axis. */
  readonly sorted: boolean;
}

/** A row of the suite `operations` (src/operations), once or with its gradients. */
export interface OperationWork {
  readonly kind: 'operation';
  readonly name: string;
  readonly backward: boolean;
  readonly operands: readonly Operand[];
  /** The operation in PyTorch. */
  readonly torch: string;
  readonly random: boolean;
}

export type Work =
  | GemmWork
  | ElementwiseWork
  | LayoutWork
  | OrderWork
  | OperationWork
  | ConvWork
  | LatencyWork
  | TrainWork
  | NetworkWork
  | SizesWork;

/** Learning rates of the training steps. */
export const learningRate = { sgd: 0.1, adam: 1e-3 } as const;

export interface BenchCase {
  /** Unique within its suite. */
  readonly id: string;
  readonly work: Work;
  /** For sizes that are no multiples of 64: the case that is. */
  readonly rounded?: string;
  /** The least memory that the work needs, where that is known. */
  readonly leastBytes?: number;
}

/** What a figure means to a reader. */
export interface Metric {
  readonly unit: string;
  /** From nanoseconds per operation. */
  readonly value: (ns: number) => number;
}

/** Passes over `n` float32 that must travel between memory and processor at least; cache lines travel whole. */
const passes: Readonly<Record<(ElementwiseWork | LayoutWork)['kind'], number>> = {
  add: 3,
  chain: 3,
  sum: 1,
  'add-row': 2,
  'add-column': 2,
  'add-transposed': 3,
  'add-strided': 2.5,
  'add-flipped': 3,
  'sum-rows': 1,
  'max-rows': 1,
  'sum-columns': 1,
  'max-columns': 1,
  'sum-middle': 1,
  softmax: 2,
  'layer-norm': 2,
  gelu: 2,
};

export function metricOf(work: Work): Metric {
  if (isOrderWork(work)) return { unit: 'M/s', value: (ns) => (1e3 * work.n) / ns };
  switch (work.kind) {
    case 'gemm':
      return { unit: 'GFLOP/s', value: (ns) => (2 * work.m * work.n * work.k) / ns };
    case 'conv':
      return {
        unit: 'GFLOP/s',
        value: (ns) => (2 * 9 * work.batch * work.channels * work.filters * work.side ** 2) / ns,
      };
    case 'small-add':
    case 'round-trip':
    case 'plan-hit':
    case 'operation':
      return { unit: 'us', value: (ns) => ns / 1e3 };
    case 'record':
      return { unit: 'ns', value: (ns) => ns };
    case 'mlp':
    case 'cnn':
    case 'network':
      return { unit: 'ms', value: (ns) => ns / 1e6 };
    case 'sizes':
      return { unit: 's', value: (ns) => ns / 1e9 };
    default:
      return { unit: 'GB/s', value: (ns) => (passes[work.kind] * 4 * work.n) / ns };
  }
}

/** Embedding and EmbeddingBag: a learned table that integers look rows up in, one by one or in bags. */
import {
  type DType,
  embedding,
  embeddingBag,
  type EmbeddingBagOptions,
  scope,
  type Tensor,
  tensor,
} from '@polygrad/core/functions';
import { checkOptions, checkInteger } from '../errors.ts';
import { type Initializer, normalInit } from '../init/init.ts';
import { Module } from '../module/module.ts';
import { parameter } from '../module/parameter.ts';

export interface EmbeddingLayerOptions {
  /** A row that receives no gradient; it is zero at first, unless `weightInit` is given. Negative ones count from the end. */
  readonly paddingIndex?: number;
  /** First value of the table (default normal, as in PyTorch). */
  readonly weightInit?: Initializer;
  readonly dtype?: DType;
}

/** The first table: normal numbers, and zeros in the row of padding. */
function firstTable(op: string, rows: number, width: number, options: EmbeddingLayerOptions): Tensor {
  const { paddingIndex, weightInit, dtype = 'float32' } = options;
  if (paddingIndex !== undefined) checkInteger(op, 'paddingIndex', paddingIndex, -rows, rows - 1);
  const table = (weightInit ?? normalInit())([rows, width], dtype);
  if (paddingIndex === undefined || weightInit !== undefined) return table;
  return scope(() => {
    const kept = new Float32Array(rows).fill(1);
    kept[paddingIndex < 0 ? paddingIndex + rows : paddingIndex] = 0;
    const zeroed = table.mul(tensor(kept, { shape: [rows, 1], dtype }));
    table.dispose();
    return zeroed;
  });
}

/**
 * Rows of a table. Source: PyTorch `nn.Embedding`.
 *
 * @example
 * const table = new Embedding(100, 16);
 * table.forward(tensor([[3, 7, 7]], { dtype: 'int32' })).shape; // [1, 3, 16]
 */
export class Embedding extends Module {
  /** Shape [rows, width]. */
  readonly weight: Tensor;
  readonly paddingIndex: number | undefined;

  constructor(rows: number, width: number, options: EmbeddingLayerOptions = {}) {
    super();
    checkOptions('Embedding', options, 'paddingIndex weightInit! dtype');
    checkInteger('Embedding', 'rows', rows, 1);
    checkInteger('Embedding', 'width', width, 1);
    this.weight = parameter(firstTable('Embedding', rows, width, options));
    this.paddingIndex = options.paddingIndex;
  }

  /** @param indices integers of any shape; the result has one axis more */
  forward(indices: Tensor): Tensor {
    return embedding(indices, this.weight, this.paddingIndex === undefined ? {} : { paddingIndex: this.paddingIndex });
  }
}

export interface EmbeddingBagLayerOptions extends EmbeddingLayerOptions {
  /** What becomes of the rows of a bag: 'mean' (default), 'sum' or 'max'. */
  readonly mode?: 'mean' | 'sum' | 'max';
}

/** What one call of EmbeddingBag says beside its indices. */
export type BagCall = Pick<EmbeddingBagOptions, 'offsets' | 'perSampleWeights'>;

/**
 * Means, sums or maxima of rows of a table, bag by bag. Source: PyTorch `nn.EmbeddingBag`, whose weights it can load.
 *
 * @example
 * const table = new EmbeddingBag(100, 16);
 * table.forward(tensor([[3, 7, 7]], { dtype: 'int32' })).shape; // [1, 16]
 * table.forward(tensor([3, 7, 7], { dtype: 'int32' }), { offsets: [0, 1] }).shape; // [2, 16]
 */
export class EmbeddingBag extends Module<[indices: Tensor, call?: BagCall]> {
  /** Shape [rows, width]. */
  readonly weight: Tensor;
  readonly options: Pick<EmbeddingBagOptions, 'mode' | 'paddingIndex'>;

  constructor(rows: number, width: number, options: EmbeddingBagLayerOptions = {}) {
    super();
    checkOptions('EmbeddingBag', options, 'paddingIndex weightInit! dtype mode');
    checkInteger('EmbeddingBag', 'rows', rows, 1);
    checkInteger('EmbeddingBag', 'width', width, 1);
    const { mode = 'mean', paddingIndex } = options;
    this.weight = parameter(firstTable('EmbeddingBag', rows, width, options));
    this.options = paddingIndex === undefined ? { mode } : { mode, paddingIndex };
  }

  /**
   * @param indices integers [bags, n], or [n] with offsets
   * @param call offsets: where each bag starts; perSampleWeights: factors of the rows, for mode 'sum'
   * @returns shape [bags, width]
   */
  forward(indices: Tensor, call: BagCall = {}): Tensor {
    checkOptions('EmbeddingBag', call, 'offsets perSampleWeights');
    return embeddingBag(indices, this.weight, { ...this.options, ...call });
  }
}

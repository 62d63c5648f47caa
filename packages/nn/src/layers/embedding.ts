/** Embedding: a learned table that integers look rows up in. */
import { type DType, embedding, type Tensor } from '@polygrad/core/functions';
import { checkOptions, checkInteger } from '../errors.ts';
import { type Initializer, normalInit } from '../init/init.ts';
import { Module } from '../module/module.ts';
import { parameter } from '../module/parameter.ts';

export interface EmbeddingLayerOptions {
  /** A row that receives no gradient. */
  readonly paddingIndex?: number;
  /** First value of the table (default normal, as in PyTorch). */
  readonly weightInit?: Initializer;
  readonly dtype?: DType;
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
    this.weight = parameter((options.weightInit ?? normalInit())([rows, width], options.dtype ?? 'float32'));
    this.paddingIndex = options.paddingIndex;
  }

  /** @param indices integers of any shape; the result has one axis more */
  forward(indices: Tensor): Tensor {
    return embedding(indices, this.weight, this.paddingIndex === undefined ? {} : { paddingIndex: this.paddingIndex });
  }
}
